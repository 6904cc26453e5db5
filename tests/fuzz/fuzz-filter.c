/* What people and programs send to the api, by the first byte: a query, a JSON body, a time, a cursor, or a line of an
 * export. */
#include "fuzz.h"

#include "serve/api_params.h"
#include "wire/event_json.h"

#define NOW INT64_C(1795974368000)

static void one_filter(struct slice query, struct slice body)
{
    static const char *const accepts[] = {FILTER_NAMES, "limit", "wait", "all", NULL};
    struct params p;
    struct param_error e = {0};
    struct spool_filter f;
    struct filter_bot bot;
    int64_t number = 1;
    bool all = false;

    int rc = params_read(query, body, accepts, &p, &e);
    if (rc == 0)
        rc = filter_read(&p, NOW, &f, &bot, NULL, &e);
    if (rc == 0)
        rc = params_i64(&p, "limit", 1, 1000, &number, &e);
    if (rc == 0)
        CHECK(number >= 1 && number <= 1000);
    if (rc == 0)
        rc = params_ms(&p, "wait", 0, 30000, &number, &e);
    if (rc == 0)
        rc = params_bool(&p, "all", &all, &e);
    if (rc == 0)
        CHECK(f.since >= 0 && f.until >= 0 && f.box >= -1 && f.box <= BOX_OUT);
    else
        CHECK((e.status == 400 || e.status == 422) && e.text[0] && strlen(e.text) < sizeof(e.text));
    params_free(&p);
}

/* What was read is written and read again: the same event. */
static void one_line(struct slice line)
{
    struct event_line a, b;
    char why[256] = "";

    if (event_line_read(line, &a, why) < 0) {
        CHECK(why[0]);
        event_line_free(&a);
        return;
    }
    struct buf out = BUF_EMPTY;
    struct json_out j;
    json_start(&j, &out);
    event_write(&j, a.bot, a.bot_id, a.box, &a.ev, &a.st, true);
    json_end(&j);
    CHECK(!memchr(out.p, '\n', out.n));
    CHECK(event_line_read(buf_slice(&out), &b, why) == 0);
    CHECK(slice_eq(a.ev.payload, b.ev.payload));
    CHECK(a.ev.received_at == b.ev.received_at && a.ev.update_id == b.ev.update_id);
    CHECK(strcmp(a.ev.kind, b.ev.kind) == 0 && a.st.state == b.st.state && a.st.reason == b.st.reason);
    CHECK(a.st.attempts == b.st.attempts && a.st.n_history == b.st.n_history);
    CHECK(strcmp(a.st.error, b.st.error) == 0);
    event_line_free(&a);
    event_line_free(&b);
    buf_free(&out);
}

/* Not each byte of a number comes back (leading zeros), but each number. */
static void one_cursor(struct slice text)
{
    struct spool_cursor a, b;
    char again[64];

    if (spool_cursor_parse(text, &a) < 0)
        return;
    CHECK(a.started && a.bot_id >= 0 && (a.box == BOX_IN || a.box == BOX_OUT));
    spool_cursor_text(&a, again);
    CHECK(spool_cursor_parse(slice_str(again), &b) == 0);
    CHECK(a.bot_id == b.bot_id && a.box == b.box && a.seq == b.seq);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int64_t ms = 0;

    if (n == 0)
        return 0;
    struct slice rest = slice_make(data + 1, n - 1);
    switch (data[0]) {
    case 'q':
        one_filter(rest, slice_make(NULL, 0));
        break;
    case 'b':
        one_filter(slice_make(NULL, 0), rest);
        break;
    case 'c':
        one_cursor(rest);
        break;
    case 't':
        if (param_time(rest, NOW, &ms) == 0)
            CHECK(ms >= 0);
        break;
    default:
        one_line(rest);
    }
    return 0;
}
