/* Looking at events: one, or a page of those that pass a filter. A page is made in slices; one that takes
 * long is cut short and goes on from its cursor. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "serve/api_call.h"
#include "wire/event_json.h"
#include "wire/url.h"

#define PAGE_DEFAULT 50
#define PAGE_MAX 1000
#define PAGE_BYTES (1u << 20) /* a page ends when it is larger */
#define PAGE_TIME_MS 2000     /* or took longer */
#define PAGES_AT_ONCE 8       /* being made; the others wait */
#define SCAN 64               /* records between two looks at the clock */
#define SCAN_WITH_PAYLOAD 8

struct page {
    struct api_work work;
    struct spool_filter filter;
    struct filter_bot bot;
    struct spool_cursor cursor;
    unsigned limit, n;
    bool payload, begun;
    int64_t give_up;
    struct buf out;
};

static void drop_page(struct api_call *c)
{
    struct page *pg = c->state;

    if (pg->begun)
        c->api->n_pages--;
    list_del(&pg->work.link);
    buf_free(&pg->out);
    free(pg);
}

static bool page_full(const struct page *pg)
{
    return pg->n >= pg->limit || pg->out.n >= PAGE_BYTES;
}

/* One event a line, which makes an export of a page. */
static bool page_event(void *arg, struct spool_box *b, const struct event *ev, const struct event_state *st)
{
    struct page *pg = arg;
    struct json_out j;

    if (pg->n)
        buf_add_char(&pg->out, ',');
    buf_add_char(&pg->out, '\n');
    json_start(&j, &pg->out);
    event_write(&j, spool_box_bot(b), spool_box_bot_id(b), spool_box_which(b), ev, st, pg->payload);
    json_end(&j);
    pg->n++;
    return !page_full(pg);
}

static void page_answer(struct page *pg, bool at_end)
{
    char cursor[64];

    buf_add_str(&pg->out, "\n],\"next\":");
    if (at_end) {
        buf_add_str(&pg->out, "null}");
    } else {
        spool_cursor_text(&pg->cursor, cursor); /* of [0-9a-z.-]: needs no escape */
        buf_printf(&pg->out, "\"%s\"}", cursor);
    }
    api_answer(pg->work.call, 200, buf_slice(&pg->out));
}

static void page_slice(struct api_work *w, int64_t until_us)
{
    struct page *pg = list_item(w, struct page, work);
    struct api *api = pg->work.call->api;
    bool at_end = false;

    if (!pg->begun && api->n_pages == PAGES_AT_ONCE)
        return; /* it has its turn when one of those is whole */
    if (!pg->begun) {
        pg->begun = true;
        pg->give_up = api_now(api) + PAGE_TIME_MS;
        api->n_pages++;
    }
    do {
        at_end = spool_each(api->sp, &pg->filter, &pg->cursor, pg->payload ? SCAN_WITH_PAYLOAD : SCAN,
                            pg->payload, page_event, pg);
    } while (!at_end && !page_full(pg) && api->hooks.us() < until_us);
    if (!spool_healthy(api->sp, NULL))
        api_fail_store(pg->work.call);
    else if (at_end || page_full(pg) || api_now(api) >= pg->give_up)
        page_answer(pg, at_end);
}

void api_events(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct page *pg = xcalloc(1, sizeof(*pg));
    const struct param *after = params_get(p, "after");
    struct param_error e;
    int64_t limit = PAGE_DEFAULT;

    (void)r;
    if (filter_read(p, api_now(c->api), &pg->filter, &pg->bot, NULL, &e) < 0 ||
        params_i64(p, "limit", 1, PAGE_MAX, &limit, &e) < 0 ||
        params_bool(p, "payload", &pg->payload, &e) < 0 ||
        params_bool(p, "newest", &pg->filter.newest, &e) < 0 ||
        (after && spool_cursor_parse(after->text, &pg->cursor) < 0 &&
         param_fail(&e, 422, "\"after\" must be what an earlier answer gave as \"next\"") < 0)) {
        free(pg);
        api_fail_params(c, &e);
        return;
    }
    if (!api_knows_bot(c, &pg->filter)) {
        free(pg);
        return;
    }
    pg->work.call = c;
    pg->limit = (unsigned)limit;
    pg->work.slice = page_slice;
    buf_add_str(&pg->out, "{\"events\":[");
    c->state = pg;
    c->drop = drop_page;
    api_work_add(c->api, &pg->work);
}

/* GET /v1/events/BOT/ID, BOT/@SEQ, BOT/out/@SEQ; each percent-encoded as one likes. payload=0: without it. */
void api_event(struct api_call *c, const struct api_request *r, const struct params *p)
{
    const size_t n_prefix = strlen("/v1/events/");
    struct buf text = BUF_EMPTY, record = BUF_EMPTY, out = BUF_EMPTY;
    struct event_ref ref;
    struct event ev;
    struct event_state st;
    struct json_out j;
    struct param_error e;
    bool payload = true;
    uint64_t seq;

    if (params_bool(p, "payload", &payload, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    if (percent_decode(&text, slice_make(r->path.p + n_prefix, r->path.n - n_prefix), false) < 0 ||
        event_ref_parse(buf_slice(&text), &ref) < 0) {
        buf_free(&text);
        api_fail(c, 400, "bad_request", "an event is named as BOT/UPDATE_ID, BOT/@SEQ or BOT/out/@SEQ");
        return;
    }
    buf_free(&text);
    struct spool_box *b = spool_resolve(c->api->sp, &ref, &seq);
    if (!b || spool_get(b, seq, &ev, &st, &record) < 0) {
        if (spool_healthy(c->api->sp, NULL))
            api_fail(c, 404, "unknown_event", "there is no such event");
        else
            api_fail_store(c);
    } else {
        json_start(&j, &out);
        event_write(&j, spool_box_bot(b), spool_box_bot_id(b), spool_box_which(b), &ev, &st, payload);
        json_end(&j);
        api_answer(c, 200, buf_slice(&out));
    }
    buf_free(&record);
    buf_free(&out);
}
