/* Waiting times that grow, with jitter. */
#include "core/backoff.h"

#include <assert.h>

/* ms moved by up to +-percent, evenly over the 32 bits of random. */
static int64_t jitter(int64_t ms, int percent, uint32_t random)
{
    int64_t width = ms / 100 * percent + ms % 100 * percent / 100; /* no overflow for any ms */
    if (width == 0)
        return ms;
    return ms - width + (int64_t)((double)random / UINT32_MAX * (double)(2 * width));
}

int64_t retry_wait(const struct retry_schedule *s, unsigned n, uint32_t random)
{
    assert(s->n > 0 && n > 0);
    size_t step = n - 1 < s->n ? n - 1 : s->n - 1;
    return jitter(s->step_ms[step], s->jitter_percent, random);
}

int64_t backoff_wait(int64_t first_ms, int64_t cap_ms, unsigned n, uint32_t random)
{
    int64_t wait = first_ms;

    assert(n > 0);
    while (n-- > 1 && wait < cap_ms)
        wait *= 2;
    return jitter(wait < cap_ms ? wait : cap_ms, 20, random);
}
