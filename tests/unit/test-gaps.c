/* core/gaps: what is missing between two updates, and which holes are gaps. */
#include "unit.h"

#include "core/gaps.h"

#define T0 INT64_C(1700000000000)
#define MINUTE INT64_C(60000)
#define DAY (24 * 60 * MINUTE)

static void between(void **state)
{
    (void)state;
    static const struct {
        int64_t next, newest_at, id, now, missing;
    } rows[] = {
        {100, T0, 100, T0, 0},
        {100, T0, 101, T0, 1},
        {100, T0, 150, T0 + 2 * DAY, 50}, /* tgspool was off over a week-end */
        {100, T0, 150, T0 + 7 * DAY, 0},  /* Telegram may have begun anew */
        {100, T0, 40, T0, 0},             /* redelivered, or begun anew */
        {100, T0, 100 + GAPS_FARTHEST, T0, GAPS_FARTHEST},
        {100, T0, 101 + GAPS_FARTHEST, T0, 0}, /* another numbering */
        {0, T0, 150, T0, 0},                   /* nothing came before */
        {100, 0, 150, T0, 0},
        {1, T0, INT64_MAX, T0, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i,
                  gaps_between(rows[i].next, rows[i].newest_at, rows[i].id, rows[i].now) == rows[i].missing);
}

static int64_t ripe_at(struct gaps *g, int64_t now)
{
    return gaps_ripe(g, 10 * MINUTE, now);
}

static void late_ones_fill_their_hole(void **state)
{
    (void)state;
    struct gaps g = {.next = 0};

    gaps_seen(&g, 50, true, T0);
    gaps_seen(&g, 49, true, T0); /* in front of the first: never a hole */
    assert_int_equal(gaps_oldest(&g), 0);
    gaps_seen(&g, 55, true, T0 + 1); /* 51..54 */
    assert_int_equal(gaps_oldest(&g), T0 + 1);
    gaps_seen(&g, 53, true, T0 + 2); /* 51..52, 54 */
    gaps_seen(&g, 54, true, T0 + 3);
    gaps_seen(&g, 51, true, T0 + 4);
    gaps_seen(&g, 51, false, T0 + 4); /* once more: nothing */
    assert_int_equal(ripe_at(&g, T0 + 10 * MINUTE), 0);
    assert_int_equal(ripe_at(&g, T0 + 10 * MINUTE + 1), 1); /* 52 */
    assert_int_equal(gaps_oldest(&g), 0);
    gaps_seen(&g, 52, true, T0 + 11 * MINUTE); /* far too late: counted already */
    gaps_seen(&g, 56, true, T0 + 11 * MINUTE);
    assert_int_equal(ripe_at(&g, T0 + DAY), 0);
}

static void duplicates_make_no_hole(void **state)
{
    (void)state;
    struct gaps g = {.next = 10, .newest_at = T0};

    gaps_seen(&g, 20, false, T0);
    assert_int_equal(gaps_oldest(&g), 0);
    gaps_seen(&g, 21, true, T0);
    assert_int_equal(gaps_oldest(&g), 0);
}

static void ids_begin_anew(void **state)
{
    (void)state;
    struct gaps g = {.next = 900000000, .newest_at = T0};

    gaps_seen(&g, 117314199, true, T0 + MINUTE); /* lower, by far */
    gaps_seen(&g, 117314200, true, T0 + MINUTE);
    assert_int_equal(gaps_oldest(&g), 0);
    gaps_seen(&g, 117314203, true, T0 + MINUTE);
    assert_int_equal(ripe_at(&g, T0 + DAY), 2);
    gaps_seen(&g, 900000000, true, T0 + 2 * MINUTE); /* higher, by far */
    gaps_seen(&g, 900000005, true, T0 + 9 * DAY);    /* after a week */
    assert_int_equal(gaps_oldest(&g), 0);
}

static void waiting_begins_anew(void **state)
{
    (void)state;
    struct gaps g = {.next = 10, .newest_at = T0};

    gaps_seen(&g, 12, true, T0);
    gaps_wait_anew(&g, T0 + 9 * MINUTE);
    assert_int_equal(ripe_at(&g, T0 + 18 * MINUTE), 0);
    assert_int_equal(ripe_at(&g, T0 + 19 * MINUTE), 2);
}

static void many_holes_push_the_oldest_out(void **state)
{
    (void)state;
    struct gaps g = {.next = 0};

    for (int i = 0; i <= GAPS_HOLES + 3; i++)
        gaps_seen(&g, 10 * i + 1, true, T0 + i); /* 9 missing each */
    assert_int_equal(g.n, GAPS_HOLES);
    assert_int_equal(ripe_at(&g, T0), 3 * 9);
    assert_int_equal(ripe_at(&g, T0), 0);
    gaps_seen(&g, 10 * 3 + 5, true, T0); /* splits one of the full list: another goes */
    assert_int_equal(g.n, GAPS_HOLES);
    assert_int_equal(ripe_at(&g, T0 + DAY) + 1, GAPS_HOLES * 9);
    assert_int_equal(g.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between),
        cmocka_unit_test(late_ones_fill_their_hole),
        cmocka_unit_test(duplicates_make_no_hole),
        cmocka_unit_test(ids_begin_anew),
        cmocka_unit_test(waiting_begins_anew),
        cmocka_unit_test(many_holes_push_the_oldest_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
