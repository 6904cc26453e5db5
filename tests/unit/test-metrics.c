/* wire/metrics: Prometheus' text, to the byte. */
#include "unit.h"

#include "core/histogram.h"
#include "wire/metrics.h"

static struct buf out;

static int tear_down(void **state)
{
    (void)state;
    buf_free(&out);
    return 0;
}

static void families_and_samples(void **state)
{
    (void)state;
    struct metrics_out m = {.out = &out};

    metrics_family(&m, "x_total", "counter", "How many.");
    metrics_uint(&m, NULL, UINT64_MAX);
    metrics_family(&m, "y_seconds", "gauge", "a\\b\nc");
    metrics_uint(&m, (const struct metric_label[]){{"bot", "shop"}, {"box", "in"}, {NULL, NULL}}, 0);
    assert_string_equal(buf_str(&out), "# HELP x_total How many.\n"
                                       "# TYPE x_total counter\n"
                                       "x_total 18446744073709551615\n"
                                       "# HELP y_seconds a\\\\b\\nc\n"
                                       "# TYPE y_seconds gauge\n"
                                       "y_seconds{bot=\"shop\",box=\"in\"} 0\n");
}

static void labels_are_escaped(void **state)
{
    (void)state;
    struct metrics_out m = {.out = &out, .family = "x"};

    metrics_uint(&m, (const struct metric_label[]){{"a", "1\"2\\3\n4"}, {NULL, NULL}}, 1);
    assert_string_equal(buf_str(&out), "x{a=\"1\\\"2\\\\3\\n4\"} 1\n");
}

static void scaled(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        unsigned digits;
        const char *text;
    } rows[] = {
        {0, 3, "x 0\n"},
        {1, 3, "x 0.001\n"},
        {1500, 3, "x 1.5\n"},
        {-20, 3, "x -0.02\n"},
        {100, 6, "x 0.0001\n"},
        {INT64_MIN, 0, "x -9223372036854775808\n"},
        {INT64_MAX, 9, "x 9223372036.854775807\n"},
    };
    struct metrics_out m = {.out = &out, .family = "x"};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_clear(&out);
        metrics_scaled(&m, NULL, rows[i].value, rows[i].digits);
        check_row(i, !strcmp(buf_str(&out), rows[i].text));
    }
}

static void histograms_add_up(void **state)
{
    (void)state;
    struct metrics_out m = {.out = &out, .family = "h_seconds"};
    static const struct histogram_scale scale = {2, {5, 1000}};
    struct histogram h = HISTOGRAM(scale);

    histogram_add(&h, 5);
    histogram_add(&h, 6);
    histogram_add(&h, 7);
    histogram_add(&h, 2000);
    metrics_histogram(&m, (const struct metric_label[]){{"bot", "b"}, {NULL, NULL}}, &h, 3);
    metrics_histogram(&m, NULL, &h, 0);
    assert_string_equal(buf_str(&out), "h_seconds_bucket{bot=\"b\",le=\"0.005\"} 1\n"
                                       "h_seconds_bucket{bot=\"b\",le=\"1\"} 3\n"
                                       "h_seconds_bucket{bot=\"b\",le=\"+Inf\"} 4\n"
                                       "h_seconds_sum{bot=\"b\"} 2.018\n"
                                       "h_seconds_count{bot=\"b\"} 4\n"
                                       "h_seconds_bucket{le=\"5\"} 1\n"
                                       "h_seconds_bucket{le=\"1000\"} 3\n"
                                       "h_seconds_bucket{le=\"+Inf\"} 4\n"
                                       "h_seconds_sum 2018\n"
                                       "h_seconds_count 4\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(families_and_samples, tear_down),
        cmocka_unit_test_teardown(labels_are_escaped, tear_down),
        cmocka_unit_test_teardown(scaled, tear_down),
        cmocka_unit_test_teardown(histograms_add_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
