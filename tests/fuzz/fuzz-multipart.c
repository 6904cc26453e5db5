/* multipart/form-data: the first line is a content type, the rest a body. Whatever is found lies within the body, in
 * order. */
#include "fuzz.h"

#include "wire/multipart.h"

static void check_inside(struct slice s, struct slice body)
{
    CHECK(s.p >= body.p && s.p + s.n <= body.p + body.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *text = (const char *)data, *lf = n ? memchr(text, '\n', n) : NULL;
    size_t first = lf ? (size_t)(lf - text) : n;
    struct slice type = slice_make(text, first);
    struct slice body = lf ? slice_make(lf + 1, n - first - 1) : slice_make(text, 0);
    struct multipart m;
    struct multipart_part part;
    const char *last = body.p;
    int rc;

    struct slice boundary = header_parameter(type, "boundary");
    CHECK(boundary.n <= type.n);
    if (multipart_start(&m, type, body) < 0)
        return 0;
    CHECK(content_type_is(type, "multipart/form-data") && boundary.n > 0 && boundary.n <= 70);
    while ((rc = multipart_next(&m, &part)) > 0) {
        check_inside(part.name, body);
        check_inside(part.content, body);
        CHECK(part.name.n > 0 && part.name.p >= last && part.content.p > part.name.p);
        last = part.content.p + part.content.n;
    }
    if (rc == 0)
        CHECK(multipart_next(&m, &part) == 0);
    return 0;
}
