/* base/list: order, removal while walking, removal twice. */
#include "unit.h"

#include "base/list.h"

struct thing {
    int n;
    struct list link;
};

static int digits(struct list *head)
{
    int v = 0;

    list_each(head, it) v = v * 10 + list_item(it, struct thing, link)->n;
    return v;
}

static void things_stand_in_order(void **state)
{
    (void)state;
    struct list head;
    struct thing t[3] = {{.n = 1}, {.n = 2}, {.n = 3}};

    list_init(&head);
    assert_true(list_empty(&head));
    assert_int_equal(digits(&head), 0);
    for (int i = 0; i < 3; i++)
        list_add_tail(&head, &t[i].link);
    assert_false(list_empty(&head));
    assert_int_equal(digits(&head), 123);
    list_del(&t[1].link);
    assert_int_equal(digits(&head), 13);
    list_del(&t[1].link);
    assert_int_equal(digits(&head), 13);
    assert_true(list_empty(&t[1].link));
    list_add_tail(&head, &t[1].link);
    assert_int_equal(digits(&head), 132);
}

static void the_current_one_may_go(void **state)
{
    (void)state;
    struct list head;
    struct thing t[4] = {{.n = 1}, {.n = 2}, {.n = 3}, {.n = 4}};

    list_init(&head);
    for (int i = 0; i < 4; i++)
        list_add_tail(&head, &t[i].link);
    list_each(&head, it) if (list_item(it, struct thing, link)->n % 2 == 0) list_del(it);
    assert_int_equal(digits(&head), 13);
    list_each(&head, it) list_del(it);
    assert_true(list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(things_stand_in_order),
        cmocka_unit_test(the_current_one_may_go),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
