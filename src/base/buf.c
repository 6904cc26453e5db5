#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void buf_free(struct buf *b)
{
    free(b->p);
    *b = BUF_EMPTY;
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

void buf_trim(struct buf *b, size_t keep)
{
    if (b->n == 0 && b->cap > keep)
        buf_free(b);
}

char *buf_reserve(struct buf *b, size_t n)
{
    assert(n < SIZE_MAX / 4 && b->n < SIZE_MAX / 4);
    size_t need = b->n + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < need)
            cap += cap / 2;
        b->p = xrealloc(b->p, cap);
        b->cap = cap;
        b->p[b->n] = '\0'; /* nothing may come to be added */
    }
    return b->p + b->n;
}

void buf_added(struct buf *b, size_t n)
{
    assert(b->n + n < b->cap || (n == 0 && b->cap == 0));
    b->n += n;
    if (b->p)
        b->p[b->n] = '\0';
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    char *to = buf_reserve(b, n);
    if (n)
        memcpy(to, p, n);
    buf_added(b, n);
}

void buf_add_slice(struct buf *b, struct slice s)
{
    buf_add(b, s.p, s.n);
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;

    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    assert(n >= 0);
    vsnprintf(buf_reserve(b, (size_t)n), (size_t)n + 1, fmt, again);
    buf_added(b, (size_t)n);
    va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_drop(struct buf *b, size_t n)
{
    assert(n <= b->n);
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    b->p[b->n] = '\0';
}

char *buf_steal(struct buf *b)
{
    buf_reserve(b, 0);
    b->p[b->n] = '\0';
    char *p = b->p;
    *b = BUF_EMPTY;
    return p;
}

const char *buf_str(const struct buf *b)
{
    return b->p ? b->p : "";
}
