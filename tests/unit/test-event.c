/* core/event: names, ids as people write them, the idempotency key. */
#include "unit.h"

#include "core/event.h"

static void names(void **state)
{
    (void)state;
    static const char *const states[] = {"pending", "processing", "done", "dead"};
    enum state s;

    for (int i = STATE_PENDING; i <= STATE_DEAD; i++) {
        assert_string_equal(state_name((enum state)i), states[i]);
        assert_int_equal(state_from_name(slice_str(states[i]), &s), 0);
        assert_int_equal(s, i);
    }
    assert_int_equal(state_from_name(LIT("Dead"), &s), -1);
    assert_int_equal(state_from_name(LIT("don"), &s), -1);
    assert_int_equal(state_from_name(LIT(""), &s), -1);
    assert_string_equal(box_name(BOX_IN), "in");
    assert_string_equal(box_name(BOX_OUT), "out");
    assert_string_equal(reason_name(REASON_NONE), "");
    assert_string_equal(reason_name(REASON_ATTEMPTS), "attempts");
    assert_string_equal(reason_name(REASON_REJECTED), "rejected");
    assert_string_equal(reason_name(REASON_EXPIRED), "expired");
    assert_string_equal(reason_name(REASON_DISCARDED), "discarded");
}

static void references_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bot;
        enum box box;
        bool by_seq;
        int64_t n;
    } rows[] = {
        {"shop/117314199", "shop", BOX_IN, false, 117314199},
        {"shop/0", "shop", BOX_IN, false, 0},
        {"shop/9223372036854775807", "shop", BOX_IN, false, INT64_MAX},
        {"shop/@1", "shop", BOX_IN, true, 1},
        {"out/@5", "out", BOX_IN, true, 5},
        {"shop/out/@12", "shop", BOX_OUT, true, 12},
        {"out/out/@9223372036854775807", "out", BOX_OUT, true, INT64_MAX},
        {"12345678901234567890123456789012/@3", "12345678901234567890123456789012", BOX_IN, true, 3},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct event_ref r;
        check_row(i, event_ref_parse(slice_str(rows[i].text), &r) == 0);
        assert_string_equal(r.bot, rows[i].bot);
        check_row(i, r.box == rows[i].box && r.by_seq == rows[i].by_seq);
        check_row(i, r.by_seq ? r.seq == (uint64_t)rows[i].n : r.update_id == rows[i].n);
    }
}

static void what_is_no_reference(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "shop",
        "shop/",
        "/5",
        "shop/@",
        "shop/@0",
        "shop/@-1",
        "shop/x",
        "shop/5x",
        "shop/ 5",
        "shop/-5",
        "shop/out/",
        "shop/out/@",
        "shop/out/5",
        "sh op/5",
        "shop/in/@5",
        "shop/out/@x",
        "shop/5/",
        "shop//5",
        "shop/@99999999999999999999",
        "123456789012345678901234567890123/5",
        "shop/9223372036854775808",
    };
    struct event_ref r;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i, event_ref_parse(slice_str(rows[i]), &r) == -1);
    assert_int_equal(event_ref_parse(LIT("sh\0p/5"), &r), -1);
    assert_int_equal(event_ref_parse(slice_make(NULL, 0), &r), -1);
}

static void references_are_written(void **state)
{
    (void)state;
    struct event with = {.seq = 12, .has_update_id = true, .update_id = 727334708}, without = {.seq = 12};
    struct buf b = BUF_EMPTY;

    event_ref_text(&b, "shop", BOX_IN, &with);
    buf_add_char(&b, ' ');
    event_ref_text(&b, "shop", BOX_IN, &without);
    buf_add_char(&b, ' ');
    event_ref_text(&b, "shop", BOX_OUT, &with);
    assert_string_equal(buf_str(&b), "shop/727334708 shop/@12 shop/out/@12");
    buf_free(&b);
}

static void keys(void **state)
{
    (void)state;
    struct event ev = {
        .has_update_id = true, .update_id = 727334708, .hash = {0x00, 0xAB, 0xCD, 0xEF, 1, 2, 3, 4}};
    char out[EVENT_KEY_MAX];

    assert_string_equal(event_key(123456789, &ev, out), "123456789:727334708:00abcdef");
    ev.has_update_id = false;
    assert_string_equal(event_key(1, &ev, out), "1:-:00abcdef");
    ev.has_update_id = true;
    ev.update_id = INT64_MAX;
    assert_string_equal(event_key(INT64_MIN, &ev, out), "-9223372036854775808:9223372036854775807:00abcdef");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(references_are_read),
        cmocka_unit_test(what_is_no_reference),
        cmocka_unit_test(references_are_written),
        cmocka_unit_test(keys),
    };
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
