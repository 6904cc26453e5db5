/* When an alert is told. */
#include "core/alert.h"

static const char *const names[ALERT_KINDS] = {
    [ALERT_OLDEST] = "oldest",         [ALERT_DEAD] = "dead",         [ALERT_LEASE] = "lease",
    [ALERT_INTAKE] = "intake",         [ALERT_DISK] = "disk",         [ALERT_STORE] = "store",
    [ALERT_CORRUPTION] = "corruption", [ALERT_UPSTREAM] = "upstream", [ALERT_BREAKER] = "breaker",
    [ALERT_PAUSED] = "paused",         [ALERT_TEST] = "test",
};

const char *alert_name(enum alert_kind kind)
{
    return names[kind];
}

/* ---- conditions --------------------------------------------------------------------------------- */

static int64_t rest_of(const struct alert_watch *w, const struct alert_rule *r)
{
    int64_t rest = r->rest_ms;

    for (unsigned i = 0; i < w->flaps && rest < ALERT_REST_CAP_MS; i++)
        rest *= 2;
    return rest < ALERT_REST_CAP_MS || r->rest_ms > ALERT_REST_CAP_MS ? rest : ALERT_REST_CAP_MS;
}

static enum alert_turn look_on(struct alert_watch *w, const struct alert_rule *r, int64_t began, int64_t now)
{
    w->on = true;
    if (!w->firing) {
        w->since = began;
        if (now - began < r->hold_ms)
            return ALERT_QUIET;
        w->firing = true;
        w->flaps = w->over_at && now - w->over_at < ALERT_FLAP_MS ? w->flaps + 1 : 0;
        w->told_at = now;
        return ALERT_FIRES;
    }
    if (now - w->told_at < r->repeat_ms)
        return ALERT_QUIET;
    w->told_at = now;
    return ALERT_AGAIN;
}

enum alert_turn alert_look(struct alert_watch *w, const struct alert_rule *r, int64_t began, int64_t now)
{
    if (began)
        return look_on(w, r, began, now);
    if (w->on)
        w->off_since = now;
    w->on = false;
    if (!w->firing || now - w->off_since < rest_of(w, r))
        return ALERT_QUIET;
    w->firing = false;
    w->over_at = now;
    return ALERT_ENDS;
}

int64_t alert_look_at(const struct alert_watch *w, const struct alert_rule *r)
{
    if (w->on)
        return w->firing ? w->told_at + r->repeat_ms : w->since + r->hold_ms;
    return w->firing ? w->off_since + rest_of(w, r) : TIME_NEVER;
}

/* ---- what is counted ---------------------------------------------------------------------------- */

static void take_total(struct alert_counter *c, uint64_t total, int64_t now)
{
    if (!c->started || total < c->seen)
        c->seen = total;
    c->started = true;
    if (total == c->seen)
        return;
    if (!c->fresh)
        c->first_at = now;
    c->fresh += total - c->seen;
    c->seen = total;
    c->last_at = now;
}

static void tell(struct alert_counter *c, int64_t now, uint64_t *value)
{
    *value = c->fresh;
    c->told += c->fresh;
    c->fresh = 0;
    c->told_at = now;
}

enum alert_turn alert_count(struct alert_counter *c, const struct alert_count_rule *r, uint64_t total,
                            int64_t now, uint64_t *value)
{
    *value = 0;
    take_total(c, total, now);
    if (!c->firing) {
        if (!c->fresh || now - c->first_at < r->gather_ms)
            return ALERT_QUIET;
        if (c->fresh < r->at_least) {
            if (now - c->first_at >= r->repeat_ms)
                c->fresh = 0; /* too few in that time to speak of */
            return ALERT_QUIET;
        }
        c->firing = true;
        c->since = c->first_at;
        c->told = 0;
        tell(c, now, value);
        return ALERT_FIRES;
    }
    if (now - c->last_at >= r->quiet_ms) {
        tell(c, now, value);
        *value = c->told;
        c->firing = false;
        return ALERT_ENDS;
    }
    if (!c->fresh || now - c->told_at < r->repeat_ms)
        return ALERT_QUIET;
    tell(c, now, value);
    return ALERT_AGAIN;
}

int64_t alert_count_at(const struct alert_counter *c, const struct alert_count_rule *r)
{
    if (!c->firing) {
        if (!c->fresh)
            return TIME_NEVER;
        return c->first_at + (c->fresh < r->at_least ? r->repeat_ms : r->gather_ms);
    }
    int64_t over = c->last_at + r->quiet_ms, again = c->told_at + r->repeat_ms;
    return c->fresh && again < over ? again : over;
}
