/* Buckets. */
#include "core/histogram.h"

const struct histogram_scale histogram_us = {
    16,
    {100, 250, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000,
     10000000},
};

const struct histogram_scale histogram_ms = {
    16,
    {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000, 300000, 600000},
};

const struct histogram_scale histogram_events = {10, {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}};

void histogram_add(struct histogram *h, uint64_t value)
{
    size_t i = 0;

    while (i < h->scale->n && value > h->scale->bounds[i])
        i++;
    h->counts[i]++;
    h->count++;
    h->sum += value;
}
