/* Headers that a proxy must not pass on. */
#include "wire/http_hop.h"

#include <strings.h>

#include "base/mem.h"

static const char *const dropped[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Authentication-Info",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Host",
    "Expect",
    "Content-Length",
};

static bool is_dropped(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        if (slice_eq_nocase(name, dropped[i]))
            return true;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Whether the comma-separated list has that name. */
static bool list_has(struct slice list, struct slice name)
{
    const char *p = list.p, *end = list.p + list.n;

    while (p < end) {
        const char *comma = memchr(p, ',', (size_t)(end - p)), *to = comma ? comma : end, *next = to + 1;
        while (p < to && is_blank(*p))
            p++;
        while (to > p && is_blank(to[-1]))
            to--;
        if ((size_t)(to - p) == name.n && strncasecmp(p, name.p, name.n) == 0)
            return true;
        p = next;
    }
    return false;
}

static bool is_named_by_connection(const struct http_field *fields, size_t n, struct slice name)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_nocase(fields[i].name, "Connection") && list_has(fields[i].value, name))
            return true;
    return false;
}

size_t http_end_to_end(const struct http_field *fields, size_t n, struct http_field *out)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!is_dropped(fields[i].name) && !is_named_by_connection(fields, n, fields[i].name))
            out[kept++] = fields[i];
    return kept;
}
