#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"

int text_to_i64(struct slice s, int64_t min, int64_t max, int64_t *out)
{
    size_t i = 0;
    bool negative = s.n > 0 && s.p[0] == '-';
    int64_t v = 0;

    i += negative;
    if (i == s.n)
        return -1;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        int digit = s.p[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, negative ? -digit : digit, &v))
            return -1;
    }
    if (v < min || v > max)
        return -1;
    *out = v;
    return 0;
}

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit time_units[] = {{"", 1000},   {"ms", 1},      {"s", 1000},
                                         {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
static const struct unit size_units[] = {{"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}};

static int with_unit(struct slice s, const struct unit *units, size_t n_units, int64_t *out)
{
    size_t digits = 0;
    int64_t v;

    while (digits < s.n && isdigit((unsigned char)s.p[digits]))
        digits++;
    if (text_to_i64(slice_make(s.p, digits), 0, INT64_MAX, &v) < 0)
        return -1;
    struct slice unit = slice_make(s.p + digits, s.n - digits);
    for (size_t i = 0; i < n_units; i++)
        if (slice_eq_str(unit, units[i].name))
            return __builtin_mul_overflow(v, units[i].factor, out) ? -1 : 0;
    return -1;
}

int text_to_ms(struct slice s, int64_t *ms)
{
    return with_unit(s, time_units, sizeof(time_units) / sizeof(time_units[0]), ms);
}

int text_to_size(struct slice s, int64_t *bytes)
{
    return with_unit(s, size_units, sizeof(size_units) / sizeof(size_units[0]), bytes);
}

int text_to_thousandths(struct slice s, int64_t *out)
{
    const char *dot = memchr(s.p, '.', s.n);
    int64_t whole, part = 0;

    if (!dot || dot + 1 == s.p + s.n)
        return -1;
    if (text_to_i64(slice_make(s.p, (size_t)(dot - s.p)), 0, INT64_MAX / 2000, &whole) < 0)
        return -1;
    int64_t scale = 100;
    for (const char *c = dot + 1; c < s.p + s.n; c++, scale /= 10) {
        if (*c < '0' || *c > '9')
            return -1;
        part += (*c - '0') * scale;
    }
    *out = whole * 1000 + part;
    return 0;
}

int text_seconds(struct slice text, int64_t *ms)
{
    if (text.n == 0)
        return -1;
    return memchr(text.p, '.', text.n) ? text_to_thousandths(text, ms) : text_to_ms(text, ms);
}

char *text_from_ms(int64_t ms, char out[32])
{
    static const struct unit largest_first[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};

    for (size_t i = 0; ms && i < 4; i++)
        if (ms % largest_first[i].factor == 0) {
            snprintf(out, 32, "%lld%s", (long long)(ms / largest_first[i].factor), largest_first[i].name);
            return out;
        }
    snprintf(out, 32, ms ? "%lldms" : "%llds", (long long)ms);
    return out;
}

char *text_bytes(int64_t bytes, char out[32])
{
    static const char *const units[] = {"KB", "MB", "GB", "TB"};
    double n = (double)bytes / 1024;
    size_t unit = 0;

    for (; n >= 1000 && unit + 1 < ARRAY_LEN(units); unit++)
        n /= 1024;
    snprintf(out, 32, n < 10 && unit ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return out;
}

char *text_time(int64_t unix_ms, char out[32])
{
    time_t t = (time_t)(unix_ms / 1000);
    struct tm tm;
    char date[24];

    if (unix_ms < 0 || !gmtime_r(&t, &tm) || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        snprintf(out, 32, "-");
        return out;
    }
    snprintf(out, 32, "%s.%03dZ", date, (int)(unix_ms % 1000));
    return out;
}

char *text_age(int64_t ms, char out[32])
{
    long long s = ms / 1000;

    if (ms < 1000)
        snprintf(out, 32, "%lldms", (long long)(ms < 0 ? 0 : ms));
    else if (s < 120)
        snprintf(out, 32, "%llds", s);
    else if (s < 7200)
        snprintf(out, 32, "%lldm", s / 60);
    else if (s < 172800)
        snprintf(out, 32, "%lldh%lldm", s / 3600, s % 3600 / 60);
    else
        snprintf(out, 32, "%lldd%lldh", s / 86400, s % 86400 / 3600);
    return out;
}

size_t text_utf8_len(const void *at, size_t n)
{
    const unsigned char *p = at;
    unsigned char lo = 0x80, hi = 0xBF;
    size_t len;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF)
        len = 2;
    else if ((p[0] & 0xF0) == 0xE0)
        len = 3, lo = p[0] == 0xE0 ? 0xA0 : 0x80, hi = p[0] == 0xED ? 0x9F : 0xBF;
    else if (p[0] >= 0xF0 && p[0] <= 0xF4)
        len = 4, lo = p[0] == 0xF0 ? 0x90 : 0x80, hi = p[0] == 0xF4 ? 0x8F : 0xBF;
    else
        return 0;
    if (n < len || p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

void text_add_clean(struct buf *b, struct slice s, size_t max, bool lines)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t i = 0, used = 0;

    while (i < s.n) {
        size_t len = text_utf8_len(p + i, s.n - i);
        const char *add = s.p + i;
        size_t n_add = len;
        if (len == 0)
            add = "\xEF\xBF\xBD", n_add = 3, len = 1;
        else if (len == 1 && (p[i] < 0x20 || p[i] == 0x7F) && !(lines && (p[i] == '\n' || p[i] == '\t')))
            add = " ";
        if (used + n_add > max)
            return;
        buf_add(b, add, n_add);
        used += n_add;
        i += len;
    }
}

static bool is_token_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

void text_scrub_tokens(struct buf *b)
{
    static const char mark[] = "<token>";
    size_t to = 0;

    for (size_t i = 0; i < b->n;) {
        size_t d = i;
        while (d < b->n && isdigit((unsigned char)b->p[d]))
            d++;
        size_t e = d + 1;
        while (d > i && d < b->n && b->p[d] == ':' && e < b->n && is_token_char(b->p[e]))
            e++;
        if (d > i && d < b->n && b->p[d] == ':' && e - d - 1 >= 30) {
            memcpy(b->p + to, mark, sizeof(mark) - 1); /* always shorter than what it stands for */
            to += sizeof(mark) - 1;
            i = e;
        } else {
            size_t run = d > i ? d - i : 1;
            memmove(b->p + to, b->p + i, run);
            to += run;
            i += run;
        }
    }
    b->n = to;
    if (b->p)
        b->p[to] = '\0';
}

bool text_same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

bool text_is_bot_name(struct slice s)
{
    if (s.n < 1 || s.n > 32)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!is_token_char(s.p[i]))
            return false;
    return true;
}

#define DISTANCE_MAX 40

/* The optimal string alignment distance, by rows of its table: this one and the two above. */
unsigned text_distance(struct slice a, struct slice b)
{
    unsigned d[3][DISTANCE_MAX + 1] = {0};

    if (a.n > DISTANCE_MAX || b.n > DISTANCE_MAX)
        return DISTANCE_MAX;
    for (size_t j = 0; j <= b.n; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        unsigned *row = d[i % 3], *above = d[(i + 2) % 3], *above2 = d[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned best = above[j - 1] + (a.p[i - 1] != b.p[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] &&
                above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return d[a.n % 3][b.n];
}
