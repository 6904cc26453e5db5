/* Boxes: one bot's events of one direction, their counters, their epochs of order. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "spool/internal.h"

static void reset_hints(struct spool_box *b)
{
    for (int c = 0; c < 2; c++) {
        b->due_from[c] = INT64_MIN;
        b->next_due[c] = INT64_MIN;
    }
    b->ready_from = b->oldest_from = 0;
    b->maybe_ready = b->lifting = true;
    b->unserve_from = 0;
    b->oldest_known = false;
    b->restored_known = false;
    retain_reset(b);
}

/* What an orphan is handled by. */
static void default_policy(struct spool_policy *p)
{
    *p = (struct spool_policy){
        .outcome = {.retry = {.step_ms = {2000, 5000, 15000, 60000}, .n = 4, .jitter_percent = 20},
                    .max_attempts = 8},
        .lease_ms = SECONDS(60),
        .concurrency = 1,
    };
}

struct spool_box *box_find(struct spool *sp, int64_t bot_id, enum box which)
{
    list_each(&sp->boxes, it) {
        struct spool_box *b = list_item(it, struct spool_box, link);
        if (b->bot_id == bot_id && b->which == which)
            return b;
    }
    return NULL;
}

static bool before(const struct spool_box *b, int64_t bot_id, enum box which)
{
    return b->bot_id != bot_id ? b->bot_id < bot_id : b->which < which;
}

struct spool_box *box_new(struct spool *sp, int64_t bot_id, enum box which)
{
    struct spool_box *b = xcalloc(1, sizeof(*b));
    struct list *at = sp->boxes.next;

    b->sp = sp;
    b->bot_id = bot_id;
    b->which = which;
    b->rec.next_seq = 1;
    list_init(&b->held);
    b->handler_ms = HISTOGRAM(histogram_ms);
    default_policy(&b->policy);
    reset_hints(b);
    while (at != &sp->boxes && before(list_item(at, struct spool_box, link), bot_id, which))
        at = at->next;
    list_add_tail(at, &b->link); /* in front of `at` */
    return b;
}

void box_free(struct spool_box *b)
{
    list_each(&b->held, it) {
        list_del(it);
        free(list_item(it, struct held, link));
    }
    list_del(&b->link);
    free(b->rec.epochs);
    free(b);
}

static void load_record(struct spool *sp, struct spool_box *b, const struct box_record *rec)
{
    free(b->rec.epochs);
    b->rec = *rec;
    b->dirty = false;
    b->breaker.probing = false;
    reset_hints(b);
    b->unserving = rec->serving && !b->policy.serve;
    b->releasing = b->cutting = true; /* or once more: what was done of it may be lost */
    b->release_from = 0;
    memset(b->cut_time, 0, sizeof(b->cut_time));
    memset(b->cut_seq, 0, sizeof(b->cut_seq));
    if (!sp->was_failed) { /* a fresh start: else the breaker in memory knows more */
        b->breaker = (struct breaker){.open = rec->breaker_open,
                                      .cause = rec->breaker_cause,
                                      .since = rec->breaker_since,
                                      .probes = rec->breaker_probes,
                                      .probe_at = sp->now};
    }
}

struct stored_box {
    int64_t bot_id;
    enum box which;
    struct box_record rec; /* owned */
};

/* Reads every box's record. Returns 0 or -1; *list is to be freed in either case. */
static int read_records(struct spool *sp, struct stored_box **list, size_t *n)
{
    struct key lower = key_name("box/"), upper = key_after_prefix(lower);
    struct err e = ERR_NONE, e_iter = ERR_NONE;
    struct stored_box b;

    struct db_iter *it = db_iter_new(store_db(sp->store), FAMILY_META, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it)) {
        if (key_box_decode(db_iter_key(it), &b.bot_id, &b.which) < 0 ||
            record_box_decode(db_iter_value(it), &b.rec) < 0) {
            err_set(&e, EX_DATAERR, "the record of a box cannot be decoded");
            break;
        }
        *list = xrealloc(*list, (*n + 1) * sizeof(**list));
        (*list)[(*n)++] = b;
    }
    if (db_iter_free(it, &e_iter) < 0)
        e = e_iter;
    if (e.exit_code)
        spool_break(sp, &e);
    return e.exit_code ? -1 : 0;
}

int boxes_load(struct spool *sp)
{
    struct stored_box *list = NULL;
    size_t n = 0;
    int rc = read_records(sp, &list, &n);

    if (rc == 0)                    /* else what is known of them stays, for status to show */
        list_each(&sp->boxes, it) { /* one that was made in a lost batch starts anew */
            struct spool_box *b = list_item(it, struct spool_box, link);
            struct box_record empty = {.next_seq = 1};
            memcpy(empty.name, b->rec.name, sizeof(empty.name));
            load_record(sp, b, &empty);
        }
    for (size_t i = 0; i < n; i++) {
        struct spool_box *b = box_find(sp, list[i].bot_id, list[i].which);
        if (rc == 0)
            load_record(sp, b ? b : box_new(sp, list[i].bot_id, list[i].which), &list[i].rec);
        else
            free(list[i].rec.epochs);
    }
    free(list);
    return rc;
}

void boxes_save(struct spool *sp)
{
    struct buf v = BUF_EMPTY;
    bool any = false;

    list_each(&sp->boxes, it) {
        struct spool_box *b = list_item(it, struct spool_box, link);
        if (!b->dirty || !spool_usable(sp) || sp->look)
            continue;
        if (sp->identity_new)
            identity_save(sp);
        b->rec.breaker_open = b->breaker.open;
        b->rec.breaker_cause = b->breaker.cause;
        b->rec.breaker_since = b->breaker.since;
        b->rec.breaker_probes = b->breaker.probes;
        buf_clear(&v);
        record_box(&v, &b->rec);
        struct key k = key_box(b->bot_id, b->which);
        db_put(store_db(sp->store), FAMILY_META, key_slice(&k), buf_slice(&v));
        b->dirty = false;
        any = true;
    }
    if (any)
        stepped_save(sp);
    buf_free(&v);
}

void box_count(struct spool_box *b, enum box_counter c, int64_t by)
{
    b->rec.counters[c] += (uint64_t)by;
    b->dirty = true;
}

/* ---- epochs ------------------------------------------------------------------------------------- */

uint64_t box_unfinished(const struct spool_box *b)
{
    uint64_t n = 0;

    for (size_t i = 0; i < b->rec.n_epochs; i++)
        n += b->rec.epochs[i].unfinished;
    return n;
}

uint32_t box_open_epoch(const struct spool_box *b)
{
    return b->rec.n_epochs ? b->rec.epochs[0].epoch : b->rec.epoch;
}

void box_add_unfinished(struct spool_box *b, uint32_t epoch)
{
    struct box_record *r = &b->rec;

    b->dirty = true;
    if (r->n_epochs && r->epochs[r->n_epochs - 1].epoch == epoch) {
        r->epochs[r->n_epochs - 1].unfinished++;
        return;
    }
    assert(r->n_epochs == 0 || r->epochs[r->n_epochs - 1].epoch < epoch); /* events join the newest only */
    r->epochs = xrealloc(r->epochs, (r->n_epochs + 1) * sizeof(*r->epochs));
    r->epochs[r->n_epochs++] = (struct epoch_count){epoch, 1};
}

void box_sub_unfinished(struct spool_box *b, uint32_t epoch)
{
    struct box_record *r = &b->rec;
    size_t i = 0;

    b->dirty = true;
    while (i < r->n_epochs && r->epochs[i].epoch != epoch)
        i++;
    if (i == r->n_epochs || r->epochs[i].unfinished == 0)
        return; /* a counter that `verify` will report; not worth a crash */
    if (--r->epochs[i].unfinished > 0)
        return;
    memmove(r->epochs + i, r->epochs + i + 1, (r->n_epochs - i - 1) * sizeof(*r->epochs));
    r->n_epochs--;
    b->lifting = true;
}

/* A changed order: what comes from now on waits until all before it have ended. */
static void set_order(struct spool_box *b, enum order order)
{
    if (b->rec.order == order)
        return;
    b->rec.order = order;
    b->rec.epoch++;
    b->dirty = true;
    if (box_unfinished(b))
        log_info(b->rec.name, "the order changed: new updates wait until the %llu before them have ended",
                 (unsigned long long)box_unfinished(b));
}

/* ---- the public part ---------------------------------------------------------------------------- */

void spool_policy_from(const struct bot_config *bot, struct spool_policy *out)
{
    *out = (struct spool_policy){
        .order = bot->order,
        .outcome = {.retry = bot->retry, .max_attempts = bot->max_attempts},
        .lease_ms = bot->lease_ms,
        .concurrency = bot->concurrency,
        .serve = bot->deliver == DELIVER_DROPIN,
        .expire = bot->expire,
        .n_expire_rules = bot->n_expire_rules,
    };
    memcpy(out->expire_rules, bot->expire_rules, sizeof(out->expire_rules));
}

/* Calls fail like events, but for what Telegram itself prescribes: a limit of one chat holds only this chat. */
void spool_policy_calls(const struct bot_config *bot, struct spool_policy *out)
{
    *out = (struct spool_policy){
        .outcome = {.retry = bot->retry, .max_attempts = bot->max_attempts, .limit_by_lane = true},
        .lease_ms = SPOOL_CALL_LEASE_MS,
        .concurrency = SPOOL_CALL_CONCURRENCY,
    };
}

struct spool_box *spool_prepare(struct spool *sp, int64_t bot_id, enum box box)
{
    struct spool_box *b = box_find(sp, bot_id, box);

    if (!b) {
        b = box_new(sp, bot_id, box);
        b->draft = true;
    }
    return b;
}

void spool_unprepare(struct spool_box *b)
{
    if (b->draft)
        box_free(b);
}

struct spool_box *spool_attach(struct spool *sp, int64_t bot_id, enum box box, const char *name,
                               const struct spool_policy *policy)
{
    struct spool_box *b = spool_prepare(sp, bot_id, box);

    if (b->draft) {
        b->draft = false;
        b->rec.order = policy ? policy->order : ORDER_CHAT;
        b->dirty = true;
    }
    if (name != b->name)
        snprintf(b->name, sizeof(b->name), "%s", name);
    if (strcmp(b->rec.name, name)) {
        memset(b->rec.name, 0, sizeof(b->rec.name));
        strncpy(b->rec.name, name, sizeof(b->rec.name) - 1);
        b->dirty = true;
    }
    b->attached = true;
    if (policy) {
        b->policy = *policy;
        set_order(b, policy->order);
        b->unserving = b->rec.serving && !policy->serve;
        if (b->unserving)
            b->unserve_from = 0;
    }
    return b;
}

void spool_detach(struct spool_box *b)
{
    b->attached = false;
}

struct spool_box *spool_find_box(struct spool *sp, const char *bot, enum box box)
{
    struct spool_box *orphan = NULL;

    list_each(&sp->boxes, it) { /* a name may be an orphan's and, since, another bot's */
        struct spool_box *b = list_item(it, struct spool_box, link);
        if (b->which != box || strcmp(b->rec.name, bot))
            continue;
        if (b->attached)
            return b;
        orphan = b;
    }
    return orphan;
}

struct spool_box *spool_next_box(struct spool *sp, struct spool_box *b)
{
    struct list *l = b ? b->link.next : sp->boxes.next;
    return l == &sp->boxes ? NULL : list_item(l, struct spool_box, link);
}

const char *spool_box_bot(const struct spool_box *b)
{
    return b->rec.name;
}

int64_t spool_box_bot_id(const struct spool_box *b)
{
    return b->bot_id;
}

enum box spool_box_which(const struct spool_box *b)
{
    return b->which;
}

uint64_t spool_box_next_seq(const struct spool_box *b)
{
    return b->rec.next_seq;
}

struct spool *spool_of(struct spool_box *b)
{
    return b->sp;
}

void spool_pause(struct spool_box *b, bool intake, bool paused)
{
    if (intake)
        b->rec.paused_intake = paused;
    else
        b->rec.paused_deliver = paused;
    b->dirty = true;
}

void spool_probe_now(struct spool_box *b)
{
    if (b->breaker.open && !b->breaker.probing && b->breaker.cause != BREAKER_LIMITED)
        b->breaker.probe_at = b->sp->now;
}

static bool first_seq(void *arg, uint64_t seq, struct slice value)
{
    (void)value;
    *(uint64_t *)arg = seq;
    return false;
}

/* What a person hands over again waits since then, not since it first came: nobody is to be alarmed by that. The record does
 * not tell when the copy was made; what another process made waits since this one began. */
static int64_t waits_since(const struct spool_box *b, const struct event *ev)
{
    bool known = ev->seq >= b->copies.first && ev->seq <= b->copies.last;
    int64_t at = known ? b->copies.at : b->sp->look ? 0 : b->sp->opened_at;

    return ev->replay_of && at > ev->received_at ? at : ev->received_at;
}

/* Finds the oldest unfinished event: the first of its class, from the last one found on. If it cannot be read, what is known
 * stays. */
static void find_oldest(struct spool_box *b)
{
    struct buf record = BUF_EMPTY;
    struct event ev;
    uint64_t seq = 0; /* none has it */

    int there = rows_states(b, CLASS_UNFINISHED, b->oldest_from, UINT64_MAX, first_seq, &seq);
    if (there == 0 && seq)
        there = row_event(b, seq, &ev, &record);
    if (there >= 0) {
        b->oldest_known = true;
        b->oldest_at = there > 0 ? waits_since(b, &ev) : 0;
        b->oldest_from = there > 0 ? seq : b->oldest_from;
    }
    buf_free(&record);
}

const struct histogram *spool_handler_ms(const struct spool_box *b)
{
    return &b->handler_ms;
}

void spool_box_status(struct spool_box *b, struct spool_box_status *out)
{
    const uint64_t *c = b->rec.counters;

    if (!b->oldest_known && spool_usable(b->sp)) {
        if (box_unfinished(b))
            find_oldest(b);
        else
            b->oldest_at = 0;
    }
    *out = (struct spool_box_status){
        .counts = {.pending = box_unfinished(b) - c[COUNT_PROCESSING],
                   .processing = c[COUNT_PROCESSING],
                   .done = c[COUNT_DONE],
                   .dead = c[COUNT_DEAD],
                   .dead_settled = c[COUNT_DEAD_SETTLED],
                   .received = c[COUNT_RECEIVED],
                   .duplicates = c[COUNT_DUPLICATES],
                   .delivered = c[COUNT_DELIVERED],
                   .retries = c[COUNT_RETRIES],
                   .failures = c[COUNT_FAILURES],
                   .lease_expired = c[COUNT_LEASE_EXPIRED],
                   .gaps = c[COUNT_GAPS],
                   .dead_by_reason = {0, c[COUNT_DEAD_ATTEMPTS], c[COUNT_DEAD_REJECTED],
                                      c[COUNT_DEAD_EXPIRED], c[COUNT_DEAD_DISCARDED]}},
        .oldest_unfinished_at = box_unfinished(b) ? b->oldest_at : 0,
        .last_received_at = b->rec.last_received_at,
        .orphan = !b->attached,
        .paused_intake = b->rec.paused_intake,
        .paused_deliver = b->rec.paused_deliver,
        .breaker = b->breaker,
        .behind_barrier = b->rec.n_epochs && b->rec.epochs[0].epoch != b->rec.epoch,
    };
}
