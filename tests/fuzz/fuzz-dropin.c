/* What the drop-in API is sent: a line with path and query, a line with the content type, then the body; the body is also
 * taken for an update and for a list of kinds. */
#include "fuzz.h"

#include "serve/dropin_answer.h"
#include "serve/dropin_filter.h"
#include "serve/dropin_request.h"
#include "wire/event_json.h"

/* What is passed on is read as the same again, so no one behind takes it for a method that is answered here. */
static void try_target(struct slice path)
{
    struct buf out = BUF_EMPTY;
    struct dropin_target t, again;

    if (dropin_target_parse(path, &t) == 0) {
        CHECK(t.file == (t.method[0] == '\0'));
        CHECK(strspn(t.method, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
              strlen(t.method));
        dropin_target_write(&t, "1:T", slice_make(NULL, 0), &out);
        CHECK(dropin_target_parse(buf_slice(&out), &again) == 0);
        CHECK(again.file == t.file && again.test == t.test && !strcmp(again.method, t.method));
        CHECK(slice_eq(again.path, t.path) && slice_eq_str(buf_slice(&again.token), "1:T"));
        dropin_target_free(&again);
    }
    dropin_target_free(&t);
    buf_free(&out);
}

static void try_args(struct slice query, struct slice type, struct slice body)
{
    static const char *const names[] = {"offset", "limit", "allowed_updates", ""};
    struct buf value = BUF_EMPTY;
    struct dropin_args a;

    if (dropin_args_read(query, type, body, &a) == 0)
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            bool there = dropin_arg(&a, names[i], &value);
            int64_t v = dropin_arg_int(&a, names[i], 7, -5, 50);
            CHECK(v >= -5 && v <= 50 && (there || v == 7));
        }
    dropin_args_free(&a);
    buf_free(&value);
}

static void try_update(struct slice update)
{
    struct buf out = BUF_EMPTY;
    struct slice id;

    dropin_update(&out, update, 77);
    CHECK(json_member_bytes(buf_slice(&out), "update_id", &id) == 0 && slice_eq_str(id, "77"));
    buf_free(&out);
}

static void try_filter(struct slice list)
{
    struct dropin_filter f = {.mode = FILTER_ALL};

    if (!dropin_filter_set(&f, list))
        CHECK(f.mode == FILTER_ALL);
    else if (f.mode == FILTER_DEFAULT)
        CHECK(dropin_filter_wants(&f, "message") && !dropin_filter_wants(&f, "chat_member"));
    else
        CHECK(f.mode == FILTER_LIST && dropin_filter_wants(&f, f.kinds[0]));
    dropin_filter_clear(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice rest = slice_make(data, n);
    struct slice target = fuzz_line(&rest), type = fuzz_line(&rest);
    const char *q = target.n ? memchr(target.p, '?', target.n) : NULL;
    struct slice path = slice_make(target.p, q ? (size_t)(q - target.p) : target.n);
    struct slice query = q ? slice_make(q + 1, target.n - path.n - 1) : slice_make(NULL, 0);

    try_target(path);
    try_args(query, type, rest);
    try_update(rest);
    try_filter(rest);
    return 0;
}
