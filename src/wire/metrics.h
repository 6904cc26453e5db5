/* Prometheus' text format, version 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/). Families are
 * written one after the other, each with its samples right behind it. */
#ifndef WIRE_METRICS_H
#define WIRE_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct histogram;

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metric_label {
    const char *name, *value; /* any text; escaped */
};
#define METRIC_LABELS_MAX 4

struct metrics_out {
    struct buf *out;
    const char *family; /* borrowed until the next */
};

/* type: "counter", "gauge" or "histogram". help: one line. */
void metrics_family(struct metrics_out *m, const char *name, const char *type, const char *help);
/* A sample of the family. labels end with a NULL name; NULL: none. */
void metrics_uint(struct metrics_out *m, const struct metric_label *labels, uint64_t value);
/* value / 10^digits, exactly: milliseconds as seconds with digits 3. */
void metrics_scaled(struct metrics_out *m, const struct metric_label *labels, int64_t value, unsigned digits);
/* Its buckets, sum and count, each / 10^digits. */
void metrics_histogram(struct metrics_out *m, const struct metric_label *labels, const struct histogram *h,
                       unsigned digits);

#endif
