#include "serve/compact.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define LOOK_EVERY_MS 100
#define WAIT_DEFAULT SECONDS(20)
#define WAIT_MAX HOURS(1)

struct compaction {
    struct api *api;
    enum { NONE, RUNNING, FINISHED, FAILED } state;
    unsigned round;
    int64_t before, after; /* bytes of the database's files */
    int64_t look_at;
    struct list waiting; /* struct wait: requests */
};

struct wait {
    struct list link;
    struct api_call *call;
    int64_t until;
};

struct compaction *compaction_new(struct api *api)
{
    struct compaction *cp = xcalloc(1, sizeof(*cp));

    cp->api = api;
    cp->look_at = TIME_NEVER;
    list_init(&cp->waiting);
    return cp;
}

void compaction_free(struct compaction *cp)
{
    free(cp);
}

static void drop_wait(struct api_call *c)
{
    struct wait *w = c->state;

    list_del(&w->link);
    free(w);
}

static void answer(struct compaction *cp, struct api_call *c)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    if (cp->state == FAILED) {
        api_fail_store(c);
        return;
    }
    json_start(&j, &out);
    json_object(&j);
    json_kv_cstr(&j, "state", cp->state == RUNNING ? "running" : "finished");
    json_kv_int(&j, "before", cp->before);
    json_kv_int(&j, cp->state == RUNNING ? "now" : "after",
                cp->state == RUNNING ? spool_database_bytes(cp->api->sp) : cp->after);
    json_object_end(&j);
    json_end(&j);
    api_answer(c, cp->state == RUNNING ? 202 : 200, buf_slice(&out));
    buf_free(&out);
}

static void end(struct compaction *cp, const struct err *e)
{
    char before[32], after[32];

    cp->state = e ? FAILED : FINISHED;
    if (e) {
        log_error(NULL, "the database was not compacted: %s", e->text);
        return;
    }
    cp->after = spool_database_bytes(cp->api->sp);
    log_info(NULL, "the database was compacted from %s to %s", text_bytes(cp->before, before),
             text_bytes(cp->after, after));
}

void compaction_serve(struct compaction *cp)
{
    int64_t now = api_now(cp->api);
    struct err e = ERR_NONE;

    if (now < cp->look_at)
        return;
    if (cp->state == RUNNING) {
        int rc = spool_compact(cp->api->sp, &cp->round, &e);
        if (rc <= 0)
            end(cp, rc < 0 ? &e : NULL);
    }
    list_each(&cp->waiting, it) {
        struct wait *w = list_item(it, struct wait, link);
        if (cp->state != RUNNING || now >= w->until)
            answer(cp, w->call); /* frees it */
    }
    cp->look_at = cp->state == RUNNING ? now + LOOK_EVERY_MS : TIME_NEVER;
}

int64_t compaction_next_deadline(const struct compaction *cp)
{
    return cp->look_at;
}

/* ---- requests ----------------------------------------------------------------------------------- */

static void wait_for(struct compaction *cp, struct api_call *c, const struct params *p)
{
    struct param_error e;
    int64_t wait = WAIT_DEFAULT;

    if (params_ms(p, "wait", 0, WAIT_MAX, &wait, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    struct wait *w = xcalloc(1, sizeof(*w));
    w->call = c;
    w->until = api_now(cp->api) + wait;
    list_add_tail(&cp->waiting, &w->link);
    c->state = w;
    c->drop = drop_wait;
    cp->look_at = api_now(cp->api);
}

void compact_post(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct compaction *cp = c->api->compaction;

    (void)r;
    if (!spool_healthy(c->api->sp, NULL)) {
        api_fail_store(c);
        return;
    }
    if (cp->state != RUNNING) {
        cp->state = RUNNING;
        cp->round = 0;
        cp->before = spool_database_bytes(c->api->sp);
    }
    wait_for(cp, c, p);
}

void compact_get(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    if (c->api->compaction->state == NONE)
        api_fail(c, 404, "not_found", "nothing was compacted since the start");
    else
        wait_for(c->api->compaction, c, p);
}
