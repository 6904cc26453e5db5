/* The writer. */
#include "wire/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/histogram.h"

void metrics_family(struct metrics_out *m, const char *name, const char *type, const char *help)
{
    m->family = name;
    buf_printf(m->out, "# HELP %s ", name);
    for (const char *p = help; *p; p++) {
        if (*p == '\\' || *p == '\n')
            buf_add_char(m->out, '\\');
        buf_add_char(m->out, *p == '\n' ? 'n' : *p);
    }
    buf_printf(m->out, "\n# TYPE %s %s\n", name, type);
}

static void add_label(struct buf *out, bool first, const char *name, const char *value)
{
    buf_printf(out, "%s%s=\"", first ? "{" : ",", name);
    for (const char *p = value; *p; p++) {
        if (*p == '\\' || *p == '"' || *p == '\n')
            buf_add_char(out, '\\');
        buf_add_char(out, *p == '\n' ? 'n' : *p);
    }
    buf_add_char(out, '"');
}

/* The sample's name and labels. le: of a bucket; NULL: it is none. */
static void add_name(struct metrics_out *m, const char *suffix, const struct metric_label *labels,
                     const char *le)
{
    bool first = true;

    buf_printf(m->out, "%s%s", m->family, suffix);
    for (; labels && labels->name; labels++, first = false)
        add_label(m->out, first, labels->name, labels->value);
    if (le) {
        add_label(m->out, first, "le", le);
        first = false;
    }
    buf_add_str(m->out, first ? " " : "} ");
}

/* A decimal number without superfluous zeros behind the point. */
static void format_scaled(char out[48], int64_t value, unsigned digits)
{
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, unit = 1;

    assert(digits <= 9);
    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    int n = snprintf(out, 48, "%s%" PRIu64, value < 0 ? "-" : "", v / unit);
    if (v % unit == 0)
        return;
    n += snprintf(out + n, 48 - (size_t)n, ".%0*" PRIu64, (int)digits, v % unit);
    while (out[n - 1] == '0')
        out[--n] = '\0';
}

static void add_sample(struct metrics_out *m, const char *suffix, const struct metric_label *labels,
                       const char *le, const char *value)
{
    add_name(m, suffix, labels, le);
    buf_printf(m->out, "%s\n", value);
}

void metrics_uint(struct metrics_out *m, const struct metric_label *labels, uint64_t value)
{
    add_name(m, "", labels, NULL);
    buf_printf(m->out, "%" PRIu64 "\n", value);
}

void metrics_scaled(struct metrics_out *m, const struct metric_label *labels, int64_t value, unsigned digits)
{
    char text[48];

    format_scaled(text, value, digits);
    add_sample(m, "", labels, NULL, text);
}

void metrics_histogram(struct metrics_out *m, const struct metric_label *labels, const struct histogram *h,
                       unsigned digits)
{
    char le[48], value[48];
    uint64_t below = 0;

    for (size_t i = 0; i <= h->scale->n; i++) {
        below += h->counts[i];
        snprintf(le, sizeof(le), "+Inf");
        if (i < h->scale->n)
            format_scaled(le, (int64_t)h->scale->bounds[i], digits);
        snprintf(value, sizeof(value), "%" PRIu64, below);
        add_sample(m, "_bucket", labels, le, value);
    }
    format_scaled(value, (int64_t)h->sum, digits);
    add_sample(m, "_sum", labels, NULL, value);
    snprintf(value, sizeof(value), "%" PRIu64, h->count);
    add_sample(m, "_count", labels, NULL, value);
}
