/* The Bot API's answers, and updates under other ids. */
#include "serve/dropin_answer.h"

#include <inttypes.h>

#include "wire/event_json.h"
#include "wire/json.h"

void dropin_error(struct buf *out, int code, const char *description)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_kv_bool(&j, "ok", false);
    json_kv_int(&j, "error_code", code);
    json_kv_cstr(&j, "description", description);
    json_object_end(&j);
    json_end(&j);
}

void dropin_result(struct buf *out, const char *value, const char *description)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_kv_bool(&j, "ok", true);
    json_key(&j, "result");
    json_raw(&j, slice_str(value));
    if (description)
        json_kv_cstr(&j, "description", description);
    json_object_end(&j);
    json_end(&j);
}

void dropin_update(struct buf *out, struct slice update, int64_t served_id)
{
    struct slice number;
    int rc = json_member_bytes(update, "update_id", &number);

    if (rc == 0) {
        size_t before = (size_t)(number.p - update.p);
        buf_add(out, update.p, before);
        buf_printf(out, "%" PRId64, served_id);
        buf_add(out, number.p + number.n, update.n - before - number.n);
        return;
    }
    /* Without an id of its own, or, since anything may be imported, no JSON at all: then the client gets an update
     * without content, which its offset confirms like any other. */
    buf_printf(out, "{\"update_id\":%" PRId64, served_id);
    const char *brace = rc == -1 ? memchr(update.p, '{', update.n) : NULL;
    if (!brace) {
        buf_add_char(out, '}');
        return;
    }
    struct slice rest = slice_make(brace + 1, update.n - (size_t)(brace + 1 - update.p));
    size_t blank = 0;
    while (blank < rest.n && (unsigned char)rest.p[blank] <= ' ')
        blank++;
    if (rest.p[blank] != '}')
        buf_add_char(out, ',');
    buf_add_slice(out, rest);
}
