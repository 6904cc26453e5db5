/* Notes: small durable texts about a bot that are no event's, such as what Telegram was told before us. */
#include <assert.h>
#include <string.h>

#include "spool/internal.h"

void spool_set_note(struct spool_box *b, const char *name, struct slice text)
{
    struct key k = key_note(b->bot_id, name);

    assert(text.n <= SPOOL_NOTE_MAX);
    if (spool_usable(b->sp))
        db_put(store_db(b->sp->store), FAMILY_META, key_slice(&k), text);
}

bool spool_get_note(struct spool_box *b, const char *name, struct buf *out)
{
    return row_get(b->sp, FAMILY_META, key_note(b->bot_id, name), out) > 0;
}
