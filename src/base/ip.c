/* Addresses as sixteen bytes each, so that there is one comparison for both families. */
#include "base/ip.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};

#define MAPPED_BITS (8 * (unsigned)sizeof(mapped))

bool ip_is_v4(const struct ip_addr *a)
{
    return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

bool ip_parse(struct slice text, struct ip_addr *out)
{
    char s[INET6_ADDRSTRLEN];

    if (text.n == 0 || text.n >= sizeof(s) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(s, text.p, text.n);
    s[text.n] = '\0';
    memcpy(out->b, mapped, sizeof(mapped));
    return inet_pton(AF_INET, s, out->b + sizeof(mapped)) == 1 || inet_pton(AF_INET6, s, out->b) == 1;
}

bool ip_is_loopback(const struct ip_addr *a)
{
    static const struct ip_addr one = {{[15] = 1}};
    return ip_is_v4(a) ? a->b[12] == 127 : memcmp(a, &one, sizeof(one)) == 0;
}

bool ip_is_any(const struct ip_addr *a)
{
    static const struct ip_addr zero;
    return memcmp(a->b + 12, zero.b, 4) == 0 && (ip_is_v4(a) || memcmp(a, &zero, 12) == 0);
}

/* Clears the bits behind the prefix. */
static void mask(struct ip_addr *a, unsigned prefix)
{
    for (unsigned i = 0; i < sizeof(a->b); i++) {
        unsigned keep = prefix > 8 * i ? prefix - 8 * i : 0;
        if (keep < 8)
            a->b[i] &= (unsigned char)(0xFF00u >> keep);
    }
}

bool ip_net_parse(struct slice text, struct ip_net *out)
{
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    struct slice addr = slice_make(text.p, slash ? (size_t)(slash - text.p) : text.n);
    int64_t bits;

    if (!ip_parse(addr, &out->addr))
        return false;
    /* ::ffff:10.0.0.0/104 counts all 128 bits, 10.0.0.0/8 its 32 */
    unsigned base = memchr(addr.p, ':', addr.n) ? 0 : MAPPED_BITS;
    out->prefix = 128;
    if (slash) {
        struct slice digits = slice_make(slash + 1, text.n - addr.n - 1);
        if (digits.n > 3 || text_to_i64(digits, 0, 128 - base, &bits) < 0 || digits.p[0] == '-')
            return false;
        out->prefix = base + (unsigned)bits;
    }
    mask(&out->addr, out->prefix);
    return true;
}

bool ip_net_has(const struct ip_net *net, const struct ip_addr *a)
{
    struct ip_addr front = *a;

    mask(&front, net->prefix);
    return memcmp(&front, &net->addr, sizeof(front)) == 0;
}

bool ip_nets_have(const struct ip_nets *nets, const struct ip_addr *a)
{
    for (size_t i = 0; i < nets->n; i++)
        if (ip_net_has(&nets->net[i], a))
            return true;
    return false;
}

char *ip_net_text(const struct ip_net *net, char out[IP_TEXT_MAX])
{
    bool v4 = ip_is_v4(&net->addr) && net->prefix >= MAPPED_BITS;

    inet_ntop(v4 ? AF_INET : AF_INET6, net->addr.b + (v4 ? sizeof(mapped) : 0), out, INET6_ADDRSTRLEN);
    if (net->prefix < 128) {
        size_t n = strlen(out);
        snprintf(out + n, IP_TEXT_MAX - n, "/%u", net->prefix - (v4 ? MAPPED_BITS : 0));
    }
    return out;
}

const char *ip_port_parse(struct slice text, struct ip_port *out)
{
    const char *colon = text.n ? memrchr(text.p, ':', text.n) : NULL;
    int64_t port;

    if (!colon || (text.p[text.n - 1] == ']'))
        return "names no port";
    struct slice host = slice_make(text.p, (size_t)(colon - text.p));
    struct slice digits = slice_make(colon + 1, text.n - host.n - 1);
    bool brackets = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    if (host.n == 0 || slice_eq_str(host, "*"))
        return "names no address; 0.0.0.0 or [::] stands for all of them";
    if (slice_eq_nocase(host, "localhost"))
        host = slice_str("127.0.0.1");
    else if (brackets)
        host = slice_make(host.p + 1, host.n - 2);
    else if (memchr(host.p, ':', host.n))
        return "has an IPv6 address without brackets";
    if (!ip_parse(host, &out->addr) || (brackets && !memchr(host.p, ':', host.n)))
        return "does not start with an IP address or localhost";
    if (digits.n == 0 || digits.n > 5 || text_to_i64(digits, 0, 65535, &port) < 0 || digits.p[0] == '-')
        return "has no port from 1 to 65535 at its end";
    out->port = (uint16_t)port;
    return NULL;
}

bool ip_port_clash(const struct ip_port *a, const struct ip_port *b)
{
    return a->port == b->port &&
           (memcmp(&a->addr, &b->addr, sizeof(a->addr)) == 0 || ip_is_any(&a->addr) || ip_is_any(&b->addr));
}
