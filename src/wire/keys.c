/* Keys of the database, put together and taken apart. */
#include "wire/keys.h"

#include <assert.h>

static void add8(struct key *k, unsigned v)
{
    assert(k->n < KEY_MAX);
    k->b[k->n++] = (unsigned char)v;
}

static void add32(struct key *k, uint32_t v)
{
    assert(k->n + 4 <= KEY_MAX);
    put_be32(k->b + k->n, v);
    k->n += 4;
}

static void add64(struct key *k, uint64_t v)
{
    assert(k->n + 8 <= KEY_MAX);
    put_be64(k->b + k->n, v);
    k->n += 8;
}

static struct key start(int64_t bot, enum box box)
{
    struct key k = {.n = 0};

    add64(&k, order_i64(bot));
    add8(&k, box);
    return k;
}

struct key key_event(int64_t bot, enum box box, uint64_t seq)
{
    struct key k = start(bot, box);
    add64(&k, seq);
    return k;
}

struct key key_state(int64_t bot, enum box box, enum ended_class c, uint64_t seq)
{
    struct key k = start(bot, box);
    add8(&k, c);
    add64(&k, seq);
    return k;
}

struct key key_lane(int64_t bot, enum box box, uint32_t epoch, struct lane lane)
{
    struct key k = start(bot, box);
    add32(&k, epoch);
    add8(&k, lane.type);
    add64(&k, order_i64(lane.a));
    add64(&k, order_i64(lane.b));
    return k;
}

struct key key_order(int64_t bot, enum box box, uint32_t epoch, struct lane lane, uint64_t seq)
{
    struct key k = key_lane(bot, box, epoch, lane);
    add64(&k, seq);
    return k;
}

struct key key_due(int64_t bot, enum box box, enum due_class c, int64_t time, uint64_t seq)
{
    struct key k = start(bot, box);
    add8(&k, c);
    add64(&k, order_i64(time));
    add64(&k, seq);
    return k;
}

struct key key_id(int64_t bot, int64_t update_id, const unsigned char hash[8])
{
    struct key k = {.n = 0};

    add64(&k, order_i64(bot));
    add64(&k, order_i64(update_id));
    memcpy(k.b + k.n, hash, 8);
    k.n += 8;
    return k;
}

struct key key_audit(int64_t time, uint32_t number)
{
    struct key k = {.n = 0};

    add64(&k, order_i64(time));
    add32(&k, number);
    return k;
}

enum mark_row { MARK_BY_KEY = 0, MARK_BY_EXPIRY = 1 };

struct key key_mark(int64_t bot, const unsigned char hash[MARK_BYTES])
{
    struct key k = {.n = 0};

    add8(&k, MARK_BY_KEY);
    add64(&k, order_i64(bot));
    memcpy(k.b + k.n, hash, MARK_BYTES);
    k.n += MARK_BYTES;
    return k;
}

struct key key_mark_expiry(int64_t expiry, int64_t bot, const unsigned char hash[MARK_BYTES])
{
    struct key k = {.n = 0};

    add8(&k, MARK_BY_EXPIRY);
    add64(&k, order_i64(expiry));
    add64(&k, order_i64(bot));
    memcpy(k.b + k.n, hash, MARK_BYTES);
    k.n += MARK_BYTES;
    return k;
}

struct key key_name(const char *name)
{
    struct key k = {.n = strlen(name)};

    assert(k.n <= KEY_MAX);
    memcpy(k.b, name, k.n);
    return k;
}

struct key key_box(int64_t bot, enum box box)
{
    struct key k = key_name("box/");
    add64(&k, order_i64(bot));
    add8(&k, box);
    return k;
}

struct key key_position(int64_t bot)
{
    struct key k = key_name("position/");
    add64(&k, order_i64(bot));
    return k;
}

struct key key_note(int64_t bot, const char *name)
{
    struct key k = key_name("note/");
    size_t n = strlen(name);

    add64(&k, order_i64(bot));
    assert(k.n + n <= KEY_MAX);
    memcpy(k.b + k.n, name, n);
    k.n += n;
    return k;
}

struct key key_after_prefix(struct key k)
{
    while (k.n > 0 && k.b[k.n - 1] == 0xff)
        k.n--;
    assert(k.n > 0); /* no key of ours is all ones */
    k.b[k.n - 1]++;
    return k;
}

static int64_t get_i64(const char *p)
{
    return unorder_i64(get_be64(p));
}

/* bot and box, which most keys start with. */
static int decode_start(struct slice s, size_t width, int64_t *bot, enum box *box)
{
    if (s.n != width || (unsigned char)s.p[8] > BOX_OUT)
        return -1;
    *bot = get_i64(s.p);
    *box = (enum box)s.p[8];
    return 0;
}

int key_due_decode(struct slice s, struct due_key *out)
{
    if (decode_start(s, 26, &out->bot, &out->box) < 0 || (unsigned char)s.p[9] > DUE_BARRIER)
        return -1;
    out->class = (enum due_class)s.p[9];
    out->time = get_i64(s.p + 10);
    out->seq = get_be64(s.p + 18);
    return 0;
}

int key_lane_decode(struct slice s, struct order_key *out)
{
    if (decode_start(s, 30, &out->bot, &out->box) < 0 || (unsigned char)s.p[13] > LANE_NAME)
        return -1;
    out->epoch = get_be32(s.p + 9);
    out->lane = (struct lane){(enum lane_type)s.p[13], get_i64(s.p + 14), get_i64(s.p + 22)};
    return 0;
}

int key_order_decode(struct slice s, struct order_key *out)
{
    if (s.n != 38)
        return -1;
    out->seq = get_be64(s.p + 30);
    return key_lane_decode(slice_make(s.p, 30), out);
}

int key_state_decode(struct slice s, struct state_key *out)
{
    if (decode_start(s, 18, &out->bot, &out->box) < 0 || (unsigned char)s.p[9] >= CLASSES)
        return -1;
    out->class = (enum ended_class)s.p[9];
    out->seq = get_be64(s.p + 10);
    return 0;
}

int key_event_decode(struct slice s, struct state_key *out)
{
    if (decode_start(s, 17, &out->bot, &out->box) < 0)
        return -1;
    out->seq = get_be64(s.p + 9);
    return 0;
}

int key_box_decode(struct slice s, int64_t *bot, enum box *box)
{
    return s.n == 13 && memcmp(s.p, "box/", 4) == 0 ? decode_start(slice_make(s.p + 4, 9), 9, bot, box) : -1;
}

int key_id_decode(struct slice s, int64_t *bot, int64_t *update_id, unsigned char hash[8])
{
    if (s.n != 24)
        return -1;
    *bot = get_i64(s.p);
    *update_id = get_i64(s.p + 8);
    memcpy(hash, s.p + 16, 8);
    return 0;
}

int key_audit_decode(struct slice s, int64_t *time)
{
    if (s.n != 12)
        return -1;
    *time = get_i64(s.p);
    return 0;
}

int key_mark_decode(struct slice s, int64_t *bot, unsigned char hash[MARK_BYTES])
{
    if (s.n != 9 + MARK_BYTES || s.p[0] != MARK_BY_KEY)
        return -1;
    *bot = get_i64(s.p + 1);
    memcpy(hash, s.p + 9, MARK_BYTES);
    return 0;
}

int key_mark_expiry_decode(struct slice s, int64_t *expiry, int64_t *bot, unsigned char hash[MARK_BYTES])
{
    if (s.n != 17 + MARK_BYTES || s.p[0] != MARK_BY_EXPIRY)
        return -1;
    *expiry = get_i64(s.p + 1);
    *bot = get_i64(s.p + 9);
    memcpy(hash, s.p + 17, MARK_BYTES);
    return 0;
}
