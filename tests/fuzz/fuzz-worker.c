/* What a handler writes, against any bytes: a worker's line of answer, and the last line of standard error, which must
 * come out the same however the bytes are cut into pieces. */
#include "deliver/answer.h"
#include "deliver/errline.h"
#include "fuzz.h"

static void try_answer(struct slice line)
{
    struct answer a;

    if (answer_parse(line, &a)) {
        CHECK(!a.root);
        return;
    }
    CHECK(a.id.p != NULL && a.after_ms >= -1);
    CHECK(a.kind != ANSWER_EXTEND || a.extend_ms > 0);
    CHECK(a.kind == ANSWER_FAILED || (!a.dead && !a.error.n));
    answer_free(&a);
}

static void try_errline(struct slice text)
{
    struct errline whole, pieces;

    errline_init(&whole);
    errline_init(&pieces);
    errline_add(&whole, text);
    for (size_t at = 0, n; at < text.n; at += n) {
        n = 1 + (unsigned char)text.p[at] % 7;
        n = n < text.n - at ? n : text.n - at;
        errline_add(&pieces, slice_make(text.p + at, n));
    }
    struct slice last = errline_end(&whole);
    CHECK(last.n <= ERROR_MAX && slice_eq(last, errline_end(&pieces)));
    CHECK(whole.after_ms >= -1 && whole.after_ms == pieces.after_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice s = slice_make(data, size);

    try_answer(s);
    try_errline(s);
    return 0;
}
