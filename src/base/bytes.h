/* Bytes: a borrowed slice, and numbers in fixed byte order. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that belong to someone else. Not terminated; may hold zeros. */
struct slice {
    const char *p;
    size_t n;
};

static inline struct slice slice_make(const void *p, size_t n)
{
    return (struct slice){(const char *)p, n};
}

static inline struct slice slice_str(const char *s)
{
    return (struct slice){s, s ? strlen(s) : 0};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_eq_str(struct slice a, const char *s)
{
    return slice_eq(a, slice_str(s));
}

/* Equal but for the case of ASCII letters (header names, methods). */
bool slice_eq_nocase(struct slice a, const char *s);

/* Constant-time comparison for secrets; only the lengths may be learnt from its time. */
bool slice_eq_secret(struct slice a, struct slice b);

/* Big-endian, so that the order of bytes is the order of numbers. */
void put_be16(void *p, uint16_t v);
void put_be32(void *p, uint32_t v);
void put_be64(void *p, uint64_t v);
uint16_t get_be16(const void *p);
uint32_t get_be32(const void *p);
uint64_t get_be64(const void *p);

/* Signed 64-bit numbers as an unsigned one of the same order (the sign bit flipped). */
static inline uint64_t order_i64(int64_t v)
{
    return (uint64_t)v ^ (UINT64_C(1) << 63);
}

static inline int64_t unorder_i64(uint64_t v)
{
    return (int64_t)(v ^ (UINT64_C(1) << 63));
}

/* Writes 2 * n lower-case hex digits and a terminator to out. */
void hex_encode(const void *p, size_t n, char *out);
/* Reads exactly 2 * n hex digits. Returns 0, or -1 if s is anything else. */
int hex_decode(struct slice s, void *out, size_t n);

#endif
