/* A growing byte buffer. The content is always followed by a zero byte that is not counted, so that text in
 * it can be used as a C string. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include "base/bytes.h"

struct buf {
    char *p; /* owned; NULL while nothing was ever added */
    size_t n;
    size_t cap;
};

#define BUF_EMPTY ((struct buf){NULL, 0, 0})

void buf_free(struct buf *b);               /* gives the memory back; the buffer is empty and usable */
void buf_clear(struct buf *b);              /* keeps the memory */
void buf_trim(struct buf *b, size_t keep);  /* if empty and larger than keep bytes: gives it back */
char *buf_reserve(struct buf *b, size_t n); /* room for n more bytes (and the zero); returns where they go */
void buf_added(struct buf *b, size_t n);    /* n bytes were written to what buf_reserve returned */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_add_slice(struct buf *b, struct slice s);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void buf_drop(struct buf *b, size_t n);   /* removes the first n bytes */
char *buf_steal(struct buf *b);           /* the caller owns the bytes (with their zero); b is empty */
const char *buf_str(const struct buf *b); /* never NULL */

static inline struct slice buf_slice(const struct buf *b)
{
    return slice_make(b->p, b->n);
}

#endif
