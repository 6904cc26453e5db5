/* Values of the database: one small writer and reader, and the records made with them. */
#include "wire/records.h"

#include <stdlib.h>

#include "base/mem.h"

#define VERSION 1

/* ---- writer and reader -------------------------------------------------------------------------- */

static void w8(struct buf *b, unsigned v)
{
    buf_add_char(b, (char)v);
}

static void w32(struct buf *b, uint32_t v)
{
    put_be32(buf_reserve(b, 4), v);
    buf_added(b, 4);
}

static void w64(struct buf *b, uint64_t v)
{
    put_be64(buf_reserve(b, 8), v);
    buf_added(b, 8);
}

/* Text of up to 65,535 bytes, its length in front. */
static void wtext(struct buf *b, const char *s)
{
    size_t n = strlen(s);
    put_be16(buf_reserve(b, 2), (uint16_t)n);
    buf_added(b, 2);
    buf_add(b, s, n);
}

struct reader {
    struct slice rest;
    bool bad; /* once set, everything reads as 0 */
};

static const char *rbytes(struct reader *r, size_t n)
{
    static const char zeros[16];

    if (r->bad || r->rest.n < n) {
        r->bad = true;
        return zeros; /* n is at most 16 where this is used so */
    }
    const char *p = r->rest.p;
    r->rest = slice_make(p + n, r->rest.n - n);
    return p;
}

static unsigned r8(struct reader *r)
{
    return (unsigned char)*rbytes(r, 1);
}

static uint32_t r32(struct reader *r)
{
    return get_be32(rbytes(r, 4));
}

static uint64_t r64(struct reader *r)
{
    return get_be64(rbytes(r, 8));
}

static int64_t ri64(struct reader *r)
{
    return (int64_t)r64(r);
}

/* A value of an enum, at most max. */
static unsigned renum(struct reader *r, unsigned max)
{
    unsigned v = r8(r);

    if (v > max)
        r->bad = true;
    return r->bad ? 0 : v;
}

static void rtext(struct reader *r, char *out, size_t size)
{
    size_t n = get_be16(rbytes(r, 2));

    out[0] = '\0';
    if (r->bad || n >= size || r->rest.n < n) {
        r->bad = true;
        return;
    }
    memcpy(out, rbytes(r, n), n);
    out[n] = '\0';
}

static struct reader reader(struct slice s)
{
    struct reader r = {s, false};

    if (r8(&r) != VERSION)
        r.bad = true;
    return r;
}

/* A record must have been read to its end. */
static int finish(const struct reader *r)
{
    return r->bad || r->rest.n ? -1 : 0;
}

/* ---- parts -------------------------------------------------------------------------------------- */

static void w_lane(struct buf *b, uint32_t epoch, struct lane lane)
{
    w32(b, epoch);
    w8(b, lane.type);
    w64(b, (uint64_t)lane.a);
    w64(b, (uint64_t)lane.b);
}

static void r_lane(struct reader *r, uint32_t *epoch, struct lane *lane)
{
    *epoch = r32(r);
    lane->type = (enum lane_type)renum(r, LANE_NAME);
    lane->a = ri64(r);
    lane->b = ri64(r);
}

/* ---- events ------------------------------------------------------------------------------------- */

enum event_flag {
    EVENT_ID = 1,
    EVENT_CHAT = 2,
    EVENT_USER = 4,
    EVENT_THREAD = 8,
    EVENT_POLL = 16,
    EVENT_REPLAY = 32,
    EVENT_CALL = 64
};

static void w_opt(struct buf *out, bool there, int64_t v)
{
    if (there)
        w64(out, (uint64_t)v);
}

static bool r_opt(struct reader *r, unsigned flags, unsigned flag, int64_t *v)
{
    *v = flags & flag ? ri64(r) : 0;
    return flags & flag;
}

void record_event(struct buf *out, const struct event *ev)
{
    const struct update_place *p = &ev->place;

    w8(out, VERSION);
    w8(out, (ev->has_update_id ? EVENT_ID : 0u) | (p->has_chat ? EVENT_CHAT : 0u) |
                (p->has_user ? EVENT_USER : 0u) | (p->has_thread ? EVENT_THREAD : 0u) |
                (p->has_poll ? EVENT_POLL : 0u) | (ev->replay_of ? EVENT_REPLAY : 0u) |
                (ev->is_call ? EVENT_CALL : 0u));
    w64(out, (uint64_t)ev->received_at);
    buf_add(out, ev->hash, sizeof(ev->hash));
    w_lane(out, ev->epoch, ev->lane);
    w_opt(out, ev->has_update_id, ev->update_id);
    w_opt(out, p->has_chat, p->chat);
    w_opt(out, p->has_user, p->user);
    w_opt(out, p->has_thread, p->thread);
    w_opt(out, p->has_poll, p->poll);
    w_opt(out, ev->replay_of != 0, (int64_t)ev->replay_of);
    wtext(out, ev->kind);
    if (ev->is_call) {
        w8(out, ev->once);
        w64(out, ev->made_by);
        wtext(out, ev->content_type);
    }
    buf_add_slice(out, ev->payload);
}

int record_event_decode(struct slice s, struct event *ev)
{
    struct reader r = reader(s);
    struct update_place *p = &ev->place;
    int64_t replay_of;

    unsigned flags = r8(&r);
    ev->received_at = ri64(&r);
    memcpy(ev->hash, rbytes(&r, sizeof(ev->hash)), sizeof(ev->hash));
    r_lane(&r, &ev->epoch, &ev->lane);
    ev->has_update_id = r_opt(&r, flags, EVENT_ID, &ev->update_id);
    p->has_chat = r_opt(&r, flags, EVENT_CHAT, &p->chat);
    p->has_user = r_opt(&r, flags, EVENT_USER, &p->user);
    p->has_thread = r_opt(&r, flags, EVENT_THREAD, &p->thread);
    p->has_poll = r_opt(&r, flags, EVENT_POLL, &p->poll);
    r_opt(&r, flags, EVENT_REPLAY, &replay_of);
    ev->replay_of = (uint64_t)replay_of;
    rtext(&r, ev->kind, sizeof(ev->kind));
    ev->is_call = flags & EVENT_CALL;
    if (ev->is_call) {
        ev->once = renum(&r, 1);
        ev->made_by = r64(&r);
        rtext(&r, ev->content_type, sizeof(ev->content_type));
    }
    ev->payload = r.rest;
    return r.bad ? -1 : 0;
}

/* ---- states ------------------------------------------------------------------------------------- */

enum state_flag {
    STATE_LANE = 1,
    STATE_LEASE = 2,
    STATE_PUSH = 4,
    STATE_REPLAYED = 8,
    STATE_SERVED = 16,
    STATE_MARKS = 32,
    STATE_CALLS = 64,
    STATE_IMPORTED = 128
};

void record_state(struct buf *out, const struct state_record *rec)
{
    const struct event_state *st = &rec->st;
    bool lease = st->state == STATE_PROCESSING;

    w8(out, VERSION);
    w8(out, (rec->has_lane ? STATE_LANE : 0u) | (lease ? STATE_LEASE : 0u) | (st->push ? STATE_PUSH : 0u) |
                (st->replayed_as ? STATE_REPLAYED : 0u) | (st->served_id ? STATE_SERVED : 0u) |
                (st->n_marks ? STATE_MARKS : 0u) | (rec->n_calls ? STATE_CALLS : 0u) |
                (rec->imported_at ? STATE_IMPORTED : 0u));
    w8(out, st->state);
    w8(out, st->reason);
    w32(out, st->attempts);
    w32(out, st->interrupted);
    w64(out, (uint64_t)st->next_retry_at);
    w64(out, (uint64_t)st->claimed_at);
    w64(out, (uint64_t)st->finished_at);
    wtext(out, st->claimed_by);
    wtext(out, st->error);
    if (rec->has_lane)
        w_lane(out, rec->epoch, rec->lane);
    if (lease) {
        w64(out, (uint64_t)st->deadline);
        buf_add(out, st->token, sizeof(st->token));
    }
    if (st->replayed_as)
        w64(out, st->replayed_as);
    if (st->served_id)
        w64(out, (uint64_t)st->served_id);
    if (st->n_marks) {
        w8(out, (unsigned)st->n_marks);
        buf_add(out, st->marks, st->n_marks * MARK_BYTES);
    }
    if (rec->n_calls) {
        w64(out, rec->calls_from);
        w32(out, rec->n_calls);
    }
    if (rec->imported_at)
        w64(out, (uint64_t)rec->imported_at);
    w8(out, (unsigned)st->n_history);
    for (size_t i = 0; i < st->n_history; i++) {
        w64(out, (uint64_t)st->history[i].at);
        w8(out, st->history[i].outcome);
        wtext(out, st->history[i].error);
    }
}

static void r_marks(struct reader *r, struct event_state *st)
{
    st->n_marks = renum(r, MARKS_MAX);
    for (size_t i = 0; i < st->n_marks; i++)
        memcpy(st->marks[i], rbytes(r, MARK_BYTES), MARK_BYTES);
}

static void r_history(struct reader *r, struct event_state *st)
{
    st->n_history = renum(r, HISTORY_MAX);
    for (size_t i = 0; i < st->n_history; i++) {
        st->history[i].at = ri64(r);
        st->history[i].outcome = (unsigned char)r8(r);
        rtext(r, st->history[i].error, sizeof(st->history[i].error));
    }
}

int record_state_decode(struct slice s, struct state_record *rec)
{
    struct event_state *st = &rec->st;

    memset(rec, 0, sizeof(*rec));
    if (s.n == 0)
        return 0;
    struct reader r = reader(s);
    unsigned flags = r8(&r);
    st->state = (enum state)renum(&r, STATE_DEAD);
    st->reason = (enum reason)renum(&r, REASON_DISCARDED);
    st->attempts = r32(&r);
    st->interrupted = r32(&r);
    st->next_retry_at = ri64(&r);
    st->claimed_at = ri64(&r);
    st->finished_at = ri64(&r);
    rtext(&r, st->claimed_by, sizeof(st->claimed_by));
    rtext(&r, st->error, sizeof(st->error));
    rec->has_lane = flags & STATE_LANE;
    if (rec->has_lane)
        r_lane(&r, &rec->epoch, &rec->lane);
    st->push = flags & STATE_PUSH;
    if (flags & STATE_LEASE) {
        st->deadline = ri64(&r);
        memcpy(st->token, rbytes(&r, sizeof(st->token)), sizeof(st->token));
    }
    st->replayed_as = flags & STATE_REPLAYED ? r64(&r) : 0;
    st->served_id = flags & STATE_SERVED ? ri64(&r) : 0;
    if (flags & STATE_MARKS)
        r_marks(&r, st);
    if (flags & STATE_CALLS) {
        rec->calls_from = r64(&r);
        rec->n_calls = r32(&r);
    }
    rec->imported_at = flags & STATE_IMPORTED ? ri64(&r) : 0;
    r_history(&r, st);
    return finish(&r);
}

/* ---- the small ones ----------------------------------------------------------------------------- */

void record_lane(struct buf *out, const struct lane_record *rec)
{
    w8(out, VERSION);
    w64(out, rec->head);
    w64(out, rec->tail);
}

int record_lane_decode(struct slice s, struct lane_record *rec)
{
    struct reader r = reader(s);

    rec->head = r64(&r);
    rec->tail = r64(&r);
    return finish(&r);
}

enum box_flag { BOX_PAUSED_INTAKE = 1, BOX_PAUSED_DELIVER = 2, BOX_BREAKER_OPEN = 4, BOX_SERVING = 8 };

void record_box(struct buf *out, const struct box_record *rec)
{
    w8(out, VERSION);
    w8(out, (rec->paused_intake ? BOX_PAUSED_INTAKE : 0u) | (rec->paused_deliver ? BOX_PAUSED_DELIVER : 0u) |
                (rec->breaker_open ? BOX_BREAKER_OPEN : 0u) | (rec->serving ? BOX_SERVING : 0u));
    wtext(out, rec->name);
    w64(out, rec->next_seq);
    w8(out, rec->order);
    w32(out, rec->epoch);
    w64(out, (uint64_t)rec->last_received_at);
    w8(out, rec->breaker_cause);
    w64(out, (uint64_t)rec->breaker_since);
    w32(out, rec->breaker_probes);
    w64(out, (uint64_t)rec->last_served_id);
    w8(out, COUNTERS); /* later versions may add counters */
    for (size_t i = 0; i < COUNTERS; i++)
        w64(out, rec->counters[i]);
    w32(out, (uint32_t)rec->n_epochs);
    for (size_t i = 0; i < rec->n_epochs; i++) {
        w32(out, rec->epochs[i].epoch);
        w64(out, rec->epochs[i].unfinished);
    }
}

int record_box_decode(struct slice s, struct box_record *rec)
{
    struct reader r = reader(s);

    memset(rec, 0, sizeof(*rec));
    unsigned flags = r8(&r);
    rec->paused_intake = flags & BOX_PAUSED_INTAKE;
    rec->paused_deliver = flags & BOX_PAUSED_DELIVER;
    rec->breaker_open = flags & BOX_BREAKER_OPEN;
    rec->serving = flags & BOX_SERVING;
    rtext(&r, rec->name, sizeof(rec->name));
    rec->next_seq = r64(&r);
    rec->order = (enum order)renum(&r, ORDER_NONE);
    rec->epoch = r32(&r);
    rec->last_received_at = ri64(&r);
    rec->breaker_cause = (enum breaker_cause)renum(&r, BREAKER_FAILURES);
    rec->breaker_since = ri64(&r);
    rec->breaker_probes = r32(&r);
    rec->last_served_id = ri64(&r);
    unsigned n_counters = r8(&r);
    for (unsigned i = 0; i < n_counters; i++) {
        uint64_t v = r64(&r);
        if (i < COUNTERS)
            rec->counters[i] = v;
    }
    uint32_t n = r32(&r);
    if (r.bad || r.rest.n != (size_t)n * 12)
        return -1;
    rec->epochs = n ? xcalloc(n, sizeof(*rec->epochs)) : NULL;
    rec->n_epochs = n;
    for (uint32_t i = 0; i < n; i++) {
        rec->epochs[i].epoch = r32(&r);
        rec->epochs[i].unfinished = r64(&r);
    }
    return finish(&r);
}

void record_position(struct buf *out, const struct position_record *rec)
{
    w8(out, VERSION);
    wtext(out, rec->api_root);
    w64(out, (uint64_t)rec->offset);
    w64(out, (uint64_t)rec->newest_update_at);
}

int record_position_decode(struct slice s, struct position_record *rec)
{
    struct reader r = reader(s);

    rtext(&r, rec->api_root, sizeof(rec->api_root));
    rec->offset = ri64(&r);
    rec->newest_update_at = ri64(&r);
    return finish(&r);
}

void record_identity(struct buf *out, const struct identity_record *rec)
{
    w8(out, VERSION);
    buf_add(out, rec->instance, sizeof(rec->instance));
    w64(out, rec->generation);
}

int record_identity_decode(struct slice s, struct identity_record *rec)
{
    struct reader r = reader(s);

    memcpy(rec->instance, rbytes(&r, sizeof(rec->instance)), sizeof(rec->instance));
    rec->generation = r64(&r);
    return finish(&r);
}

void record_clock(struct buf *out, const struct clock_record *rec)
{
    w8(out, VERSION);
    w64(out, (uint64_t)rec->last);
    w64(out, (uint64_t)rec->unsure);
    w64(out, (uint64_t)rec->back_at);
    w64(out, (uint64_t)rec->slow_from);
    w64(out, (uint64_t)rec->slow_to);
    w64(out, (uint64_t)rec->slow_by);
    w64(out, (uint64_t)rec->rested);
}

/* A field that shorter rows have not. */
static int64_t ri64_if_more(struct reader *r)
{
    return r->rest.n ? ri64(r) : 0;
}

int record_clock_decode(struct slice s, struct clock_record *rec)
{
    struct reader r = reader(s);

    rec->last = ri64(&r);
    rec->unsure = ri64(&r);
    rec->back_at = ri64(&r);
    rec->slow_from = ri64_if_more(&r);
    rec->slow_to = ri64_if_more(&r);
    rec->slow_by = ri64_if_more(&r);
    rec->rested = ri64_if_more(&r);
    return finish(&r);
}

void record_audit(struct buf *out, const struct audit_record *rec)
{
    w8(out, VERSION);
    wtext(out, rec->who);
    wtext(out, rec->act);
    w64(out, (uint64_t)rec->bot);
    w8(out, rec->box);
    w64(out, rec->seq);
    w64(out, rec->copy);
}

int record_audit_decode(struct slice s, struct audit_record *rec)
{
    struct reader r = reader(s);

    rtext(&r, rec->who, sizeof(rec->who));
    rtext(&r, rec->act, sizeof(rec->act));
    rec->bot = ri64(&r);
    rec->box = (enum box)renum(&r, BOX_OUT);
    rec->seq = r64(&r);
    rec->copy = r64(&r);
    return finish(&r);
}

void record_mark(struct buf *out, const struct mark_record *rec)
{
    w8(out, VERSION);
    w8(out, rec->done);
    w64(out, (uint64_t)rec->expiry);
    w64(out, (uint64_t)rec->ttl);
    w8(out, rec->box);
    w64(out, rec->seq);
}

int record_mark_decode(struct slice s, struct mark_record *rec)
{
    struct reader r = reader(s);

    rec->done = renum(&r, 1);
    rec->expiry = ri64(&r);
    rec->ttl = ri64(&r);
    rec->box = (enum box)renum(&r, BOX_OUT);
    rec->seq = r64(&r);
    return finish(&r);
}

void record_u64(struct buf *out, uint64_t v)
{
    w64(out, v);
}

int record_u64_decode(struct slice s, uint64_t *v)
{
    if (s.n != 8)
        return -1;
    *v = get_be64(s.p);
    return 0;
}
