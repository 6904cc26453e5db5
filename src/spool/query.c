/* Looking at events: one by its reference, many by a filter, in slices that go on from a cursor. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "spool/internal.h"

int spool_get(struct spool_box *b, uint64_t seq, struct event *ev, struct event_state *st, struct buf *record)
{
    struct state_record r;
    enum ended_class c;

    if (row_event(b, seq, ev, record) <= 0 || row_find_state(b, seq, &c, &r) <= 0)
        return -1;
    *st = r.st;
    return 0;
}

/* The newest of the events that bear an update_id. Returns 1, 0 or -1. */
static int newest_of(struct spool_box *b, int64_t update_id, uint64_t *seq)
{
    static const unsigned char low[8], high[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    struct key lower = key_id(b->bot_id, update_id, low);
    struct key upper = key_after_prefix(key_id(b->bot_id, update_id, high));
    struct err e = ERR_NONE;
    uint64_t v;
    int found = 0;

    if (!spool_usable(b->sp))
        return -1;
    struct db_iter *it =
        db_iter_new(store_db(b->sp->store), FAMILY_IDS, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it))
        if (record_u64_decode(db_iter_value(it), &v) == 0 && (!found || v > *seq)) {
            *seq = v;
            found = 1;
        }
    if (db_iter_free(it, &e) < 0) {
        spool_break(b->sp, &e);
        return -1;
    }
    return found;
}

struct spool_box *spool_resolve(struct spool *sp, const struct event_ref *ref, uint64_t *seq)
{
    struct spool_box *b = spool_find_box(sp, ref->bot, ref->box);
    struct state_record r;
    enum ended_class c;

    if (!b)
        return NULL;
    if (!ref->by_seq)
        return newest_of(b, ref->update_id, seq) > 0 ? b : NULL;
    *seq = ref->seq;
    return row_find_state(b, ref->seq, &c, &r) > 0 ? b : NULL;
}

/* ---- walking ------------------------------------------------------------------------------------ */

#define SEQ_MAX ((uint64_t)INT64_MAX) /* above every seq */

struct walk {
    struct spool_box *box;
    const struct spool_filter *f;
    bool with_payload;
    spool_each_fn *fn;
    void *arg;
    unsigned scan; /* left */
    bool stopped;
};

static bool box_passes(const struct spool_box *b, const struct spool_filter *f)
{
    return (!f->bot || !strcmp(f->bot, b->rec.name)) && (f->box < 0 || f->box == (int)b->which);
}

static bool all_states(const struct spool_filter *f)
{
    return !f->states[0] && !f->states[1] && !f->states[2] && !f->states[3];
}

static bool passes(const struct spool_filter *f, const struct event *ev, const struct event_state *st)
{
    return (all_states(f) || f->states[st->state]) &&
           (!f->has_chat || (ev->place.has_chat && ev->place.chat == f->chat)) &&
           (!f->has_user || (ev->place.has_user && ev->place.user == f->user)) &&
           (!f->kind[0] || !strcmp(f->kind, ev->kind)) && (!f->since || ev->received_at >= f->since) &&
           (!f->until || ev->received_at <= f->until) && (!f->error[0] || strstr(st->error, f->error));
}

/* The one class of `states` that a filter asks for, or -1: then all events are walked. */
static int only_class(const struct spool_filter *f)
{
    bool unfinished = f->states[STATE_PENDING] || f->states[STATE_PROCESSING];

    if (all_states(f))
        return -1;
    if (unfinished && !f->states[STATE_DONE] && !f->states[STATE_DEAD])
        return CLASS_UNFINISHED;
    if (!unfinished && f->states[STATE_DONE] != f->states[STATE_DEAD])
        return f->states[STATE_DONE] ? CLASS_DONE : CLASS_DEAD;
    return -1;
}

static void visit(struct walk *w, uint64_t seq, const struct state_record *known)
{
    struct buf record = BUF_EMPTY;
    struct state_record r;
    enum ended_class c;
    struct event ev;

    if (known)
        r = *known;
    if (row_event(w->box, seq, &ev, &record) > 0 && (known || row_find_state(w->box, seq, &c, &r) > 0) &&
        passes(w->f, &ev, &r.st)) {
        if (!w->with_payload)
            ev.payload = slice_make("", 0);
        w->stopped = !w->fn(w->arg, w->box, &ev, &r.st);
    }
    buf_free(&record);
}

/* The key under which a walk finds an event: of all events, or of those of one class. */
static struct key walk_key(const struct spool_box *b, int class, uint64_t seq)
{
    return class < 0 ? key_event(b->bot_id, b->which, seq)
                     : key_state(b->bot_id, b->which, (enum ended_class) class, seq);
}

/* Walks one box on from behind *last, which becomes the last one seen. Returns true at its end. */
static bool walk_box(struct walk *w, uint64_t *last)
{
    struct spool_box *b = w->box;
    bool newest = w->f->newest;
    int class = only_class(w->f);
    enum family family = class < 0 ? FAMILY_EVENTS : FAMILY_STATES;
    struct key lower = walk_key(b, class, newest ? 0 : *last + 1);
    struct key upper = walk_key(b, class, newest ? *last : SEQ_MAX);
    struct err e = ERR_NONE;
    bool at_end = true;

    struct db_iter *it = (newest ? db_iter_new_down : db_iter_new)(store_db(b->sp->store), family,
                                                                   key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it)) {
        struct state_key k;
        struct state_record r;
        if (w->stopped || w->scan == 0) {
            at_end = false;
            break;
        }
        w->scan--;
        if ((class < 0 ? key_event_decode(db_iter_key(it), &k) : key_state_decode(db_iter_key(it), &k)) < 0)
            continue;
        *last = k.seq;
        if (class < 0)
            visit(w, k.seq, NULL);
        else if (record_state_decode(db_iter_value(it), &r) == 0)
            visit(w, k.seq, &r);
    }
    if (db_iter_free(it, &e) < 0)
        spool_break(b->sp, &e);
    return at_end && !w->stopped;
}

bool spool_each(struct spool *sp, const struct spool_filter *f, struct spool_cursor *cursor, unsigned scan,
                bool with_payload, spool_each_fn *fn, void *arg)
{
    struct walk w = {.f = f, .with_payload = with_payload, .fn = fn, .arg = arg, .scan = scan};

    list_each(&sp->boxes, it) {
        struct spool_box *b = list_item(it, struct spool_box, link);
        bool here = cursor->started && b->bot_id == cursor->bot_id && (int)b->which == cursor->box;
        if (!spool_usable(sp))
            return false;
        if (cursor->started && !here &&
            (b->bot_id < cursor->bot_id || (b->bot_id == cursor->bot_id && (int)b->which < cursor->box)))
            continue;
        if (!box_passes(b, f))
            continue;
        uint64_t last = here ? cursor->seq : f->newest ? SEQ_MAX : 0;
        w.box = b;
        bool at_end = walk_box(&w, &last);
        *cursor = (struct spool_cursor){b->bot_id, (int)b->which, last, true};
        if (!at_end)
            return false;
    }
    return true;
}
