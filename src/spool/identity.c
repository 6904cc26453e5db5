/* Who this spool is: an instance that never changes, and a generation that is new whenever what is in it may not go on
 * where it stood. */
#include <stdio.h>

#include "base/random.h"
#include "spool/internal.h"

static struct key identity_key(void)
{
    return key_name("identity");
}

/* Read as a walk of one row. */
static int read_row(struct spool *sp, struct identity_record *out, struct err *e)
{
    struct key lower = identity_key(), upper = key_after_prefix(lower);
    struct db_iter *it = db_iter_new(store_db(sp->store), FAMILY_META, key_slice(&lower), key_slice(&upper));
    bool there = db_iter_valid(it), bad = there && record_identity_decode(db_iter_value(it), out) < 0;

    if (db_iter_free(it, e) < 0)
        return -1;
    return bad ? err_set(e, EX_DATAERR, "the record of the spool's identity cannot be decoded") : there;
}

/* A spool that has none gets it with the first batch that makes a box: until then nothing of it can matter. */
int identity_load(struct spool *sp)
{
    struct err e = ERR_NONE;
    int rc = read_row(sp, &sp->identity, &e);

    if (rc < 0)
        spool_break(sp, &e);
    sp->identity_new = rc == 0;
    if (rc == 0 && !sp->look && !sp->identity.generation) { /* else it was made in a batch that was lost */
        random_bytes(sp->identity.instance, sizeof(sp->identity.instance));
        sp->identity.generation = (uint64_t)sp->now;
    }
    return rc < 0 ? -1 : 0;
}

void identity_save(struct spool *sp)
{
    struct key k = identity_key();
    struct buf v = BUF_EMPTY;

    record_identity(&v, &sp->identity);
    db_put(store_db(sp->store), FAMILY_META, key_slice(&k), buf_slice(&v));
    sp->identity_new = false;
    buf_free(&v);
}

void identity_renew(struct spool *sp)
{
    uint64_t now = (uint64_t)sp->now;

    sp->identity.generation = now > sp->identity.generation ? now : sp->identity.generation + 1;
    identity_save(sp);
}

void spool_identity(const struct spool *sp, char instance[33], uint64_t *generation)
{
    for (size_t i = 0; i < sizeof(sp->identity.instance); i++)
        snprintf(instance + 2 * i, 3, "%02x", sp->identity.instance[i]);
    *generation = sp->identity.generation;
}
