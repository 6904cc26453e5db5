/* What every fuzz target shares. A target checks more than that nothing crashes: what must hold is asserted by CHECK,
 * which no build switches off. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

/* Takes the first line off rest, and gives it without its end. */
static inline struct slice fuzz_line(struct slice *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    struct slice l = slice_make(rest->p, end ? (size_t)(end - rest->p) : rest->n);

    *rest = slice_make(rest->p + l.n + (end != NULL), rest->n - l.n - (end != NULL));
    return l;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
