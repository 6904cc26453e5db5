/* When a consumer is a new one. Nothing on the wire says so; what libraries do at their start does. */
#include "base/clock.h"
#include "serve/dropin_bot.h"

#define GAP SECONDS(120) /* longer than the longest poll */

void consumer_starts(struct consumer *c)
{
    c->fresh = true;
}

static void begin(struct consumer *c, int64_t now)
{
    if (c->confirmed) { /* one that started and ended without a confirmation leaves the earlier figure */
        c->before = c->confirmed;
        c->before_until = c->seen_at;
    }
    c->confirmed = 0;
    c->since = now;
    c->fresh = false;
}

void consumer_polls(struct consumer *c, int64_t offset, int64_t now)
{
    bool first_offset = offset <= 1 && c->confirmed > 0; /* it knows of nothing that it confirmed */

    if (!c->since || c->fresh || first_offset || now - c->seen_at > GAP)
        begin(c, now);
    c->seen_at = now;
}

void consumer_confirmed(struct consumer *c, unsigned n)
{
    c->confirmed += n;
}
