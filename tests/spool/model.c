/* The model of the spool; see model.h. */
#include "model.h"

void model_init(struct model *m, struct world *w)
{
    memset(m, 0, sizeof(*m));
    m->w = w;
    m->opened_at = w->now;
}

struct model_event *model_find(struct model *m, uint64_t seq)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->events[i].seq == seq)
            return &m->events[i];
    return NULL;
}

static bool unfinished(const struct model_event *e)
{
    return e->state == STATE_PENDING || e->state == STATE_PROCESSING;
}

/* Nothing unfinished stands before it in its lane, nor in an earlier epoch. */
static bool is_head(const struct model *m, const struct model_event *e)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct model_event *o = &m->events[i];
        if (!unfinished(o) || o == e)
            continue;
        if (o->epoch < e->epoch)
            return false;
        if (o->epoch == e->epoch && o->seq < e->seq && lane_eq(o->lane, e->lane))
            return false;
    }
    return true;
}

static bool claimable(const struct model *m, const struct model_event *e)
{
    return e->state == STATE_PENDING && !e->waiting && is_head(m, e);
}

static unsigned count(const struct model *m, enum state s)
{
    unsigned n = 0;

    for (size_t i = 0; i < m->n; i++)
        n += m->events[i].state == s;
    return n;
}

static struct model_event *add(struct model *m, uint64_t seq)
{
    assert_true(m->n < MODEL_EVENTS);
    assert_true(seq > m->last_seq); /* seqs only grow */
    m->last_seq = seq;
    struct model_event *e = &m->events[m->n++];
    memset(e, 0, sizeof(*e));
    e->seq = seq;
    e->epoch = m->epoch;
    return e;
}

static struct model_id *id_of(struct model *m, const struct model_event *e)
{
    for (size_t i = 0; i < m->n_ids; i++) {
        struct model_id *id = &m->ids[i];
        if (id->update_id == e->update_id && id->chat == e->chat && id->text == e->text)
            return id;
    }
    return NULL;
}

/* The id leads to this event now. */
static void set_id(struct model *m, const struct model_event *e)
{
    struct model_id *id = id_of(m, e);

    if (!id) {
        assert_true(m->n_ids < MODEL_EVENTS);
        id = &m->ids[m->n_ids++];
        *id = (struct model_id){e->update_id, e->chat, e->text, 0};
    }
    id->seq = e->seq;
}

void model_begin(struct model *m)
{
    world_begin(m->w);
    m->n_expected = 0;
    m->n_held_before = m->w->n_held;
}

void model_accept(struct model *m, int64_t update_id, int64_t chat, int text)
{
    char number[16];
    uint64_t seq = 0;
    bool known = false;
    struct update_place place = {.has_chat = true, .has_user = true, .chat = chat, .user = chat + 1000};

    const struct model_event like = {.update_id = update_id, .chat = chat, .text = text};
    const struct model_id *id = id_of(m, &like);
    known = id && id->seq;
    snprintf(number, sizeof(number), "%d", text);
    char *json = world_message(update_id, chat, number);
    enum accepted rc = world_accept_json(m->w, json, &seq);
    free(json);
    assert_int_equal(rc, known ? ACCEPTED_DUPLICATE : ACCEPTED_NEW);
    if (known) {
        m->duplicates++;
        return;
    }
    struct model_event *e = add(m, seq);
    e->update_id = update_id;
    e->chat = chat;
    e->text = text;
    e->lane = lane_of(m->w->policy.order, &place, seq);
    e->received_at = m->w->now;
    set_id(m, e);
}

/* The keys of an event whose try ends. */
static void settle_keys(struct model *m, const struct model_event *e)
{
    for (int i = 0; i < MODEL_KEYS; i++) {
        struct model_key *k = &m->keys[i];
        if (k->holder != e->seq)
            continue;
        k->holder = 0;
        if (e->state == STATE_DONE)
            k->done_until = m->w->now + MODEL_TTL;
    }
}

/* Puts the decision of the table into the model. */
static void decided(struct model *m, struct model_event *e, const struct decision *d)
{
    int64_t now = m->w->now;

    e->state = d->state;
    e->reason = d->reason;
    e->attempts += d->add_attempts;
    e->interrupted += d->add_interrupted;
    e->due = d->state == STATE_PENDING && d->due > now ? d->due : 0;
    e->waiting = e->due > 0;
    e->served_id = 0;
    e->finished_at = unfinished(e) ? 0 : now;
    settle_keys(m, e);
}

static void discarded(struct model *m, struct model_event *e)
{
    static const struct decision d = {.state = STATE_DEAD, .reason = REASON_DISCARDED};

    /* a claim of this tick comes to nobody */
    for (size_t i = 0; i < m->n_expected; i++)
        if (m->expected[i] == e->seq) {
            m->n_expected--;
            memmove(m->expected + i, m->expected + i + 1, (m->n_expected - i) * sizeof(m->expected[0]));
            break;
        }
    decided(m, e, &d);
}

static struct decision decide(struct model *m, const struct model_event *e, enum outcome_kind kind,
                              int64_t after_ms, const struct event_state *st, const struct breaker *b)
{
    struct outcome o = {.kind = kind, .after_ms = after_ms};
    struct decision d;

    outcome_decide(&o, st, e->lane, &m->w->policy.outcome, b, 0, m->w->now, &d);
    return d;
}

/* Whether a claim still holds its event. */
static bool holds(struct model *m, const struct claim *c)
{
    const struct model_event *e = model_find(m, c->ev.seq);
    if (!e)
        return false;
    struct event_state st = world_state(m->w, c->ev.seq);

    return e->state == STATE_PROCESSING && !e->served_id && memcmp(st.token, c->token, TOKEN_BYTES) == 0;
}

static bool key_is_done(const struct model *m, int key)
{
    return m->keys[key].done_until > m->w->now;
}

static struct slice key_text(int key)
{
    static const char names[MODEL_KEYS][2] = {"a", "b", "c", "d", "e", "f"};

    return slice_str(names[key]);
}

/* Tells the spool, and forgets the claim. */
static enum completed complete_spool(struct model *m, struct claim *c, const struct outcome *o,
                                     unsigned n_calls, int key)
{
    struct world *w = m->w;
    struct slice keys[1];
    struct spool_call calls[4];
    struct spool_extras extras = {
        .keys = keys, .keys_ttl_ms = MODEL_TTL, .calls = calls, .n_calls = n_calls, .n_keys = key >= 0};

    if (key >= 0)
        keys[0] = key_text(key);
    for (unsigned i = 0; i < n_calls; i++)
        calls[i] = (struct spool_call){.method = "sendMessage",
                                       .content_type = "text/plain",
                                       .body = LIT("{}"),
                                       .lane = {.type = i % 2 ? LANE_EVENT : LANE_CHAT}};
    enum completed rc = spool_complete_with(w->box, c->ev.seq, c->token, o, &extras);
    world_drop(w, c);
    m->n_held_before = w->n_held;
    return rc;
}

void model_complete_with(struct model *m, struct claim *c, enum outcome_kind kind, int64_t after_ms,
                         unsigned n_calls, int key)
{
    struct model_event *e = model_find(m, c->ev.seq);
    struct outcome o = {.kind = kind, .after_ms = after_ms};
    if (!e) { /* removed since: another had ended it */
        assert_int_equal(complete_spool(m, c, &o, n_calls, key), COMPLETE_UNKNOWN);
        return;
    }
    struct event_state st = world_state(m->w, c->ev.seq);
    struct breaker b = world_status(m->w).breaker;
    bool ours = holds(m, c);

    assert_int_equal(complete_spool(m, c, &o, n_calls, key), ours ? COMPLETED : COMPLETE_LOST);
    if (!ours)
        return;
    struct decision d = decide(m, e, kind, after_ms, &st, &b);
    decided(m, e, &d);
    if (kind != OUTCOME_DONE)
        return;
    e->calls_from = m->calls + 1;
    e->n_calls = n_calls;
    m->calls += n_calls;
    assert_true(m->calls < ARRAY_LEN(m->call_ended));
    if (key >= 0 && !key_is_done(m, key))
        m->keys[key] = (struct model_key){.done_until = m->w->now + MODEL_TTL};
}

void model_complete(struct model *m, struct claim *c, enum outcome_kind kind, int64_t after_ms)
{
    model_complete_with(m, c, kind, after_ms, 0, -1);
}

void model_ask_key(struct model *m, int key, struct claim *c)
{
    struct model_key *k = &m->keys[key];
    enum keyed want = KEY_FIRST;

    if (c && !holds(m, c))
        want = model_find(m, c->ev.seq) ? KEY_LOST : KEY_UNKNOWN;
    else if (key_is_done(m, key))
        want = KEY_IS_DONE;
    else if (k->holder && !(c && k->holder == c->ev.seq))
        want = KEY_IS_HELD;
    enum keyed got = spool_key(m->w->box, key_text(key), MODEL_TTL, c ? c->ev.seq : 0, c ? c->token : NULL);
    assert_int_equal(got, want);
    if (want == KEY_FIRST && c)
        *k = (struct model_key){.holder = c->ev.seq};
    else if (want == KEY_FIRST)
        *k = (struct model_key){.done_until = m->w->now + MODEL_TTL};
}

void model_extend(struct model *m, struct claim *c, int64_t by_ms)
{
    struct model_event *e = model_find(m, c->ev.seq);
    bool ours = holds(m, c);
    int64_t deadline = 0;

    enum completed rc = spool_extend(m->w->box, c->ev.seq, c->token, by_ms, &deadline);
    assert_int_equal(rc, ours ? COMPLETED : e ? COMPLETE_LOST : COMPLETE_UNKNOWN);
    if (!ours)
        return;
    assert_int_equal(deadline, m->w->now + by_ms);
    e->deadline = deadline;
}

void model_replay(struct model *m, uint64_t seq)
{
    struct model_event *e = model_find(m, seq);
    uint64_t copy = 0;
    enum acted rc = spool_replay(m->w->box, seq, "test", &copy);

    if (!e || unfinished(e)) {
        assert_int_equal(rc, e ? ACT_NOT_ENDED : ACT_UNKNOWN);
        return;
    }
    assert_int_equal(rc, ACTED);
    struct update_place place;
    struct event ev;
    struct event_state st;
    struct buf record = BUF_EMPTY;
    assert_int_equal(spool_get(m->w->box, seq, &ev, &st, &record), 0);
    place = ev.place;
    buf_free(&record);
    struct model_event *new = add(m, copy);
    e = model_find(m, seq);
    new->update_id = e->update_id;
    new->chat = e->chat;
    new->text = e->text;
    new->replay_of = seq;
    new->lane = lane_of(m->w->policy.order, &place, copy);
    new->received_at = e->received_at;
    set_id(m, new);
    e->replayed_as = copy;
}

void model_discard(struct model *m, uint64_t seq, bool force)
{
    struct model_event *e = model_find(m, seq);
    bool letter = e && e->state == STATE_DEAD && e->reason != REASON_DISCARDED && !e->replayed_as;
    enum acted want = !e                                       ? ACT_UNKNOWN
                      : letter                                 ? ACTED
                      : !unfinished(e)                         ? ACT_ENDED
                      : e->state == STATE_PROCESSING && !force ? ACT_BUSY
                                                               : ACTED;

    assert_int_equal(spool_discard(m->w->box, seq, force, "test"), want);
    if (letter)
        e->reason = REASON_DISCARDED;
    else if (want == ACTED)
        discarded(m, e);
}

void model_pause(struct model *m, bool paused)
{
    spool_pause(m->w->box, false, paused);
    m->paused = paused;
}

void model_end_call(struct model *m, uint64_t seq)
{
    struct spool_box *out = spool_find_box(m->w->sp, "shop", BOX_OUT);

    if (!out || seq > m->calls || m->call_ended[seq])
        return;
    assert_int_equal(spool_discard(out, seq, true, "test"), ACTED);
    m->call_ended[seq] = true;
    m->calls_ended++;
}

/* ---- retention ---------------------------------------------------------------------------------- */

static bool is_free(const struct model *m, const struct model_event *e)
{
    const struct spool_retention *r = &m->w->retention;
    int64_t keep = e->state == STATE_DONE ? r->done_ms : r->dead_ms;

    if (m->w->now < e->finished_at + keep || m->w->now < e->received_at + r->dedupe_ms)
        return false;
    for (unsigned i = 0; i < e->n_calls; i++)
        if (!m->call_ended[e->calls_from + i])
            return false;
    return true;
}

static void removed(struct model *m, size_t i)
{
    struct model_event e = m->events[i];
    struct model_id *id = id_of(m, &e);

    memmove(m->events + i, m->events + i + 1, (m->n - i - 1) * sizeof(m->events[0]));
    m->n--;
    m->removed++;
    if (id->seq != e.seq)
        return;
    const struct model_event *old = e.replay_of ? model_find(m, e.replay_of) : NULL;
    const struct model_event *other = old ? model_find(m, old->replayed_as) : NULL;
    id->seq = other ? other->seq : old ? old->seq : 0;
}

/* Of each class, by seq: what the spool removed was free, and nothing in front of it stays. */
static void model_retain(struct model *m)
{
    static const enum state classes[] = {STATE_DONE, STATE_DEAD};
    struct world *w = m->w;

    for (size_t k = 0; k < ARRAY_LEN(classes); k++) {
        bool stays = false, blocked = false;
        for (size_t i = 0; i < m->n;) {
            struct model_event *e = &m->events[i];
            struct event_state st;
            struct event ev;
            struct buf record = BUF_EMPTY;
            bool there = e->state != classes[k] || spool_get(w->box, e->seq, &ev, &st, &record) == 0;
            buf_free(&record);
            if (!there) {
                if (stays || !is_free(m, e) || !w->retention.done_ms)
                    fail_msg("event %llu was removed too soon", (unsigned long long)e->seq);
                removed(m, i);
                continue;
            }
            i++;
            if (e->state != classes[k])
                continue;
            stays = true;
            blocked |= !is_free(m, e);
            if (blocked || !w->retention.done_ms)
                continue;
            if (!e->free_since)
                e->free_since = w->now;
            if (w->now > e->free_since + MINUTES(1)) /* so often events that wait for calls are looked at */
                fail_msg("event %llu is not removed", (unsigned long long)e->seq);
        }
    }
}

static void let_go_served(struct model *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->events[i].served_id) {
            m->events[i].served_id = 0;
            m->events[i].state = STATE_PENDING;
        }
    m->unserving = false;
}

void model_set_serve(struct model *m, bool serve)
{
    struct world *w = m->w;

    w->policy.serve = serve;
    spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
    m->unserving = !serve;
}

void model_serve(struct model *m, unsigned max)
{
    struct served out[MODEL_EVENTS];
    unsigned n = 0, got = spool_serve(m->w->box, max, SIZE_MAX, NULL, NULL, out);

    for (size_t i = 0; i < m->n && n < max && m->w->policy.serve && !m->paused; i++) {
        struct model_event *e = &m->events[i];
        if (!unfinished(e))
            continue;
        if (e->state == STATE_PROCESSING && !e->served_id)
            break; /* held by another deliverer */
        if (e->state == STATE_PENDING) {
            m->last_served = e->update_id > m->last_served ? e->update_id : m->last_served + 1;
            e->served_id = m->last_served;
            e->state = STATE_PROCESSING;
            e->push = true;
            e->due = 0;
            e->waiting = false;
        }
        assert_true(n < got);
        assert_int_equal(out[n].seq, e->seq);
        assert_int_equal(out[n].served_id, e->served_id);
        assert_int_equal(out[n].ev.update_id, e->update_id);
        buf_free(&out[n++].record);
    }
    assert_int_equal(got, n);
}

void model_confirm(struct model *m, int64_t offset)
{
    static const struct decision done = {.state = STATE_DONE, .add_attempts = 1};
    unsigned n = 0, got = spool_serve_confirm(m->w->box, offset);

    for (size_t i = 0; i < m->n; i++) {
        struct model_event *e = &m->events[i];
        if (!unfinished(e))
            continue;
        if (!e->served_id || e->served_id >= offset)
            break;
        decided(m, e, &done);
        n++;
    }
    assert_int_equal(got, n);
}

void model_drop(struct model *m, uint64_t keep)
{
    uint64_t left = count(m, STATE_PENDING) + count(m, STATE_PROCESSING);

    assert_true(spool_serve_drop(m->w->box, keep, "test"));
    for (size_t i = 0; i < m->n && left > keep; i++)
        if (unfinished(&m->events[i])) {
            discarded(m, &m->events[i]);
            left--;
        }
}

/* Reaps in the model what the spool must have reaped, and sees that it did. If the breaker opened by one of them, those
 * after it cost nothing. */
void model_work(struct model *m)
{
    struct world *w = m->w;
    static struct event_state before[MODEL_EVENTS];
    struct breaker b = world_status(w).breaker;

    for (size_t i = 0; i < m->n; i++)
        before[i] = world_state(w, m->events[i].seq);
    spool_work(w->sp);
    if (m->unserving)
        let_go_served(m);
    int64_t lease = w->policy.lease_ms, grace = m->opened_at + (lease < 30000 ? lease : 30000);
    bool opened = !b.open && world_status(w).breaker.open;
    for (size_t i = 0; i < m->n; i++) {
        struct model_event *e = &m->events[i];
        if (e->due <= w->now)
            e->waiting = false;
        if (e->state != STATE_PROCESSING || e->push || e->deadline > w->now || w->now < grace)
            continue;
        struct breaker then = b;
        if (opened && world_state(w, e->seq).attempts == e->attempts)
            then.open = true;
        struct decision d = decide(m, e, OUTCOME_LEASE_EXPIRED, -1, &before[i], &then);
        decided(m, e, &d);
    }
    model_retain(m);
}

void model_claim(struct model *m, unsigned max, bool push)
{
    struct world *w = m->w;
    struct breaker b = world_status(w).breaker;
    unsigned processing = count(m, STATE_PROCESSING), ready = 0;
    unsigned free = processing < w->policy.concurrency ? w->policy.concurrency - processing : 0;
    unsigned allowed = m->paused || m->unserving || w->policy.serve
                           ? 0
                           : breaker_allows(&b, free < max ? free : max, w->now);
    uint64_t want[MODEL_EVENTS];

    for (size_t i = 0; i < m->n; i++)
        if (claimable(m, &m->events[i]))
            want[ready++] = m->events[i].seq;
    unsigned n = world_claim(w, max, push);
    assert_int_equal(n, ready < allowed ? ready : allowed);
    unsigned found = 0;
    for (size_t i = 0; i < m->n && n; i++) {
        struct model_event *e = &m->events[i];
        if (e->state != STATE_PENDING || world_state(w, e->seq).state != STATE_PROCESSING)
            continue;
        if (b.open)
            assert_true(claimable(m, e)); /* any: probes rotate */
        else
            assert_int_equal(e->seq, want[found]); /* oldest first */
        m->expected[m->n_expected++] = e->seq;
        found++;
    }
    assert_int_equal(found, n);
    for (unsigned i = 0; i < n; i++) {
        struct model_event *e = model_find(m, m->expected[m->n_expected - n + i]);
        e->state = STATE_PROCESSING;
        e->push = push;
        e->deadline = w->now + w->policy.lease_ms;
    }
}

static void check_claim(struct model *m, const struct claim *c)
{
    struct model_event *e = model_find(m, c->ev.seq);
    char number[16];

    assert_non_null(e);
    snprintf(number, sizeof(number), "%d", e->text);
    char *json = world_message(e->update_id, e->chat, number);
    assert_true(slice_eq_str(c->ev.payload, json));
    free(json);
    assert_true(lane_eq(c->ev.lane, e->lane));
    assert_true(c->box == m->w->box);
    if (e->state == STATE_PROCESSING) {
        assert_int_equal(c->attempt, e->attempts + 1);
        assert_int_equal(c->deadline, e->deadline);
    }
}

void model_commit(struct model *m)
{
    struct world *w = m->w;

    world_commit(w);
    assert_int_equal(w->n_held - m->n_held_before, m->n_expected);
    for (size_t i = 0; i < m->n_expected; i++) {
        assert_int_equal(w->held[m->n_held_before + i]->ev.seq, m->expected[i]);
        check_claim(m, w->held[m->n_held_before + i]);
    }
    m->n_expected = 0;
    model_compare(m);
}

void model_compare(struct model *m)
{
    struct world *w = m->w;
    struct spool_box_status s = world_status(w);

    for (size_t i = 0; i < m->n; i++) {
        struct model_event *e = &m->events[i];
        struct event_state st = world_state(w, e->seq);
        if (st.state != e->state || st.reason != e->reason || st.attempts != e->attempts ||
            st.interrupted != e->interrupted || st.replayed_as != e->replayed_as)
            fail_msg("event %llu: spool %s %s %u+%u as %llu, model %s %s %u+%u as %llu",
                     (unsigned long long)e->seq, state_name(st.state), reason_name(st.reason), st.attempts,
                     st.interrupted, (unsigned long long)st.replayed_as, state_name(e->state),
                     reason_name(e->reason), e->attempts, e->interrupted, (unsigned long long)e->replayed_as);
        if (e->state == STATE_PROCESSING)
            assert_int_equal(st.push, e->push);
        assert_int_equal(st.served_id, e->served_id);
        if (e->state == STATE_PROCESSING && !e->push)
            assert_int_equal(st.deadline, e->deadline);
        if (e->state == STATE_PENDING && e->due > w->now)
            assert_int_equal(st.next_retry_at, e->due);
    }
    assert_int_equal(s.counts.pending, count(m, STATE_PENDING));
    assert_int_equal(s.counts.processing, count(m, STATE_PROCESSING));
    assert_int_equal(s.counts.done, m->done_before + count(m, STATE_DONE));
    assert_int_equal(s.counts.dead, m->dead_before + count(m, STATE_DEAD));
    assert_int_equal(s.counts.duplicates, m->duplicates);
    assert_int_equal(s.paused_deliver, m->paused);
    assert_int_equal(spool_last_served(w->box), m->last_served);
    struct spool_box *out = spool_find_box(w->sp, "shop", BOX_OUT);
    if (out)
        spool_box_status(out, &s);
    assert_int_equal(out ? s.counts.received : 0, m->calls);
    assert_int_equal(out ? s.counts.pending : 0, m->calls - m->calls_ended);
    s = world_status(w);
    assert_int_equal(s.oldest_unfinished_at == 0, s.counts.pending + s.counts.processing == 0);
}

/* What a dead process of ours held is released; pull leases go on, and what was served stays so. */
void model_reopen(struct model *m, int64_t gap_ms, enum order order)
{
    struct world *w = m->w;
    static struct event_state before[MODEL_EVENTS];
    struct breaker b = world_status(w).breaker;

    for (size_t i = 0; i < m->n; i++)
        before[i] = world_state(w, m->events[i].seq);
    m->epoch += order != w->policy.order;
    w->policy.order = order;
    world_reopen(w, gap_ms);
    m->opened_at = w->now;
    if (!w->policy.serve)
        let_go_served(m);
    for (size_t i = 0; i < m->n; i++) {
        struct model_event *e = &m->events[i];
        if (e->state == STATE_PROCESSING && e->push && !e->served_id) {
            struct decision d = decide(m, e, OUTCOME_RELEASED, -1, &before[i], &b);
            decided(m, e, &d);
        }
    }
    m->n_held_before = 0;
    model_retain(m);
    model_begin(m);
    model_work(m);
    model_commit(m);
    world_verify(w);
}

void model_drain(struct model *m)
{
    struct world *w = m->w;

    for (int i = 0; i < 100000 && count(m, STATE_PENDING) + count(m, STATE_PROCESSING); i++) {
        model_begin(m);
        if (m->paused)
            model_pause(m, false);
        if (w->policy.serve)
            model_set_serve(m, false);
        while (w->n_held)
            model_complete(m, w->held[0], OUTCOME_DONE, -1);
        model_work(m);
        model_claim(m, 100, PUSH);
        model_commit(m);
        if (w->n_held)
            continue;
        int64_t next = spool_next_deadline(w->sp);
        if (count(m, STATE_PENDING) + count(m, STATE_PROCESSING) == 0)
            break;
        if (next == TIME_NEVER)
            fail_msg("events wait, but the spool has nothing to wait for");
        if (next > w->now)
            w->now = next;
    }
    assert_int_equal(count(m, STATE_PENDING) + count(m, STATE_PROCESSING), 0);
    world_verify(w);
}

void model_fold(struct model *m)
{
    assert_int_equal(count(m, STATE_PENDING) + count(m, STATE_PROCESSING), 0);
    m->done_before += count(m, STATE_DONE);
    m->dead_before += count(m, STATE_DEAD);
    m->n = m->n_ids = 0;
}
