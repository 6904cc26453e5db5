/* Values and keys of the database, of any bytes (a damaged file, another version): the first byte says which kind of record the
 * rest is taken for. What is accepted must be writable, and read the same again. */
#include "fuzz.h"

#include "wire/keys.h"
#include "wire/records.h"

/* Decodes s and encodes it again into out. Returns 0, or -1 if s is no such record. */
typedef int again_fn(struct slice s, struct buf *out);

static int event_again(struct slice s, struct buf *out)
{
    struct event ev = {.seq = 1};

    if (record_event_decode(s, &ev) < 0)
        return -1;
    CHECK(memchr(ev.kind, '\0', sizeof(ev.kind)));
    CHECK(ev.payload.n == 0 || (ev.payload.p >= s.p && ev.payload.p + ev.payload.n <= s.p + s.n));
    record_event(out, &ev);
    return 0;
}

static int state_again(struct slice s, struct buf *out)
{
    struct state_record r;

    if (record_state_decode(s, &r) < 0)
        return -1;
    CHECK(r.st.state <= STATE_DEAD && r.st.reason <= REASON_DISCARDED && r.st.n_history <= HISTORY_MAX);
    CHECK(memchr(r.st.error, '\0', sizeof(r.st.error)) &&
          memchr(r.st.claimed_by, '\0', sizeof(r.st.claimed_by)));
    record_state(out, &r);
    return 0;
}

static int lane_again(struct slice s, struct buf *out)
{
    struct lane_record r;

    if (record_lane_decode(s, &r) < 0)
        return -1;
    record_lane(out, &r);
    return 0;
}

static int box_again(struct slice s, struct buf *out)
{
    struct box_record r;

    if (record_box_decode(s, &r) < 0)
        return -1;
    CHECK(memchr(r.name, '\0', sizeof(r.name)));
    CHECK(r.order <= ORDER_NONE && r.breaker_cause <= BREAKER_FAILURES);
    record_box(out, &r);
    free(r.epochs);
    return 0;
}

static int position_again(struct slice s, struct buf *out)
{
    struct position_record r;

    if (record_position_decode(s, &r) < 0)
        return -1;
    CHECK(memchr(r.api_root, '\0', sizeof(r.api_root)));
    record_position(out, &r);
    return 0;
}

static int audit_again(struct slice s, struct buf *out)
{
    struct audit_record r;

    if (record_audit_decode(s, &r) < 0)
        return -1;
    CHECK(memchr(r.who, '\0', sizeof(r.who)) && memchr(r.act, '\0', sizeof(r.act)));
    record_audit(out, &r);
    return 0;
}

static int number_again(struct slice s, struct buf *out)
{
    uint64_t v;

    if (record_u64_decode(s, &v) < 0)
        return -1;
    record_u64(out, v);
    return 0;
}

static int identity_again(struct slice s, struct buf *out)
{
    struct identity_record r;

    if (record_identity_decode(s, &r) < 0)
        return -1;
    record_identity(out, &r);
    return 0;
}

static int clock_again(struct slice s, struct buf *out)
{
    struct clock_record r;

    if (record_clock_decode(s, &r) < 0)
        return -1;
    record_clock(out, &r);
    return 0;
}

/* NULL: keys. */
static again_fn *const kinds[] = {event_again, state_again,  lane_again, box_again,      position_again,
                                  audit_again, number_again, NULL,       identity_again, clock_again};

static void try_record(again_fn *again, struct slice s)
{
    struct buf first = BUF_EMPTY, second = BUF_EMPTY;

    if (again(s, &first) == 0) {
        CHECK(again(buf_slice(&first), &second) == 0);
        CHECK(slice_eq(buf_slice(&first), buf_slice(&second)));
    }
    buf_free(&first);
    buf_free(&second);
}

/* A key that is accepted is, put together again, the same bytes. */
static void try_keys(struct slice s)
{
    struct due_key d;
    struct order_key o;
    struct state_key t;
    struct key k;

    if (key_due_decode(s, &d) == 0) {
        k = key_due(d.bot, d.box, d.class, d.time, d.seq);
        CHECK(slice_eq(key_slice(&k), s));
    }
    if (key_order_decode(s, &o) == 0) {
        k = key_order(o.bot, o.box, o.epoch, o.lane, o.seq);
        CHECK(slice_eq(key_slice(&k), s));
    }
    if (key_lane_decode(s, &o) == 0) {
        k = key_lane(o.bot, o.box, o.epoch, o.lane);
        CHECK(slice_eq(key_slice(&k), s));
    }
    if (key_state_decode(s, &t) == 0) {
        k = key_state(t.bot, t.box, t.class, t.seq);
        CHECK(slice_eq(key_slice(&k), s));
    }
    if (key_event_decode(s, &t) == 0) {
        k = key_event(t.bot, t.box, t.seq);
        CHECK(slice_eq(key_slice(&k), s));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice rest = {(const char *)data + 1, n - 1};

    if (n == 0)
        return 0;
    again_fn *kind = kinds[data[0] % (sizeof(kinds) / sizeof(kinds[0]))];
    if (kind)
        try_record(kind, rest);
    else
        try_keys(rest);
    return 0;
}
