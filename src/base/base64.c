#include "base/base64.h"

#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, struct slice bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.p, *end = p + bytes.n;
    char *to = buf_reserve(out, (bytes.n + 2) / 3 * 4);
    size_t n = 0;

    for (; p < end; p += 3) {
        size_t left = (size_t)(end - p);
        uint32_t v = (uint32_t)p[0] << 16 | (left > 1 ? (uint32_t)p[1] << 8 : 0) | (left > 2 ? p[2] : 0);
        to[n++] = letters[v >> 18];
        to[n++] = letters[v >> 12 & 63];
        to[n++] = left > 1 ? letters[v >> 6 & 63] : '=';
        to[n++] = left > 2 ? letters[v & 63] : '=';
        if (left < 3)
            break;
    }
    buf_added(out, n);
}

/* -1: no letter of base64. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_add_decoded(struct buf *out, struct slice text)
{
    size_t pad = 0, n = 0;

    if (text.n % 4)
        return -1;
    while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
        pad++;
    char *to = buf_reserve(out, text.n / 4 * 3);
    for (size_t i = 0; i < text.n; i += 4) {
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int value = i + k >= text.n - pad ? 0 : value_of(text.p[i + k]);
            if (value < 0)
                return -1;
            v = v << 6 | (uint32_t)value;
        }
        to[n++] = (char)(v >> 16);
        to[n++] = (char)(v >> 8);
        to[n++] = (char)v;
    }
    buf_added(out, n - pad);
    return 0;
}
