/* Outcomes by token: applied now, and remembered until they are known durable, so that a store that fails
 * meanwhile does not lose what a handler said. */
#include <stdlib.h>

#include "base/mem.h"
#include "spool/internal.h"

static void remembered_drop(struct remembered *m)
{
    list_del(&m->link);
    buf_free(&m->error);
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
              const struct outcome *o, bool applied)
{
    struct remembered *m = xcalloc(1, sizeof(*m));

    m->box = b;
    m->seq = seq;
    memcpy(m->token, token, TOKEN_BYTES);
    m->kind = o->kind;
    m->after_ms = o->after_ms;
    buf_add(&m->error, o->error.p, o->error.n < 4096 ? o->error.n : 4096);
    list_add_tail(applied ? &b->sp->remembered : &b->sp->again, &m->link);
    if (applied)
        store_on_done(b->sp->store, true, outcome_settled, m);
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
        if (complete_by_token(m->box, m->seq, m->token, &o) != COMPLETED)
            held_free(held_find(m->box, m->seq)); /* it was durable after all, or the claim never was */
        remembered_drop(m);
    }
}

void remembered_free(struct spool *sp)
{
    while (!list_empty(&sp->remembered))
        remembered_drop(list_item(sp->remembered.next, struct remembered, link));
    while (!list_empty(&sp->again))
        remembered_drop(list_item(sp->again.next, struct remembered, link));
}

/* The state of an event that is held by this token. */
static enum completed held_state(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
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

enum completed complete_by_token(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                 const struct outcome *o)
{
    struct state_record r;
    enum completed rc = held_state(b, seq, token, &r);

    struct held *h = rc == COMPLETE_FAILED ? held_find(b, seq) : NULL;
    if (h && h->push) /* an outside consumer is told, and says it again */
        remember(b, seq, token, o, false);
    if (rc != COMPLETED)
        return rc;
    remember(b, seq, token, o, true);
    finish_try(b, seq, &r, o, AT_LEASE);
    return COMPLETED;
}

enum completed spool_complete(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                              const struct outcome *o)
{
    return complete_by_token(b, seq, token, o);
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
