/* core/histogram: which bucket a value falls into. */
#include "unit.h"

#include "core/histogram.h"

static void bounds_are_inclusive(void **state)
{
    (void)state;
    struct histogram h = HISTOGRAM(histogram_events);

    for (uint64_t v = 0; v <= 5; v++)
        histogram_add(&h, v);
    histogram_add(&h, 1000);
    histogram_add(&h, 1001);
    assert_int_equal(h.counts[0], 2); /* 0, 1 */
    assert_int_equal(h.counts[1], 1); /* 2 */
    assert_int_equal(h.counts[2], 3); /* 3, 4, 5 */
    assert_int_equal(h.counts[9], 1);
    assert_int_equal(h.counts[10], 1); /* above all */
    assert_int_equal(h.count, 8);
    assert_int_equal(h.sum, 15 + 1000 + 1001);
}

static void scales_ascend(void **state)
{
    (void)state;
    const struct histogram_scale *const all[] = {&histogram_us, &histogram_ms, &histogram_events};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_in_range(all[i]->n, 2, HISTOGRAM_BUCKETS);
        for (size_t k = 1; k < all[i]->n; k++)
            check_row(k, all[i]->bounds[k] > all[i]->bounds[k - 1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_inclusive),
        cmocka_unit_test(scales_ascend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
