#include "ops/alert_json.h"

#include <stdio.h>

#include "wire/json.h"

void alert_add_json(struct buf *out, const struct alert *a)
{
    char since[40];
    struct json_out j;

    snprintf(since, sizeof(since), "%lld.%03d", (long long)(a->since / 1000), (int)(a->since % 1000));
    json_start(&j, out);
    json_object(&j);
    json_kv_cstr(&j, "alert", alert_name(a->kind));
    json_kv_cstr(&j, "bot", a->bot[0] ? a->bot : NULL);
    json_kv_cstr(&j, "state", a->over ? "over" : "firing");
    json_kv_int(&j, "value", a->value);
    json_key(&j, "since");
    json_raw(&j, slice_str(since));
    json_kv_cstr(&j, "message", a->message);
    json_kv_cstr(&j, "next", a->next);
    json_object_end(&j);
    json_end(&j);
}

void alert_add_text(struct buf *out, const struct alert *a)
{
    buf_printf(out, "%s tgspool %s%s%s\n%s\nnext: %s", a->over ? "[over]" : "[alert]", alert_name(a->kind),
               a->bot[0] ? ", bot " : "", a->bot, a->message, a->next);
}
