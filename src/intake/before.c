/* A note of the spool, in JSON. The webhook's address is left out of it: it may hold secrets, and its own bot
 * knows it. */
#include "intake/before.h"

#include <stdlib.h>

#include "base/mem.h"
#include "spool/spool.h"
#include "telegram/botapi.h"
#include "wire/json.h"

#define NOTE "before"

bool before_is_known(struct spool_box *box)
{
    struct buf b = BUF_EMPTY;
    bool known = spool_get_note(box, NOTE, &b);

    buf_free(&b);
    return known;
}

void before_keep(struct spool_box *box, const struct webhook_info *info)
{
    struct buf b = BUF_EMPTY;
    struct json_out j;

    if (before_is_known(box))
        return;
    json_start(&j, &b);
    json_object(&j);
    json_kv_bool(&j, "had_webhook", info->url[0] != '\0');
    json_key(&j, "allowed_updates");
    if (info->allowed_updates) {
        json_array(&j);
        for (size_t i = 0; i < info->n_allowed; i++)
            json_cstr(&j, info->allowed_updates[i]);
        json_array_end(&j);
    } else {
        json_null(&j);
    }
    json_object_end(&j);
    json_end(&j);
    if (b.n <= SPOOL_NOTE_MAX)
        spool_set_note(box, NOTE, buf_slice(&b));
    buf_free(&b);
}

bool before_read(struct spool_box *box, struct before *out)
{
    struct buf b = BUF_EMPTY;
    bool known = spool_get_note(box, NOTE, &b);
    struct json *root = json_parse(buf_slice(&b), NULL);
    const struct json *kinds = json_get(root, "allowed_updates");

    *out = (struct before){.had_webhook = json_true(json_get(root, "had_webhook"))};
    if (kinds && json_type(kinds) == JSON_ARRAY && json_length(kinds)) {
        out->allowed_updates = xcalloc(json_length(kinds), sizeof(char *));
        for (size_t i = 0; i < json_length(kinds); i++) {
            struct slice k = json_string(json_item(kinds, i));
            out->allowed_updates[out->n_allowed++] = xstrndup(k.p ? k.p : "", k.n);
        }
    }
    json_free(root);
    buf_free(&b);
    return known;
}

void before_free(struct before *b)
{
    for (size_t i = 0; i < b->n_allowed; i++)
        free(b->allowed_updates[i]);
    free(b->allowed_updates);
    *b = (struct before){.n_allowed = 0};
}
