/* Salvage of rows beside events. Behind one that cannot be read it goes on at the next key from which a walk can
 * begin, which is found by strides and halving, on the first bytes of the key as a number. */
#include <string.h>

#include "spool/salvage.h"

#define WIDTH 16 /* bytes of a key that the search tells apart: as bot and half of a hash */

#define STEPS 32 /* places tried one by one behind a fault; then in growing strides */

salvage_place salvage_search(salvage_place bad, salvage_place end, salvage_begins_fn *begins, void *arg)
{
    salvage_place good = end, step = 1;

    for (unsigned tries = 0; bad < end && step < end - bad; tries++) {
        if (begins(arg, bad + step)) {
            good = bad + step;
            break;
        }
        bad += step;
        if (tries >= STEPS)
            step *= 2;
    }
    while (bad < good && good - bad > 1) {
        salvage_place middle = bad + (good - bad) / 2;
        if (begins(arg, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

static salvage_place place_of(struct slice key)
{
    salvage_place at = 0;

    for (size_t i = 0; i < WIDTH; i++)
        at = at << 8 | (i < key.n ? (unsigned char)key.p[i] : 0);
    return at;
}

static struct key key_at(salvage_place at)
{
    struct key k = {.n = WIDTH};

    for (size_t i = WIDTH; i > 0; i--, at >>= 8)
        k.b[i - 1] = (unsigned char)at;
    return k;
}

struct rows {
    struct db *from;
    enum family family;
    struct slice upper;
};

static bool begins_at(void *arg, salvage_place at)
{
    const struct rows *r = arg;
    struct key lower = key_at(at);
    struct err e = ERR_NONE;

    return db_iter_free(db_iter_new(r->from, r->family, key_slice(&lower), r->upper), &e) == 0;
}

bool salvage_behind(struct db *from, enum family f, struct key *at, struct slice upper)
{
    struct rows r = {from, f, upper};
    salvage_place end = place_of(upper), good = salvage_search(place_of(key_slice(at)), end, begins_at, &r);

    *at = key_at(good);
    return good < end;
}

uint64_t salvage_rows(struct spool *to, struct db *from, enum family f, struct key lower, struct key upper,
                      salvage_row_fn *each)
{
    uint64_t faults = 0;
    bool more = true;

    while (more && spool_usable(to)) {
        struct err e = ERR_NONE;
        struct db_iter *it = db_iter_new(from, f, key_slice(&lower), key_slice(&upper));
        for (; db_iter_valid(it) && spool_usable(to); db_iter_next(it)) {
            struct slice key = db_iter_key(it);
            lower.n = key.n < KEY_MAX ? key.n : KEY_MAX;
            memcpy(lower.b, key.p, lower.n);
            each(to, f, key, db_iter_value(it));
            if (spool_batch_full(to))
                commit_and_wait(to);
        }
        more = db_iter_free(it, &e) < 0;
        faults += more;
        more = more && salvage_behind(from, f, &lower, key_slice(&upper));
    }
    commit_and_wait(to);
    return faults;
}
