/* Idempotency keys: held by an event while its handler works, done with it, let go if it does not succeed. A key is
 * known by 16 bytes of its SHA-256; those that are done are forgotten when their time is up. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "spool/internal.h"

static void key_hash(struct slice key, unsigned char hash[MARK_BYTES])
{
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (EVP_Digest(key.n ? key.p : "", key.n, digest, NULL, EVP_sha256(), NULL) != 1)
        abort(); /* no SHA-256: keys could not be told apart */
    memcpy(hash, digest, MARK_BYTES);
}

/* When a done key's time is up; as with an event's, by the clock as far as that is known. */
static int64_t mark_end(const struct spool *sp, const struct mark_record *r)
{
    return stepped_past(sp, r->expiry - r->ttl) + r->ttl;
}

static bool mark_is_past(const struct spool *sp, const struct mark_record *r)
{
    return r->done && stepped_age_least(sp, r->expiry - r->ttl) >= r->ttl;
}

/* The mark, if it is there and not past its time. */
static int row_mark(struct spool_box *b, const unsigned char hash[MARK_BYTES], struct mark_record *out)
{
    struct buf v = BUF_EMPTY;
    struct err e;

    int rc = row_get(b->sp, FAMILY_MARKS, key_mark(b->bot_id, hash), &v);
    if (rc > 0 && record_mark_decode(buf_slice(&v), out) < 0) {
        rc = err_set(&e, EX_DATAERR, "the record of an idempotency key cannot be decoded");
        spool_break(b->sp, &e);
    }
    buf_free(&v);
    return rc > 0 && mark_is_past(b->sp, out) ? 0 : rc;
}

void mark_put(struct spool *sp, int64_t bot, const unsigned char hash[MARK_BYTES],
              const struct mark_record *r)
{
    struct key k = key_mark(bot, hash);
    struct buf v = BUF_EMPTY;

    if (!spool_usable(sp))
        return;
    record_mark(&v, r);
    db_put(store_db(sp->store), FAMILY_MARKS, key_slice(&k), buf_slice(&v));
    buf_free(&v);
    if (!r->done)
        return;
    struct key x = key_mark_expiry(r->expiry, bot, hash);
    db_put(store_db(sp->store), FAMILY_MARKS, key_slice(&x), slice_make("", 0));
    if (r->expiry < sp->marks_from)
        sp->marks_from = r->expiry;
    if (r->expiry < sp->marks_due)
        sp->marks_due = r->expiry;
}

static struct mark_record mark_make(const struct spool_box *b, bool done, int64_t ttl_ms, uint64_t seq)
{
    int64_t ttl = ttl_ms > 0 ? ttl_ms : SPOOL_KEY_TTL_MS;

    if (ttl > SPOOL_KEY_TTL_MAX_MS)
        ttl = SPOOL_KEY_TTL_MAX_MS;
    return (struct mark_record){
        .done = done, .expiry = done ? b->sp->now + ttl : 0, .ttl = ttl, .box = b->which, .seq = seq};
}

void mark_done(struct spool_box *b, struct slice key, int64_t ttl_ms, uint64_t seq)
{
    unsigned char hash[MARK_BYTES];
    struct mark_record r;

    key_hash(key, hash);
    if (row_mark(b, hash, &r) > 0 && r.done)
        return;
    r = mark_make(b, true, ttl_ms, seq);
    mark_put(b->sp, b->bot_id, hash, &r);
}

void marks_settle(struct spool_box *b, uint64_t seq, struct event_state *st, bool done)
{
    struct mark_record r;

    for (size_t i = 0; i < st->n_marks; i++) {
        if (row_mark(b, st->marks[i], &r) <= 0 || r.done)
            continue;
        if (done) {
            r = mark_make(b, true, r.ttl, seq);
            mark_put(b->sp, b->bot_id, st->marks[i], &r);
        } else {
            row_delete(b, FAMILY_MARKS, key_mark(b->bot_id, st->marks[i]));
        }
    }
    st->n_marks = 0;
}

/* An event in processing asks for a key that nobody has. */
static enum keyed hold_key(struct spool_box *b, const unsigned char hash[MARK_BYTES], int64_t ttl_ms,
                           uint64_t seq, struct state_record *state)
{
    struct event_state *st = &state->st;

    if (st->n_marks == MARKS_MAX)
        return KEY_TOO_MANY;
    memcpy(st->marks[st->n_marks++], hash, MARK_BYTES);
    row_put_state(b, CLASS_UNFINISHED, seq, state);
    struct mark_record r = mark_make(b, false, ttl_ms, seq);
    mark_put(b->sp, b->bot_id, hash, &r);
    return spool_usable(b->sp) ? KEY_FIRST : KEY_FAILED;
}

enum keyed spool_key(struct spool_box *b, struct slice key, int64_t ttl_ms, uint64_t seq,
                     const unsigned char token[TOKEN_BYTES])
{
    unsigned char hash[MARK_BYTES];
    struct state_record state;
    struct mark_record r;

    key_hash(key, hash);
    if (seq) {
        switch (held_state(b, seq, token, &state)) {
        case COMPLETED:
            break;
        case COMPLETE_LOST:
            return KEY_LOST;
        case COMPLETE_UNKNOWN:
            return KEY_UNKNOWN;
        case COMPLETE_FAILED:
            return KEY_FAILED;
        }
    }
    int there = row_mark(b, hash, &r);
    if (there < 0)
        return KEY_FAILED;
    if (there && r.done)
        return KEY_IS_DONE;
    if (there) /* the event that holds it may ask again */
        return seq && r.seq == seq && r.box == b->which ? KEY_FIRST : KEY_IS_HELD;
    if (seq)
        return hold_key(b, hash, ttl_ms, seq, &state);
    r = mark_make(b, true, ttl_ms, 0);
    mark_put(b->sp, b->bot_id, hash, &r);
    return spool_usable(b->sp) ? KEY_FIRST : KEY_FAILED;
}

/* An expiry row is followed to its mark, which may have been made anew since, or by a time that was behind. */
static void expire_one(struct spool *sp, int64_t expiry, int64_t bot, const unsigned char hash[MARK_BYTES])
{
    struct db *db = store_db(sp->store);
    struct key k = key_mark(bot, hash), x = key_mark_expiry(expiry, bot, hash);
    struct buf v = BUF_EMPTY;
    struct mark_record r;

    int there = row_get(sp, FAMILY_MARKS, k, &v);
    if (there >= 0) {
        db_delete(db, FAMILY_MARKS, key_slice(&x));
        if (there && record_mark_decode(buf_slice(&v), &r) == 0 && r.done && r.expiry == expiry) {
            r.expiry = mark_end(sp, &r);
            r.ttl = r.expiry - sp->now; /* the rest counts from now: what was put right is not again */
            if (r.ttl > 0)
                mark_put(sp, bot, hash, &r);
            else
                db_delete(db, FAMILY_MARKS, key_slice(&k));
        }
    }
    buf_free(&v);
}

struct expired_key {
    int64_t expiry, bot;
    unsigned char hash[MARK_BYTES];
};

void marks_expire(struct spool *sp)
{
    static const unsigned char low[MARK_BYTES];
    struct expired_key found[WORK_PER_TICK];
    struct err e = ERR_NONE;
    unsigned n = 0;

    if (!spool_usable(sp) || sp->now < sp->marks_due || stepped_rests(sp))
        return;
    struct key lower = key_mark_expiry(sp->marks_from, INT64_MIN, low);
    struct key upper = {.n = 0};
    upper.b[upper.n++] = 2; /* behind the last row of expiry */
    sp->marks_due = TIME_NEVER;
    struct db_iter *it = db_iter_new(store_db(sp->store), FAMILY_MARKS, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it)) {
        struct expired_key *x = &found[n];
        if (key_mark_expiry_decode(db_iter_key(it), &x->expiry, &x->bot, x->hash) < 0)
            continue;
        if (x->expiry > sp->now || n == sp->work_left || n + 1 == WORK_PER_TICK) {
            sp->marks_due = x->expiry;
            break;
        }
        n++;
    }
    if (db_iter_free(it, &e) < 0) {
        spool_break(sp, &e);
        return;
    }
    if (n)
        sp->marks_from = found[n - 1].expiry;
    for (unsigned i = 0; i < n; i++)
        expire_one(sp, found[i].expiry, found[i].bot, found[i].hash);
    sp->work_left -= n;
}
