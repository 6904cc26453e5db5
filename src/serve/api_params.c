/* Parameters and filters of requests. */
#include "serve/api_params.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "wire/url.h"

#define CUT(s) (int)((s).n > 64 ? 64 : (s).n), (s).p ? (s).p : ""

int param_fail(struct param_error *e, int status, const char *fmt, ...)
{
    va_list ap;

    e->status = status;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return -1;
}

/* "unknown WHAT X; accepted: a, b, c", or that there are none. */
static int fail_unknown(struct param_error *e, const char *what, struct slice name,
                        const char *const *accepts)
{
    struct buf list = BUF_EMPTY;

    for (size_t i = 0; accepts[i]; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", accepts[i]);
    param_fail(e, 400, "unknown %s \"%.*s\"; accepted: %s", what, CUT(name),
               list.n ? buf_str(&list) : "none");
    buf_free(&list);
    return -1;
}

static bool accepted(const char *const *accepts, struct slice name)
{
    for (size_t i = 0; accepts[i]; i++)
        if (slice_eq_str(name, accepts[i]))
            return true;
    return false;
}

static int add(struct params *p, struct param item, const char *what, const char *const *accepts,
               struct param_error *e)
{
    if (!accepted(accepts, item.name))
        return fail_unknown(e, what, item.name, accepts);
    for (size_t i = 0; i < p->n; i++)
        if (slice_eq(p->list[i].name, item.name))
            return param_fail(e, 400, "\"%.*s\" is given twice", CUT(item.name));
    if (p->n == PARAMS_MAX)
        return param_fail(e, 400, "too many parameters");
    p->list[p->n++] = item;
    return 0;
}

/* Appends to decoded, which has room, so that earlier parameters' bytes stay where they are. */
static struct slice keep(struct buf *decoded, const struct buf *b)
{
    size_t at = decoded->n;

    buf_add_slice(decoded, buf_slice(b));
    return slice_make(decoded->p + at, b->n);
}

static int read_query(struct slice query, const char *const *accepts, struct params *out,
                      struct param_error *e)
{
    struct buf name = BUF_EMPTY, value = BUF_EMPTY;
    int got, rc = 0;

    buf_reserve(&out->decoded, query.n + 1);
    while (rc == 0 && (got = query_next(&query, &name, &value)) != 0) {
        if (got < 0) {
            rc = param_fail(e, 400, "a broken %%-escape in the query");
            break;
        }
        struct slice kept = keep(&out->decoded, &name);
        rc = add(out, (struct param){kept, keep(&out->decoded, &value), NULL}, "parameter", accepts, e);
    }
    buf_free(&name);
    buf_free(&value);
    return rc;
}

static struct slice scalar_text(const struct json *v)
{
    switch (json_type(v)) {
    case JSON_STRING:
        return json_string(v);
    case JSON_NUMBER:
        return json_number(v);
    case JSON_BOOL:
        return slice_str(json_true(v) ? "true" : "false");
    default:
        return slice_make(NULL, 0);
    }
}

static int read_body(struct slice body, const char *const *accepts, struct params *out, struct param_error *e)
{
    char why[128];

    out->root = json_parse(body, why);
    if (!out->root)
        return param_fail(e, 400, "the body is not JSON: %s", why);
    if (json_type(out->root) != JSON_OBJECT)
        return param_fail(e, 400, "the body is %s; a JSON object is needed",
                          json_type_name(json_type(out->root)));
    for (size_t i = 0; i < json_length(out->root); i++) {
        const struct json *v;
        struct slice name = json_name(out->root, i, &v);
        if (json_type(v) == JSON_NULL && accepted(accepts, name))
            continue;
        if (add(out, (struct param){name, scalar_text(v), v}, "member", accepts, e) < 0)
            return -1;
    }
    return 0;
}

int params_read(struct slice query, struct slice body, const char *const *accepts, struct params *out,
                struct param_error *e)
{
    memset(out, 0, sizeof(*out));
    if (read_query(query, accepts, out, e) < 0)
        return -1;
    return body.n ? read_body(body, accepts, out, e) : 0;
}

void params_free(struct params *p)
{
    buf_free(&p->decoded);
    json_free(p->root);
    p->root = NULL;
    p->n = 0;
}

int params_check_object(const struct json *object, const char *const *accepts, const char *what,
                        struct param_error *e)
{
    if (json_type(object) != JSON_OBJECT)
        return param_fail(e, 400, "%s is %s; a JSON object is needed", what,
                          json_type_name(json_type(object)));
    for (size_t i = 0; i < json_length(object); i++) {
        struct slice name = json_name(object, i, NULL);
        if (!accepted(accepts, name))
            return fail_unknown(e, "member", name, accepts);
    }
    return 0;
}

void params_of_object(const struct json *object, struct params *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < json_length(object) && out->n < PARAMS_MAX; i++) {
        const struct json *v;
        struct slice name = json_name(object, i, &v);
        if (json_type(v) != JSON_NULL)
            out->list[out->n++] = (struct param){name, scalar_text(v), v};
    }
}

const struct param *params_get(const struct params *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (slice_eq_str(p->list[i].name, name))
            return &p->list[i];
    return NULL;
}

int params_i64(const struct params *p, const char *name, int64_t min, int64_t max, int64_t *out,
               struct param_error *e)
{
    const struct param *it = params_get(p, name);

    if (it && text_to_i64(it->text, min, max, out) < 0)
        return param_fail(e, 422, "\"%s\" must be a whole number from %lld to %lld", name, (long long)min,
                          (long long)max);
    return 0;
}

int params_ms(const struct params *p, const char *name, int64_t min_ms, int64_t max_ms, int64_t *out,
              struct param_error *e)
{
    const struct param *it = params_get(p, name);
    char least[32], most[32];

    if (!it)
        return 0;
    if (text_seconds(it->text, out) < 0 || *out < min_ms || *out > max_ms)
        return param_fail(e, 422, "\"%s\" must be a time from %s to %s: seconds, or with ms, s, m, h or d",
                          name, text_from_ms(min_ms, least), text_from_ms(max_ms, most));
    return 0;
}

int params_bool(const struct params *p, const char *name, bool *out, struct param_error *e)
{
    const struct param *it = params_get(p, name);

    if (!it)
        return 0;
    if (slice_eq_str(it->text, "true") || slice_eq_str(it->text, "1"))
        *out = true;
    else if (slice_eq_str(it->text, "false") || slice_eq_str(it->text, "0"))
        *out = false;
    else
        return param_fail(e, 422, "\"%s\" must be true or false", name);
    return 0;
}

/* An RFC 3339 date, or date and time in UTC. */
static int calendar_time(struct slice text, int64_t *ms)
{
    char s[40];
    struct tm tm = {0};

    if (text.n >= sizeof(s))
        return -1;
    memcpy(s, text.p, text.n);
    s[text.n] = '\0';
    char *rest = strptime(s, "%Y-%m-%d", &tm);
    if (!rest)
        return -1;
    int64_t thousandths = 0;
    if (*rest) {
        rest = strptime(rest, "T%H:%M:%S", &tm);
        if (!rest)
            return -1;
        size_t n = strcspn(rest, "Z");
        if (strcmp(rest + n, "Z") != 0)
            return -1;
        char fraction[48];
        snprintf(fraction, sizeof(fraction), "0%.*s", (int)n, rest);
        if (n && text_to_thousandths(slice_str(fraction), &thousandths) < 0)
            return -1;
    }
    *ms = (int64_t)timegm(&tm) * 1000 + thousandths;
    return *ms < 0 ? -1 : 0;
}

int param_time(struct slice text, int64_t now, int64_t *ms)
{
    int64_t seconds, age;

    if (text.n == 0)
        return -1;
    if (text_to_i64(text, 0, INT64_MAX / 2000, &seconds) == 0) {
        *ms = seconds * 1000;
        return 0;
    }
    if (text_to_thousandths(text, ms) == 0 || calendar_time(text, ms) == 0)
        return 0;
    if (text_to_ms(text, &age) < 0)
        return -1;
    *ms = age < now ? now - age : 1;
    return 0;
}

static int one_state(struct slice name, struct spool_filter *f, struct param_error *e)
{
    enum state st;

    if (state_from_name(name, &st) < 0)
        return param_fail(e, 422, "\"state\" must be of pending, processing, done, dead; not \"%.*s\"",
                          CUT(name));
    f->states[st] = true;
    return 0;
}

/* One name, several with commas, or a JSON array of names. */
static int read_states(const struct param *it, struct spool_filter *f, struct param_error *e)
{
    struct slice s = it->text;

    if (it->json && json_type(it->json) == JSON_ARRAY) {
        for (size_t i = 0; i < json_length(it->json); i++)
            if (one_state(json_string(json_item(it->json, i)), f, e) < 0)
                return -1;
        return 0;
    }
    for (;;) {
        const char *comma = s.n ? memchr(s.p, ',', s.n) : NULL;
        size_t n = comma ? (size_t)(comma - s.p) : s.n;
        if (one_state(slice_make(s.p, n), f, e) < 0)
            return -1;
        if (!comma)
            return 0;
        s = slice_make(comma + 1, s.n - n - 1);
    }
}

static int read_when(const struct params *p, const char *name, int64_t now, int64_t *out,
                     struct param_error *e)
{
    const struct param *it = params_get(p, name);

    if (it && param_time(it->text, now, out) < 0)
        return param_fail(
            e, 422,
            "\"%s\" must be a time: Unix seconds, 2026-11-29, 2026-11-29T17:46:08Z, or an age such "
            "as 2h",
            name);
    return 0;
}

/* Copies a text parameter into an array, refusing what does not fit. */
static int read_text(const struct params *p, const char *name, char *out, size_t size, struct param_error *e)
{
    const struct param *it = params_get(p, name);

    if (!it)
        return 0;
    if (it->text.n == 0 || it->text.n >= size || memchr(it->text.p, '\0', it->text.n))
        return param_fail(e, 422, "\"%s\" must be a text of 1 to %zu bytes", name, size - 1);
    memcpy(out, it->text.p, it->text.n);
    out[it->text.n] = '\0';
    return 0;
}

static int read_box(const struct params *p, struct spool_filter *f, struct param_error *e)
{
    const struct param *it = params_get(p, "box");

    f->box = -1;
    if (!it)
        return 0;
    if (slice_eq_str(it->text, "in"))
        f->box = BOX_IN;
    else if (slice_eq_str(it->text, "out"))
        f->box = BOX_OUT;
    else
        return param_fail(e, 422, "\"box\" must be in or out");
    return 0;
}

int filter_read(const struct params *p, int64_t now, struct spool_filter *out, struct filter_bot *bot,
                bool *any, struct param_error *e)
{
    static const char *const names[] = {FILTER_NAMES, NULL};
    const struct param *state = params_get(p, "state");

    memset(out, 0, sizeof(*out));
    if (read_text(p, "bot", bot->name, sizeof(bot->name), e) < 0 || read_box(p, out, e) < 0 ||
        (state && read_states(state, out, e) < 0) ||
        params_i64(p, "chat", INT64_MIN, INT64_MAX, &out->chat, e) < 0 ||
        params_i64(p, "user", INT64_MIN, INT64_MAX, &out->user, e) < 0 ||
        read_text(p, "kind", out->kind, sizeof(out->kind), e) < 0 ||
        read_when(p, "since", now, &out->since, e) < 0 || read_when(p, "until", now, &out->until, e) < 0 ||
        read_text(p, "error", out->error, sizeof(out->error), e) < 0)
        return -1;
    out->bot = params_get(p, "bot") ? bot->name : NULL;
    out->has_chat = params_get(p, "chat") != NULL;
    out->has_user = params_get(p, "user") != NULL;
    for (size_t i = 0; any && names[i]; i++)
        *any |= params_get(p, names[i]) != NULL;
    return 0;
}
