#include "base/bytes.h"

#include <strings.h>

bool slice_eq_nocase(struct slice a, const char *s)
{
    size_t n = strlen(s);
    return a.n == n && (n == 0 || strncasecmp(a.p, s, n) == 0);
}

bool slice_eq_secret(struct slice a, struct slice b)
{
    volatile unsigned char diff = 0;

    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        diff |= (unsigned char)(a.p[i] ^ b.p[i]);
    return diff == 0;
}

static void put_be(unsigned char *p, uint64_t v, size_t n)
{
    while (n-- > 0) {
        p[n] = (unsigned char)v;
        v >>= 8;
    }
}

static uint64_t get_be(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

void put_be16(void *p, uint16_t v)
{
    put_be(p, v, 2);
}

void put_be32(void *p, uint32_t v)
{
    put_be(p, v, 4);
}

void put_be64(void *p, uint64_t v)
{
    put_be(p, v, 8);
}

uint16_t get_be16(const void *p)
{
    return (uint16_t)get_be(p, 2);
}

uint32_t get_be32(const void *p)
{
    return (uint32_t)get_be(p, 4);
}

uint64_t get_be64(const void *p)
{
    return get_be(p, 8);
}

void hex_encode(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++) {
        *out++ = digits[b[i] >> 4];
        *out++ = digits[b[i] & 15];
    }
    *out = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int hex_decode(struct slice s, void *out, size_t n)
{
    unsigned char *b = out;

    if (s.n != 2 * n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int hi = hex_digit(s.p[2 * i]), lo = hex_digit(s.p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return -1;
        b[i] = (unsigned char)(hi << 4 | lo);
    }
    return 0;
}
