/* Salvage: what can be read of a damaged spool is put into a new one, event by event, under the numbers that it had. Faults of
 * the old one are passed by: a block that cannot be read costs what is in it, and no more. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "spool/salvage.h"

#define CACHE (8 << 20)
#define SEQ_END (UINT64_MAX / 4) /* no spool has so many */

struct salvage {
    struct spool *to; /* NULL: only counts */
    struct db *from;
    struct spool_box *box; /* of to */
    int64_t bot_id;
    enum box which;
    struct spool_salvaged *out;
    uint64_t n;
};

/* ---- walking past faults ------------------------------------------------------------------------ */

static struct key behind_events(const struct salvage *s)
{
    return key_after_prefix(key_event(s->bot_id, s->which, UINT64_MAX));
}

/* From this seq on. */
static bool events_begin_at(void *arg, salvage_place seq)
{
    const struct salvage *s = arg;
    struct key lower = key_event(s->bot_id, s->which, (uint64_t)seq), upper = behind_events(s);
    struct err e = ERR_NONE;

    return db_iter_free(db_iter_new(s->from, FAMILY_EVENTS, key_slice(&lower), key_slice(&upper)), &e) == 0;
}

typedef void event_fn(struct salvage *s, struct event *ev);

static void walk_events(struct salvage *s, event_fn *each)
{
    struct key upper = behind_events(s);
    uint64_t from = 0;

    do {
        struct key lower = key_event(s->bot_id, s->which, from);
        struct err e = ERR_NONE;
        struct state_key k;
        struct db_iter *it = db_iter_new(s->from, FAMILY_EVENTS, key_slice(&lower), key_slice(&upper));
        for (; db_iter_valid(it); db_iter_next(it)) {
            struct event ev = {.seq = 0};
            if (key_event_decode(db_iter_key(it), &k) < 0)
                continue;
            from = k.seq + 1;
            ev.seq = k.seq;
            if (record_event_decode(db_iter_value(it), &ev) == 0)
                each(s, &ev);
        }
        if (db_iter_free(it, &e) == 0)
            return;
        from = (uint64_t)salvage_search(from, SEQ_END, events_begin_at, s);
    } while (from < SEQ_END);
}

/* ---- which boxes there are ---------------------------------------------------------------------- */

struct found {
    int64_t bot_id;
    enum box which;
};
struct boxes_found {
    struct found *list;
    size_t n;
};

static void add_found(struct boxes_found *f, int64_t bot_id, enum box which)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->list[i].bot_id == bot_id && f->list[i].which == which)
            return;
    f->list = xrealloc(f->list, (f->n + 1) * sizeof(*f->list));
    f->list[f->n++] = (struct found){bot_id, which};
}

/* By the keys of a family, jumping from box to box, and behind what cannot be read. */
static void find_by(struct db *from, enum family family, struct boxes_found *f)
{
    static const unsigned char end[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    const struct slice upper = slice_make(end, sizeof(end));
    struct key lower = {.n = 0};

    for (;;) {
        struct err e = ERR_NONE;
        struct state_key k;
        struct db_iter *it = db_iter_new(from, family, key_slice(&lower), upper);
        bool there =
            db_iter_valid(it) && (family == FAMILY_EVENTS ? key_event_decode(db_iter_key(it), &k)
                                                          : key_state_decode(db_iter_key(it), &k)) == 0;
        bool read = db_iter_free(it, &e) == 0;
        if (there) {
            add_found(f, k.bot, k.box);
            lower = key_after_prefix(key_event(k.bot, k.box, UINT64_MAX));
        } else if (read || !salvage_behind(from, family, &lower, upper)) {
            return;
        }
    }
}

static void find_boxes(struct db *from, struct boxes_found *f)
{
    struct key lower = key_name("box/"), upper = key_after_prefix(lower);
    struct err e = ERR_NONE;
    enum box which;
    int64_t bot_id;

    struct db_iter *it = db_iter_new(from, FAMILY_META, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it))
        if (key_box_decode(db_iter_key(it), &bot_id, &which) == 0)
            add_found(f, bot_id, which);
    db_iter_free(it, &e);
    find_by(from, FAMILY_EVENTS, f);
    find_by(from, FAMILY_STATES, f);
}

/* ---- one box ------------------------------------------------------------------------------------ */

/* Its state, in whichever class it is. Returns false where none can be read. */
static bool read_state(struct salvage *s, uint64_t seq, struct state_record *r)
{
    struct buf v = BUF_EMPTY;
    bool found = false;

    for (int c = 0; c < CLASSES && !found; c++) {
        struct key k = key_state(s->bot_id, s->which, (enum ended_class)c, seq);
        struct err e = ERR_NONE;
        found = db_get(s->from, FAMILY_STATES, key_slice(&k), &v, &e) > 0 &&
                record_state_decode(buf_slice(&v), r) == 0;
    }
    buf_free(&v);
    return found;
}

static void count_event(struct salvage *s, struct event *ev)
{
    (void)ev;
    s->n++;
}

static void save_event(struct salvage *s, struct event *ev)
{
    struct spool_box *b = s->box;
    struct state_record r;
    unsigned char hash[8];

    payload_hash(ev->payload, hash);
    if (!ev->is_call && memcmp(hash, ev->hash, sizeof(hash)))
        return; /* counted with what cannot be read */
    bool known = read_state(s, ev->seq, &r);
    if (b->rec.next_seq <= ev->seq)
        b->rec.next_seq = ev->seq; /* it keeps its number */
    if (known && (r.st.state == STATE_DONE || r.st.state == STATE_DEAD)) {
        append_ended(b, ev, &r);
        if (state_is_settled(&r.st))
            box_count(b, COUNT_DEAD_SETTLED, 1);
        s->out->ended++;
    } else {
        append_event(b, ev);
        s->out->waiting++;
        s->out->unknown += !known;
    }
    if (spool_batch_full(s->to))
        commit_and_wait(s->to);
}

/* What was set for the box, as far as its record can be read. */
static void save_record(struct salvage *s)
{
    struct key k = key_box(s->bot_id, s->which);
    struct buf v = BUF_EMPTY;
    struct box_record rec;
    struct err e = ERR_NONE;
    char name[33];

    snprintf(name, sizeof(name), "%lld", (long long)s->bot_id); /* the daemon names it by its config */
    bool known = db_get(s->from, FAMILY_META, key_slice(&k), &v, &e) > 0 &&
                 record_box_decode(buf_slice(&v), &rec) == 0;
    if (known) {
        memcpy(name, rec.name, sizeof(name));
        s->out->counted = rec.counters[COUNT_DONE] + rec.counters[COUNT_DEAD];
        for (size_t i = 0; i < rec.n_epochs; i++)
            s->out->counted += rec.epochs[i].unfinished;
        free(rec.epochs);
    }
    s->out->record_known = known;
    snprintf(s->out->bot, sizeof(s->out->bot), "%s", name);
    s->box = spool_attach(s->to, s->bot_id, s->which, name, NULL);
    spool_detach(s->box);
    if (known) {
        s->box->rec.order = rec.order;
        s->box->rec.paused_intake = rec.paused_intake;
        s->box->rec.last_served_id = rec.last_served_id;
        s->box->rec.last_received_at = rec.last_received_at;
    }
    s->box->dirty = true;
    buf_free(&v);
}

static void save_box(struct salvage *s, spool_salvaged_fn *told, void *arg)
{
    struct spool_salvaged out = {.box = s->which};

    s->out = &out;
    save_record(s);
    walk_events(s, save_event);
    commit_and_wait(s->to);
    told(arg, &out);
}

/* ---- rows that are kept as they are ------------------------------------------------------------- */

static void copy_row(struct spool *to, enum family f, struct slice key, struct slice value)
{
    db_put(store_db(to->store), f, key, value);
}

/* With the row of its expiry, which may be unreadable. Keys that an event in processing held are let go, as its claim is. */
static void copy_mark(struct spool *to, enum family f, struct slice key, struct slice value)
{
    unsigned char hash[MARK_BYTES];
    struct mark_record r;
    int64_t bot;

    (void)f;
    if (key_mark_decode(key, &bot, hash) == 0 && record_mark_decode(value, &r) == 0 && r.done)
        mark_put(to, bot, hash, &r);
}

static uint64_t copy_named(struct salvage *s, const char *prefix)
{
    struct key lower = key_name(prefix);

    return salvage_rows(s->to, s->from, FAMILY_META, lower, key_after_prefix(lower), copy_row);
}

static void copy_rest(struct salvage *s, struct spool_salvaged_rest *rest)
{
    static const unsigned char none[MARK_BYTES];
    struct key from = {.n = 0}, to = {.n = KEY_MAX};

    memset(to.b, 255, sizeof(to.b));
    rest->position_faults = copy_named(s, "position/");
    rest->note_faults = copy_named(s, "note/");
    rest->key_faults = salvage_rows(s->to, s->from, FAMILY_MARKS, from,
                                    key_mark_expiry(INT64_MIN, INT64_MIN, none), copy_mark);
    rest->audit_faults = salvage_rows(s->to, s->from, FAMILY_AUDIT, from, to, copy_row);
}

/* The instance stays, and the generation grows from where it was. */
static void copy_identity(struct salvage *s)
{
    struct key k = key_name("identity");
    struct identity_record old;
    struct buf v = BUF_EMPTY;
    struct err e = ERR_NONE;

    if (db_get(s->from, FAMILY_META, key_slice(&k), &v, &e) > 0 &&
        record_identity_decode(buf_slice(&v), &old) == 0) {
        memcpy(s->to->identity.instance, old.instance, sizeof(old.instance));
        if (old.generation > s->to->identity.generation)
            s->to->identity.generation = old.generation;
    }
    buf_free(&v);
    identity_renew(s->to);
}

/* ---- the public part ---------------------------------------------------------------------------- */

static struct db *open_from(const char *dir, struct err *e)
{
    char *path = xasprintf("%s/db", dir);
    struct db *db = db_open(path, DB_LOOK, CACHE, e);

    free(path);
    return db;
}

int spool_salvage(struct spool *to, const char *dir, spool_salvaged_fn *told, void *arg,
                  struct spool_salvaged_rest *rest, struct err *e)
{
    struct salvage s = {.to = to, .from = open_from(dir, e)};
    struct boxes_found f = {0};
    char why[256];

    if (!s.from)
        return -1;
    find_boxes(s.from, &f);
    for (size_t i = 0; i < f.n && spool_usable(to); i++) {
        s.bot_id = f.list[i].bot_id;
        s.which = f.list[i].which;
        save_box(&s, told, arg);
    }
    if (spool_usable(to)) {
        copy_rest(&s, rest);
        copy_identity(&s);
        commit_and_wait(to);
    }
    free(f.list);
    db_close(s.from);
    return spool_healthy(to, why) ? 0 : err_set(e, EX_IOERR, "cannot write the new spool: %s", why);
}

int spool_salvageable(const char *dir, uint64_t *events, struct err *e)
{
    struct salvage s = {.from = open_from(dir, e)};
    struct boxes_found f = {0};

    if (!s.from)
        return -1;
    find_boxes(s.from, &f);
    for (size_t i = 0; i < f.n; i++) {
        s.bot_id = f.list[i].bot_id;
        s.which = f.list[i].which;
        walk_events(&s, count_event);
    }
    *events = s.n;
    free(f.list);
    db_close(s.from);
    return 0;
}
