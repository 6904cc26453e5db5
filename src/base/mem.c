#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void out_of_memory(void) __attribute__((noreturn));

/* No allocation and no stdio: both may need memory themselves. */
static void out_of_memory(void)
{
    static const char text[] = "tgspool: out of memory; stopped, the spool on disk is unharmed\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)n;
    _exit(71);
}

void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

void *xrealloc(void *p, size_t size)
{
    p = realloc(p, size ? size : 1);
    if (!p)
        out_of_memory();
    return p;
}

char *xstrdup(const char *s)
{
    return xmemdup(s, strlen(s) + 1);
}

char *xstrndup(const char *s, size_t n)
{
    char *p = xmalloc(n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xmalloc(n);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *s;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory();
    return s;
}
