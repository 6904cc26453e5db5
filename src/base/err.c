#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int exit_code, const char *fmt, ...)
{
    va_list ap;

    if (!e)
        return -1;
    e->exit_code = exit_code;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    return -1;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    char prefix[256], old[sizeof(e->text)];
    va_list ap;

    if (!e)
        return -1;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof(prefix), fmt, ap);
    va_end(ap);
    memcpy(old, e->text, sizeof(old));
    snprintf(e->text, sizeof(e->text), "%s: %.*s", prefix, (int)(sizeof(e->text) - sizeof(prefix) - 3), old);
    return -1;
}
