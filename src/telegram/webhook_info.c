/* What Telegram says about a bot's webhook. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "telegram/botapi.h"
#include "wire/json.h"

static void read_clean(const struct json *v, char *out, size_t size)
{
    struct buf b = BUF_EMPTY;

    text_add_clean(&b, json_string(v), size - 1, false);
    snprintf(out, size, "%s", buf_str(&b));
    buf_free(&b);
}

static int64_t read_number(const struct json *v)
{
    int64_t n;
    return json_to_i64(v, &n) || n < 0 ? 0 : n;
}

int webhook_info_read(const struct json *result, struct webhook_info *out)
{
    const struct json *url = json_get(result, "url"), *kinds = json_get(result, "allowed_updates");

    *out = (struct webhook_info){.url = NULL};
    if (!url || json_type(url) != JSON_STRING)
        return -1;
    struct slice s = json_string(url);
    out->url = xstrndup(s.p ? s.p : "", s.n);
    out->has_custom_certificate = json_true(json_get(result, "has_custom_certificate"));
    out->pending = read_number(json_get(result, "pending_update_count"));
    read_clean(json_get(result, "ip_address"), out->ip_address, sizeof(out->ip_address));
    out->last_error_at = read_number(json_get(result, "last_error_date"));
    read_clean(json_get(result, "last_error_message"), out->last_error, sizeof(out->last_error));
    out->last_sync_error_at = read_number(json_get(result, "last_synchronization_error_date"));
    out->max_connections = read_number(json_get(result, "max_connections"));
    if (!kinds || json_type(kinds) != JSON_ARRAY || json_length(kinds) == 0)
        return 0;
    out->allowed_updates = xcalloc(json_length(kinds) + 1, sizeof(char *));
    for (size_t i = 0; i < json_length(kinds); i++) {
        struct slice k = json_string(json_item(kinds, i));
        if (k.n)
            out->allowed_updates[out->n_allowed++] = xstrndup(k.p, k.n);
    }
    return 0;
}

void webhook_info_free(struct webhook_info *i)
{
    free(i->url);
    for (size_t k = 0; k < i->n_allowed; k++)
        free(i->allowed_updates[k]);
    free(i->allowed_updates);
    *i = (struct webhook_info){.url = NULL};
}
