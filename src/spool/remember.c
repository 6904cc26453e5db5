/* Outcomes by token: applied now, and remembered until they are known durable, so that a store that fails
 * meanwhile does not lose what a handler said. */
#include <stdlib.h>

#include "base/mem.h"
#include "spool/internal.h"

/* One block: the public struct, whose pointers lead into the buffer. */
struct extras {
    struct spool_extras e;
    struct slice *keys;
    struct spool_call *calls;
    char **strings; /* method, content type and refusal of each call */
    size_t n_strings;
};

static char *extras_string(struct extras *x, const char *s)
{
    return s ? (x->strings[x->n_strings++] = xstrdup(s)) : NULL;
}

struct extras *extras_copy(const struct spool_extras *e)
{
    if (!e || (e->n_keys == 0 && e->n_calls == 0))
        return NULL;
    struct extras *x = xcalloc(1, sizeof(*x));
    x->keys = xcalloc(e->n_keys, sizeof(*x->keys));
    x->calls = xcalloc(e->n_calls, sizeof(*x->calls));
    x->strings = xcalloc(e->n_calls * 3, sizeof(*x->strings));
    x->e = *e;
    x->e.keys = x->keys;
    x->e.calls = x->calls;
    for (size_t i = 0; i < e->n_keys; i++)
        x->keys[i] = slice_make(xmemdup(e->keys[i].p, e->keys[i].n), e->keys[i].n);
    for (size_t i = 0; i < e->n_calls; i++) {
        const struct spool_call *from = &e->calls[i];
        x->calls[i] = *from;
        x->calls[i].method = extras_string(x, from->method);
        x->calls[i].content_type = extras_string(x, from->content_type);
        x->calls[i].refused = extras_string(x, from->refused);
        x->calls[i].body = slice_make(xmemdup(from->body.p, from->body.n), from->body.n);
    }
    return x;
}

void extras_free(struct extras *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->e.n_keys; i++)
        free((void *)(uintptr_t)x->keys[i].p);
    for (size_t i = 0; i < x->e.n_calls; i++)
        free((void *)(uintptr_t)x->calls[i].body.p);
    for (size_t i = 0; i < x->n_strings; i++)
        free(x->strings[i]);
    free(x->strings);
    free(x->keys);
    free(x->calls);
    free(x);
}

static void remembered_drop(struct remembered *m)
{
    list_del(&m->link);
    buf_free(&m->error);
    extras_free(m->extras);
    free(m);
}

static void outcome_settled(void *arg, bool ok)
{
    struct remembered *m = arg;

    if (ok) {
        remembered_drop(m);
        return;
    }
    list_del(&m->link);
    list_add_tail(&m->box->sp->again, &m->link);
}

void remember(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
              const struct outcome *o, struct extras *extras, bool applied)
{
    struct remembered *m = xcalloc(1, sizeof(*m));

    m->box = b;
    m->seq = seq;
    memcpy(m->token, token, TOKEN_BYTES);
    m->kind = o->kind;
    m->after_ms = o->after_ms;
    m->extras = extras;
    buf_add(&m->error, o->error.p, o->error.n < 4096 ? o->error.n : 4096);
    list_add_tail(applied ? &b->sp->remembered : &b->sp->again, &m->link);
    if (applied)
        store_on_done(b->sp->store, true, outcome_settled, m);
}

void remembered_free(struct spool *sp)
{
    while (!list_empty(&sp->remembered))
        remembered_drop(list_item(sp->remembered.next, struct remembered, link));
    while (!list_empty(&sp->again))
        remembered_drop(list_item(sp->again.next, struct remembered, link));
}

enum completed held_state(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                          struct state_record *r)
{
    enum ended_class c;

    if (!spool_usable(b->sp))
        return COMPLETE_FAILED;
    int there = row_state(b, CLASS_UNFINISHED, seq, r);
    if (there < 0)
        return COMPLETE_FAILED;
    if (!there) {
        there = row_find_state(b, seq, &c, r);
        return there < 0 ? COMPLETE_FAILED : there ? COMPLETE_LOST : COMPLETE_UNKNOWN;
    }
    if (r->st.state != STATE_PROCESSING ||
        !slice_eq_secret(slice_make(token, TOKEN_BYTES), slice_make(r->st.token, TOKEN_BYTES)))
        return COMPLETE_LOST;
    return state_need_lane(b, seq, r) < 0 ? COMPLETE_FAILED : COMPLETED;
}

/* What a success records beside its state. */
static void record_extras(struct spool_box *b, uint64_t seq, const struct spool_extras *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < e->n_keys; i++)
        mark_done(b, e->keys[i], e->keys_ttl_ms, seq);
    if (!e->n_calls)
        return;
    struct spool_box *out = box_out_of(b);
    struct state_record r;
    uint64_t first = out->rec.next_seq;
    for (size_t i = 0; i < e->n_calls; i++)
        call_append(out, &e->calls[i], seq, NULL);
    if (row_state(b, CLASS_DONE, seq, &r) > 0) { /* so that it is kept until they have ended */
        r.calls_from = first;
        r.n_calls = (uint32_t)e->n_calls;
        row_put_state(b, CLASS_DONE, seq, &r);
    }
}

/* Whether it is this token's handler that has an event which the store says is not claimed: what a failure took back was
 * the claim, not the handler's work. Then r is its state. */
static bool is_lost_claim(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                          struct state_record *r)
{
    const struct held *h = held_find(b, seq);

    return h && h->push && !memcmp(h->token, token, TOKEN_BYTES) &&
           row_state(b, CLASS_UNFINISHED, seq, r) > 0 && r->st.state == STATE_PENDING &&
           state_need_lane(b, seq, r) == 0;
}

/* Ends a try, if it is held by this token. */
static enum completed apply(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                            const struct outcome *o, const struct spool_extras *extras)
{
    struct state_record r;
    enum completed rc = held_state(b, seq, token, &r);
    bool lost = rc == COMPLETE_LOST && is_lost_claim(b, seq, token, &r);

    if (rc != COMPLETED && !lost)
        return rc;
    remember(b, seq, token, o, extras_copy(extras), true);
    b->maybe_ready |= lost; /* others may have been passed over because of it */
    finish_try(b, seq, &r, o, lost ? AT_ANY : AT_LEASE);
    record_extras(b, seq, extras);
    return COMPLETED;
}

void remembered_apply(struct spool *sp)
{
    struct list todo;

    list_init(&todo);
    while (!list_empty(&sp->again)) {
        struct list *l = sp->again.next;
        list_del(l);
        list_add_tail(&todo, l);
    }
    while (!list_empty(&todo)) {
        struct remembered *m = list_item(todo.next, struct remembered, link);
        struct outcome o = {.kind = m->kind, .after_ms = m->after_ms, .error = buf_slice(&m->error)};
        const struct spool_extras *extras = m->extras ? &m->extras->e : NULL;
        enum completed rc = apply(m->box, m->seq, m->token, &o, extras);
        if (rc == COMPLETE_FAILED) { /* the store failed once more: it is tried again with the rest */
            list_del(&m->link);
            list_add_tail(&sp->again, &m->link);
            continue;
        }
        if (rc != COMPLETED)
            held_free(held_find(m->box, m->seq)); /* it was durable after all, or the claim never was */
        remembered_drop(m);
    }
}

enum completed spool_complete_with(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                   const struct outcome *o, const struct spool_extras *extras)
{
    const struct spool_extras *kept = o->kind == OUTCOME_DONE ? extras : NULL;
    enum completed rc = apply(b, seq, token, o, kept);

    struct held *h = rc == COMPLETE_FAILED ? held_find(b, seq) : NULL;
    if (h && h->push) /* an outside consumer is told, and says it again */
        remember(b, seq, token, o, extras_copy(kept), false);
    return rc;
}

enum completed spool_complete(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                              const struct outcome *o)
{
    return spool_complete_with(b, seq, token, o, NULL);
}

enum completed spool_extend(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                            int64_t by_ms, int64_t *deadline)
{
    struct state_record r;
    enum completed rc = held_state(b, seq, token, &r);

    if (rc != COMPLETED)
        return rc;
    if (!r.st.push)
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_LEASE, r.st.deadline, seq));
    r.st.deadline = b->sp->now + (by_ms < LEASE_MAX_MS ? by_ms : LEASE_MAX_MS);
    row_put_state(b, CLASS_UNFINISHED, seq, &r);
    if (!r.st.push)
        row_put_due(b, DUE_LEASE, r.st.deadline, seq);
    *deadline = r.st.deadline;
    return COMPLETED;
}
