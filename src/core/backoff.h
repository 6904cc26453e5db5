/* Waiting times that grow, with jitter. Pure: randomness is given. */
#ifndef CORE_BACKOFF_H
#define CORE_BACKOFF_H

#include <stddef.h>
#include <stdint.h>

#define RETRY_STEPS_MAX 16

struct retry_schedule {
    int64_t step_ms[RETRY_STEPS_MAX]; /* the last one repeats */
    size_t n;                         /* at least 1 */
    int jitter_percent;               /* 0..100: a wait is step +- this much, evenly */
};

/* The wait after the n-th failure (n from 1). random is any 32-bit random number. */
int64_t retry_wait(const struct retry_schedule *s, unsigned n, uint32_t random);

/* Exponential: first << (n - 1), capped, n from 1; then jittered by +-20 %, never above cap + 20 %. */
int64_t backoff_wait(int64_t first_ms, int64_t cap_ms, unsigned n, uint32_t random);

#endif
