/* Keeping the last line of a stream. */
#include "deliver/errline.h"

#include "base/text.h"

void errline_init(struct errline *e)
{
    e->n = e->n_last = 0;
    e->after_ms = -1;
}

static struct slice trim(struct slice s)
{
    while (s.n && ((unsigned char)s.p[0] <= ' '))
        s.p++, s.n--;
    while (s.n && ((unsigned char)s.p[s.n - 1] <= ' '))
        s.n--;
    return s;
}

/* Returns whether the line is `retry-after: N`, N in seconds. A number that makes no sense leaves it a line
 * like any other. */
static bool is_retry_after(struct slice line, int64_t *after_ms)
{
    static const char name[] = "retry-after:";
    size_t n = sizeof(name) - 1;
    int64_t seconds;

    if (line.n < n || !slice_eq_nocase(slice_make(line.p, n), name) ||
        text_to_i64(trim(slice_make(line.p + n, line.n - n)), 0, INT64_MAX / 1000, &seconds))
        return false;
    *after_ms = seconds * 1000;
    return true;
}

static void line_ended(struct errline *e)
{
    struct slice line = trim(slice_make(e->line, e->n));

    e->n = 0;
    if (!line.n || is_retry_after(line, &e->after_ms))
        return;
    memcpy(e->last, line.p, line.n);
    e->n_last = line.n;
}

void errline_add(struct errline *e, struct slice bytes)
{
    while (bytes.n) {
        const char *newline = memchr(bytes.p, '\n', bytes.n);
        size_t n = newline ? (size_t)(newline - bytes.p) : bytes.n;
        size_t fits = n < sizeof(e->line) - e->n ? n : sizeof(e->line) - e->n;
        memcpy(e->line + e->n, bytes.p, fits);
        e->n += fits;
        if (!newline)
            return;
        line_ended(e);
        bytes = slice_make(newline + 1, bytes.n - n - 1);
    }
}

struct slice errline_end(struct errline *e)
{
    line_ended(e);
    return slice_make(e->last, e->n_last);
}
