/* X-Forwarded-For, read from its end: each proxy appends the address it was asked from, and what stands before
 * the first entry of a proxy that we trust is whatever the client liked to write. */
#include "wire/forwarded.h"

#include <string.h>

/* Cuts the last entry off the value. */
static struct slice cut_last(struct slice *value)
{
    const char *comma = value->n ? memrchr(value->p, ',', value->n) : NULL;
    struct slice entry = comma ? slice_make(comma + 1, value->n - (size_t)(comma + 1 - value->p)) : *value;

    *value = slice_make(value->p, comma ? (size_t)(comma - value->p) : 0);
    while (entry.n && (*entry.p == ' ' || *entry.p == '\t'))
        entry = slice_make(entry.p + 1, entry.n - 1);
    while (entry.n && (entry.p[entry.n - 1] == ' ' || entry.p[entry.n - 1] == '\t'))
        entry.n--;
    return entry;
}

/* An address as proxies write it: also "A.B.C.D:PORT", "[V6]" and "[V6]:PORT". */
static bool parse_hop(struct slice s, struct ip_addr *out)
{
    const char *colon = s.n ? memchr(s.p, ':', s.n) : NULL;
    const char *close = s.n && *s.p == '[' ? memchr(s.p, ']', s.n) : NULL;

    if (close)
        s = slice_make(s.p + 1, (size_t)(close - s.p) - 1);
    else if (colon && memchr(s.p, '.', (size_t)(colon - s.p)))
        s.n = (size_t)(colon - s.p);
    return ip_parse(s, out);
}

bool forwarded_client(const struct ip_addr *peer, struct slice header, const struct ip_nets *trusted,
                      struct ip_addr *client)
{
    *client = *peer;
    while (header.n && ip_nets_have(trusted, client))
        if (!parse_hop(cut_last(&header), client))
            return false;
    return true;
}
