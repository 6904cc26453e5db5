/* How values are spread: counts in fixed buckets, in memory since the start. Values are whole numbers of a unit that
 * the owner knows (microseconds, milliseconds, events). */
#ifndef CORE_HISTOGRAM_H
#define CORE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 16

/* The upper bounds of the buckets, ascending, inclusive; what is above the last goes into a bucket of its own. */
struct histogram_scale {
    size_t n;
    uint64_t bounds[HISTOGRAM_BUCKETS];
};
extern const struct histogram_scale histogram_us;     /* 100 us .. 10 s */
extern const struct histogram_scale histogram_ms;     /* 5 ms .. 10 min */
extern const struct histogram_scale histogram_events; /* 1 .. 1,000 */

struct histogram {
    const struct histogram_scale *scale;
    uint64_t counts[HISTOGRAM_BUCKETS + 1]; /* of each bucket by itself; the last: above all bounds */
    uint64_t count, sum;
};
#define HISTOGRAM(scale_) ((struct histogram){.scale = &(scale_)})

void histogram_add(struct histogram *h, uint64_t value);

#endif
