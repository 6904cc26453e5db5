/* Allocation that never fails: a daemon of some 30 MiB that cannot get memory ends at once, with a message,
 * and its spool is as safe as after a kill. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/* Each returns memory to be released with free(), and never NULL. xcalloc checks n * size for overflow. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
