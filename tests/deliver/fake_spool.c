/* The scripted spool. */
#include "fake_spool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

void fake_init(struct spool_box *b)
{
    *b = (struct spool_box){.lease_ms = 20000, .kind = "message", .max_claim = FAKE_EVENTS};
}

uint64_t fake_add(struct spool_box *b, struct slice payload)
{
    assert(b->n_events < FAKE_EVENTS);
    b->events[b->n_events].payload = payload;
    b->events[b->n_events].claimed = false;
    return ++b->n_events;
}

void fake_commit(struct spool_box *b, bool ok)
{
    size_t n = b->n_pending;

    b->n_pending = 0;
    for (size_t i = 0; i < n; i++) {
        if (!ok) {
            claim_free(b->pending[i]);
            b->pending[i] = NULL;
        }
        b->fn(b->arg, b->pending[i]);
    }
}

const struct fake_outcome *fake_outcome(const struct spool_box *b, uint64_t seq)
{
    for (size_t i = b->n_outcomes; i-- > 0;)
        if (b->outcomes[i].seq == seq)
            return &b->outcomes[i];
    return NULL;
}

/* ---- the verbs ---------------------------------------------------------------------------------- */

const char *spool_box_bot(const struct spool_box *b)
{
    (void)b;
    return "shop";
}

int64_t spool_box_bot_id(const struct spool_box *b)
{
    (void)b;
    return 4242;
}

enum box spool_box_which(const struct spool_box *b)
{
    return b->which;
}

struct spool *spool_of(struct spool_box *b)
{
    return (struct spool *)(void *)b;
}

void spool_forget(struct spool *sp, void *arg)
{
    struct spool_box *b = (struct spool_box *)(void *)sp;

    (void)arg;
    for (size_t i = 0; i < b->n_pending; i++)
        claim_free(b->pending[i]);
    b->n_pending = 0;
}

void claim_free(struct claim *c)
{
    buf_free(&c->record);
    free(c);
}

bool spool_claimable(const struct spool_box *b)
{
    for (size_t i = 0; i < b->n_events; i++)
        if (!b->events[i].claimed)
            return true;
    return false;
}

unsigned spool_claim(struct spool_box *b, const struct claim_request *r, spool_claim_fn *fn, void *arg)
{
    unsigned n = 0;

    assert(r->push && r->by);
    b->fn = fn;
    b->arg = arg;
    for (size_t i = 0; i < b->n_events && n < r->max && n < b->max_claim; i++) {
        if (b->events[i].claimed)
            continue;
        b->events[i].claimed = true;
        struct claim *c = xcalloc(1, sizeof(*c));
        c->box = b;
        buf_add_slice(&c->record, b->events[i].payload);
        c->ev = (struct event){.seq = i + 1,
                               .has_update_id = true,
                               .update_id = 101 + (int64_t)i,
                               .received_at = clock_now() - 3500,
                               .lane = {LANE_CHAT, 7, 0},
                               .hash = {0xde, 0xad, 0xbe, 0xef},
                               .payload = buf_slice(&c->record)};
        snprintf(c->ev.kind, sizeof(c->ev.kind), "%s", b->kind);
        c->ev.is_call = b->which == BOX_OUT;
        c->ev.once = b->call.once;
        memcpy(c->ev.content_type, b->call.content_type, sizeof(c->ev.content_type));
        c->attempt = 2;
        c->interrupted = b->interrupted;
        memset(c->token, (int)i, sizeof(c->token));
        c->deadline = clock_now() + b->lease_ms;
        b->pending[b->n_pending++] = c;
        n++;
    }
    return n;
}

static void note(struct fake_outcome *f, const struct spool_extras *extras)
{
    struct buf text = BUF_EMPTY;
    char lane[LANE_TEXT_MAX];

    for (size_t i = 0; extras && i < extras->n_keys; i++)
        buf_printf(&text, "key %.*s\n", (int)extras->keys[i].n, extras->keys[i].p);
    for (size_t i = 0; extras && i < extras->n_calls; i++) {
        const struct spool_call *c = &extras->calls[i];
        if (c->refused)
            buf_printf(&text, "refused: %s ", c->refused);
        buf_printf(&text, "%s%s %s ", c->once ? "once " : "", c->method, lane_text(c->lane, lane));
        buf_add(&text, c->body.p ? c->body.p : "", c->body.n < 1000 ? c->body.n : 1000);
        buf_add_char(&text, '\n');
    }
    assert(text.n < sizeof(f->said));
    memcpy(f->said, buf_str(&text), text.n + 1);
    buf_free(&text);
}

void spool_probe_now(struct spool_box *b)
{
    b->probed++;
}

enum completed spool_complete(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                              const struct outcome *o)
{
    return spool_complete_with(b, seq, token, o, NULL);
}

enum completed spool_complete_with(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                   const struct outcome *o, const struct spool_extras *extras)
{
    struct fake_outcome *f = &b->outcomes[b->n_outcomes++];

    assert(b->n_outcomes <= FAKE_EVENTS && token[0] == seq - 1);
    *f = (struct fake_outcome){.seq = seq, .kind = o->kind, .after_ms = o->after_ms, .at = clock_now()};
    note(f, extras);
    snprintf(f->error, sizeof(f->error), "%.*s", (int)o->error.n, o->error.p ? o->error.p : "");
    return b->unhealthy ? COMPLETE_FAILED : COMPLETED;
}

enum completed spool_extend(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                            int64_t by_ms, int64_t *deadline)
{
    assert(token[0] == seq - 1);
    if (b->unhealthy)
        return COMPLETE_FAILED;
    b->extended++;
    *deadline = clock_now() + by_ms;
    return COMPLETED;
}
