/* Prometheus' text: whatever a label says, a sample is one line, and its label reads as it was. Numbers with it. */
#include "fuzz.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "wire/metrics.h"

/* Reads the quoted value that p stands behind the quote of; returns what is behind it. */
static const char *unquote(const char *p, const char *end, struct buf *out)
{
    for (; p < end && *p != '"'; p++) {
        CHECK(*p != '\n');
        if (*p == '\\') {
            CHECK(++p < end && strchr("\\\"n", *p));
            buf_add_char(out, *p == 'n' ? '\n' : *p);
        } else {
            buf_add_char(out, *p);
        }
    }
    CHECK(p < end);
    return p + 1;
}

static const char *expect(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);

    CHECK((size_t)(end - p) >= n && memcmp(p, text, n) == 0);
    return p + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint64_t number = 0;
    struct buf out = BUF_EMPTY, back = BUF_EMPTY;
    struct metrics_out m = {.out = &out};

    if (n < sizeof(number))
        return 0;
    memcpy(&number, data, sizeof(number));
    char *text = strndup((const char *)data + sizeof(number), n - sizeof(number));
    const struct metric_label labels[] = {{"a", text}, {"b", text}, {NULL, NULL}};
    metrics_family(&m, "f", "gauge", text);
    const char *head_end = memmem(out.p, out.n, "\n# TYPE f gauge\n", 16);
    CHECK(head_end && !memchr(out.p, '\n', (size_t)(head_end - out.p)) && head_end + 16 == out.p + out.n);
    buf_clear(&out);
    metrics_uint(&m, labels, number);
    const char *p = expect(out.p, out.p + out.n, "f{a=\""), *end = out.p + out.n;
    p = expect(unquote(p, end, &back), end, ",b=\"");
    CHECK(slice_eq_str(buf_slice(&back), text));
    p = expect(unquote(p, end, &back), end, "} ");
    CHECK(strtoull(p, (char **)&p, 10) == number && p + 1 == end && *p == '\n');
    buf_clear(&out);
    metrics_scaled(&m, NULL, (int64_t)number, 9);
    CHECK(out.n > 3 && memchr(out.p, '\n', out.n) == out.p + out.n - 1 && out.p[out.n - 2] != '.');
    free(text);
    buf_free(&out);
    buf_free(&back);
    return 0;
}
