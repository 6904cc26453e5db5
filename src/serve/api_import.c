/* POST /v1/import: lines of an export, put back. Done in slices, as far as a tick's batch takes them. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "serve/api_call.h"
#include "wire/event_json.h"

#define FAULTS_TOLD 20 /* of bad lines, the first */

struct import {
    struct api_work work;
    struct slice rest; /* borrowed from the request */
    uint64_t line, fresh, known, bad;
    struct buf faults; /* JSON objects with commas between */
};

static void drop_import(struct api_call *c)
{
    struct import *im = c->state;

    spool_forget(c->api->sp, im);
    list_del(&im->work.link);
    buf_free(&im->faults);
    free(im);
}

static void fault(struct import *im, const char *why)
{
    struct json_out j;

    if (im->bad++ >= FAULTS_TOLD)
        return;
    if (im->faults.n)
        buf_add_char(&im->faults, ',');
    json_start(&j, &im->faults);
    json_object(&j);
    json_kv_uint(&j, "line", im->line);
    json_kv_cstr(&j, "message", why);
    json_object_end(&j);
    json_end(&j);
}

/* The box of an exported event: by Telegram's bot id, since a bot may have been renamed. One that is not
 * there is made, as an orphan until its bot is in the config. NULL: its name belongs to another bot here. */
static struct spool_box *box_for(struct spool *sp, const struct event_line *l)
{
    for (struct spool_box *b = spool_next_box(sp, NULL); b; b = spool_next_box(sp, b))
        if (spool_box_bot_id(b) == l->bot_id && spool_box_which(b) == l->box)
            return b;
    const enum box sides[] = {BOX_IN, BOX_OUT};
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        struct spool_box *same_name = spool_find_box(sp, l->bot, sides[i]);
        if (same_name && spool_box_bot_id(same_name) != l->bot_id)
            return NULL;
    }
    struct spool_box *made = spool_attach(sp, l->bot_id, l->box, l->bot, NULL);
    if (made)
        spool_detach(made);
    return made;
}

/* Returns false if the store does not take it now. */
static bool one_line(struct import *im, struct slice line)
{
    struct spool *sp = im->work.call->api->sp;
    struct event_line l;
    char why[256];
    bool ok = true;

    if (event_line_read(line, &l, why) < 0) {
        fault(im, why);
        event_line_free(&l);
        return true;
    }
    struct spool_box *b = box_for(sp, &l);
    if (!b) {
        fault(im, "its bot's name belongs to another Telegram bot in this spool");
    } else {
        switch (spool_import(b, &l.ev, &l.st)) {
        case IMPORT_NEW:
            im->fresh++;
            break;
        case IMPORT_KNOWN:
            im->known++;
            break;
        case IMPORT_FAILED:
            ok = false;
        }
    }
    event_line_free(&l);
    return ok;
}

static void import_answer(struct import *im)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;
    struct api_call *c = im->work.call;

    json_start(&j, &out);
    json_object(&j);
    json_kv_uint(&j, "lines", im->line);
    json_kv_uint(&j, "new", im->fresh);
    json_kv_uint(&j, "known", im->known);
    json_kv_uint(&j, "bad", im->bad);
    json_key(&j, "errors");
    buf_add_char(&im->faults, ']');
    struct buf list = BUF_EMPTY;
    buf_add_char(&list, '[');
    buf_add_slice(&list, buf_slice(&im->faults));
    json_raw(&j, buf_slice(&list));
    buf_free(&list);
    json_object_end(&j);
    json_end(&j);
    api_answer_durable(c, 200, &out); /* frees im */
}

/* One of the batches that a long import takes. */
static void import_written(void *arg, bool ok)
{
    struct import *im = arg;

    if (!ok)
        api_fail_store(im->work.call); /* frees im */
}

static void import_slice(struct api_work *w, int64_t until_us)
{
    struct import *im = list_item(w, struct import, work);
    struct api *api = im->work.call->api;

    while (im->rest.n && !spool_batch_full(api->sp) && api->hooks.us() < until_us) {
        const char *lf = memchr(im->rest.p, '\n', im->rest.n);
        size_t n = lf ? (size_t)(lf - im->rest.p) : im->rest.n;
        im->line++;
        if (n && !one_line(im, slice_make(im->rest.p, n))) {
            api_fail_store(im->work.call);
            return;
        }
        im->rest.p += n + (lf != NULL);
        im->rest.n -= n + (lf != NULL);
    }
    if (im->rest.n)
        spool_on_durable(api->sp, import_written, im);
    else
        import_answer(im);
}

void api_import(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)p;
    if (!api_has_room(c))
        return;
    if (!spool_healthy(c->api->sp, NULL)) {
        api_fail_store(c);
        return;
    }
    struct import *im = xcalloc(1, sizeof(*im));
    im->work.call = c;
    im->rest = r->body;
    im->work.slice = import_slice;
    c->state = im;
    c->drop = drop_import;
    api_work_add(c->api, &im->work);
}
