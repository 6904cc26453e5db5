/* core/lane: which lane an update belongs to under each `order`, and lanes as text. */
#include "unit.h"

#include "core/lane.h"

#define SEQ 17

static const struct update_place all = {true, true, true, true, -100123, 42, 7, 9};
static const struct update_place chat = {.has_chat = true, .chat = -100123};
static const struct update_place user = {.has_user = true, .user = 42, .has_poll = true, .poll = 9};
static const struct update_place poll = {.has_poll = true, .poll = 9};
static const struct update_place thread = {.has_thread = true, .thread = 7};
static const struct update_place nothing;

static void every_order(void **state)
{
    (void)state;
    static const struct {
        enum order order;
        const struct update_place *place;
        const char *lane;
    } rows[] = {
        {ORDER_CHAT, &all, "chat:-100123"},
        {ORDER_CHAT, &chat, "chat:-100123"},
        {ORDER_CHAT, &user, "user:42"},
        {ORDER_CHAT, &poll, "poll:9"},
        {ORDER_CHAT, &thread, "event:17"},
        {ORDER_CHAT, &nothing, "event:17"},
        {ORDER_THREAD, &all, "thread:-100123:7"},
        {ORDER_THREAD, &chat, "thread:-100123:0"},
        {ORDER_THREAD, &user, "user:42"},
        {ORDER_THREAD, &poll, "poll:9"},
        {ORDER_THREAD, &nothing, "event:17"},
        {ORDER_BOT, &all, "bot"},
        {ORDER_BOT, &nothing, "bot"},
        {ORDER_NONE, &all, "event:17"},
        {ORDER_NONE, &nothing, "event:17"},
    };
    char out[LANE_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(lane_text(lane_of(rows[i].order, rows[i].place, SEQ), out), rows[i].lane);
}

static void extremes_fit_the_text(void **state)
{
    (void)state;
    char out[LANE_TEXT_MAX];

    assert_string_equal(lane_text((struct lane){LANE_THREAD, INT64_MIN, INT64_MIN}, out),
                        "thread:-9223372036854775808:-9223372036854775808");
    assert_string_equal(lane_text((struct lane){LANE_NAME, 0x123, -1}, out),
                        "name:0000000000000123ffffffffffffffff");
    assert_string_equal(lane_text((struct lane){LANE_EVENT, INT64_MAX, 0}, out), "event:9223372036854775807");
}

static void equality(void **state)
{
    (void)state;
    struct lane l = {LANE_CHAT, 1, 2};

    assert_true(lane_eq(l, (struct lane){LANE_CHAT, 1, 2}));
    assert_false(lane_eq(l, (struct lane){LANE_USER, 1, 2}));
    assert_false(lane_eq(l, (struct lane){LANE_CHAT, 2, 2}));
    assert_false(lane_eq(l, (struct lane){LANE_CHAT, 1, 3}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order),
        cmocka_unit_test(extremes_fit_the_text),
        cmocka_unit_test(equality),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
