#include "serve/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/event_json.h"

#define LOOK_EVERY_MS 10     /* whether RocksDB has written what was in memory */
#define WAIT_MAX SECONDS(10) /* for that; then the log is copied as long as it is */

struct checkpoint {
    struct list link;
    char id[SPOOL_CHECKPOINT_ID];
    int64_t ends_at;
    bool ending;
};

struct checkpoints {
    struct api *api;
    struct list all;
    unsigned n;
    struct list waiting;     /* struct wait: requests */
    int64_t look_at, old_at; /* old_at: when to look at what a migration left */
};

struct wait {
    struct list link;
    struct api_call *call;
    int64_t until;
};

static struct checkpoint *add(struct checkpoints *cs, const char *id, int64_t ends_at)
{
    struct checkpoint *k = xcalloc(1, sizeof(*k));

    memcpy(k->id, id, sizeof(k->id));
    k->ends_at = ends_at;
    list_add_tail(&cs->all, &k->link);
    cs->n++;
    return k;
}

static void found(void *arg, const char *id, int64_t made_at)
{
    struct checkpoints *cs = arg;
    int64_t now = api_now(cs->api);

    add(cs, id, (made_at > now ? now : made_at) + CHECKPOINT_KEPT_MS);
}

struct checkpoints *checkpoints_new(struct api *api)
{
    struct checkpoints *cs = xcalloc(1, sizeof(*cs));

    cs->api = api;
    cs->look_at = TIME_NEVER;
    list_init(&cs->all);
    list_init(&cs->waiting);
    spool_checkpoints_each(api->sp, found, cs);
    return cs;
}

static void forget(struct checkpoints *cs, struct checkpoint *k)
{
    list_del(&k->link);
    free(k);
    cs->n--;
}

void checkpoints_free(struct checkpoints *cs)
{
    while (!list_empty(&cs->all))
        forget(cs, list_item(cs->all.next, struct checkpoint, link));
    free(cs);
}

/* ---- making ------------------------------------------------------------------------------------- */

static void drop_wait(struct api_call *c)
{
    struct wait *w = c->state;

    list_del(&w->link);
    free(w);
}

static void answer_made(struct checkpoints *cs, struct api_call *c, const char *id)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;
    char instance[33], *path = spool_checkpoint_path(cs->api->sp, id);
    uint64_t generation;

    spool_identity(cs->api->sp, instance, &generation);
    json_start(&j, &out);
    json_object(&j);
    json_kv_cstr(&j, "id", id);
    json_kv_cstr(&j, "path", path);
    json_kv_cstr(&j, "instance", instance);
    json_kv_uint(&j, "generation", generation);
    event_write_time(&j, "now", api_now(cs->api));
    json_object_end(&j);
    json_end(&j);
    api_answer(c, 201, buf_slice(&out));
    buf_free(&out);
    free(path);
}

static void make(struct checkpoints *cs, struct wait *w)
{
    char id[SPOOL_CHECKPOINT_ID];
    struct err e = ERR_NONE;
    int64_t start = cs->api->hooks.us();

    if (spool_checkpoint_make(cs->api->sp, id, &e) < 0) {
        log_error(NULL, "no checkpoint: %s", e.text);
        api_fail(w->call, 503, "unavailable", "%s", e.text);
        return;
    }
    log_info(NULL, "checkpoint %s was made in %lld us", id, (long long)(cs->api->hooks.us() - start));
    add(cs, id, api_now(cs->api) + CHECKPOINT_KEPT_MS);
    answer_made(cs, w->call, id);
}

void checkpoint_post(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct checkpoints *cs = c->api->checkpoints;
    struct err e = ERR_NONE;
    char why[256];

    (void)r;
    (void)p;
    if (!c->on_socket) {
        api_fail(c, 401, "unauthorized", "checkpoints are made on the control socket only");
        return;
    }
    if (cs->n >= CHECKPOINTS_MAX) {
        api_fail(c, 429, "too_many", "there are %u checkpoints; the oldest ends within the hour", cs->n);
        return;
    }
    if (!spool_healthy(c->api->sp, why)) {
        api_fail(c, 503, "unavailable",
                 "the daemon's store has failed: %s; end the daemon, and run the command again: it reads the "
                 "directory then",
                 why);
        return;
    }
    if (spool_checkpoint_begin(c->api->sp, &e) < 0) {
        api_fail(c, 503, "unavailable", "%s", e.text);
        return;
    }
    struct wait *w = xcalloc(1, sizeof(*w));
    w->call = c;
    w->until = api_now(c->api) + WAIT_MAX;
    list_add_tail(&cs->waiting, &w->link);
    cs->look_at = api_now(c->api);
    c->state = w;
    c->drop = drop_wait;
}

/* ---- removing ----------------------------------------------------------------------------------- */

void checkpoint_delete(struct api_call *c, const struct api_request *r, const struct params *p)
{
    static const size_t front = sizeof("/v1/checkpoint/") - 1;
    struct checkpoints *cs = c->api->checkpoints;

    (void)p;
    list_each(&cs->all, it) {
        struct checkpoint *k = list_item(it, struct checkpoint, link);
        if (c->on_socket && slice_eq_str(slice_make(r->path.p + front, r->path.n - front), k->id)) {
            k->ending = true;
            api_answer(c, 200, slice_str("{\"removed\":true}"));
            return;
        }
    }
    api_fail(c, 404, "not_found", "there is no such checkpoint");
}

void checkpoints_serve(struct checkpoints *cs)
{
    int64_t now = api_now(cs->api);

    list_each(&cs->all, it) {
        struct checkpoint *k = list_item(it, struct checkpoint, link);
        k->ending |= now >= k->ends_at;
        if (k->ending && spool_checkpoint_remove_some(cs->api->sp, k->id))
            forget(cs, k);
    }
    if (now >= cs->old_at)
        cs->old_at = spool_remove_old(cs->api->sp, now);
    if (now < cs->look_at)
        return;
    bool ready = spool_checkpoint_ready(cs->api->sp);
    list_each(&cs->waiting, it) {
        struct wait *w = list_item(it, struct wait, link);
        if (ready || now >= w->until)
            make(cs, w); /* frees it */
    }
    cs->look_at = list_empty(&cs->waiting) ? TIME_NEVER : now + LOOK_EVERY_MS;
}

int64_t checkpoints_next_deadline(const struct checkpoints *cs)
{
    int64_t first = cs->look_at < cs->old_at ? cs->look_at : cs->old_at;

    list_each(&cs->all, it) {
        const struct checkpoint *k = list_item(it, struct checkpoint, link);
        int64_t at = k->ending ? 0 : k->ends_at;
        first = at < first ? at : first;
    }
    return first;
}
