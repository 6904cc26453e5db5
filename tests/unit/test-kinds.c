/* core/kinds: the table against what Telegram's documentation says. */
#include "unit.h"

#include "base/clock.h"
#include "core/kinds.h"

static void found_by_name(void **state)
{
    (void)state;
    assert_string_equal(kind_find(LIT("message"))->name, "message");
    assert_string_equal(kind_find(LIT("message_reaction"))->name, "message_reaction");
    assert_null(kind_find(LIT("messag")));
    assert_null(kind_find(LIT("message ")));
    assert_null(kind_find(LIT("Message")));
    assert_null(kind_find(LIT("")));
    assert_null(kind_find(slice_make(NULL, 0)));
}

static void rows_are_whole(void **state)
{
    (void)state;
    size_t n = 0;

    for (const struct kind *k; (k = kind_at(n)) != NULL; n++) {
        check_row(n, kind_find(slice_str(k->name)) == k); /* no name twice */
        check_row(n, k->chat || k->user || k->poll);
        check_row(n, k->telegram_keeps_ms >= SECONDS(30) && k->telegram_keeps_ms <= HOURS(24));
    }
    assert_true(n >= 24);
    assert_null(kind_at(n + 1000));
}

static void off_by_default_are_three(void **state)
{
    (void)state;
    unsigned off = 0;

    for (size_t i = 0; kind_at(i); i++)
        off += !kind_at(i)->on_by_default;
    assert_int_equal(off, 3);
    assert_false(kind_find(LIT("chat_member"))->on_by_default);
    assert_false(kind_find(LIT("message_reaction"))->on_by_default);
    assert_false(kind_find(LIT("message_reaction_count"))->on_by_default);
}

static void telegrams_own_limits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t s;
    } rows[] = {
        {"inline_query", 30},
        {"callback_query", 150},
        {"shipping_query", 150},
        {"pre_checkout_query", 150},
        {"chosen_inline_result", 600},
        {"message", 86400},
        {"poll", 86400},
        {"my_chat_member", 86400},
        {"business_connection", 86400},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i, kind_find(slice_str(rows[i].name))->telegram_keeps_ms == SECONDS(rows[i].s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_by_name),
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(off_by_default_are_three),
        cmocka_unit_test(telegrams_own_limits),
    };
    return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}
