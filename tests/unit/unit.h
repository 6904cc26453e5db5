/* What every test program includes: cmocka with the headers it wants in front, and a few shared words. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/mem.h"

/* A literal as a slice, zeros inside included. */
#define LIT(s) slice_make(s, sizeof(s) - 1)

#define assert_slice(s, text)                                          \
    do {                                                               \
        struct slice got_ = (s);                                       \
        assert_int_equal(got_.n, strlen(text));                        \
        assert_memory_equal(got_.p ? got_.p : "", text, strlen(text)); \
    } while (0)

/* A check in a table: says which row failed. */
#define check_row(row, condition)                               \
    do {                                                        \
        if (!(condition))                                       \
            fail_msg("row %zu: %s", (size_t)(row), #condition); \
    } while (0)

#endif
