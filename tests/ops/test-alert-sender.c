/* ops/alert_sender: the queue of one destination, with a channel whose tries end when the test says so; and what is sent
 * (ops/alert_json). */
#include "../unit/unit.h"

#include "net/loop.h"
#include "ops/alert_json.h"
#include "ops/alert_sender.h"

struct fake {
    struct alert_channel channel; /* first */
    struct alert sent[200];
    size_t n;
    bool freed;
};

static void fake_send(struct alert_channel *c, const struct alert *a)
{
    struct fake *f = (struct fake *)c;

    assert_true(f->n < ARRAY_LEN(f->sent));
    f->sent[f->n++] = *a;
}

static void fake_free(struct alert_channel *c)
{
    ((struct fake *)c)->freed = true;
}

struct rig {
    struct loop *loop;
    struct fake fake, other;
    struct alert_sender *sender;
};

static struct alert_channel channel_of(void)
{
    return (struct alert_channel){.name = "url", .send = fake_send, .free = fake_free};
}

static void rig_init(struct rig *r, bool once)
{
    *r = (struct rig){.loop = loop_new()};
    r->fake.channel = channel_of();
    r->sender = alert_sender_new(r->loop, &r->fake.channel, once);
}

static void rig_free(struct rig *r)
{
    alert_sender_free(r->sender);
    assert_true(r->fake.freed);
    loop_free(r->loop);
}

static struct alert alert_of(enum alert_kind kind, const char *bot, bool over, int64_t value)
{
    struct alert a = {.kind = kind, .over = over, .value = value, .message = "m", .next = "n"};

    snprintf(a.bot, sizeof(a.bot), "%s", bot);
    return a;
}

static void add(struct alert_sender *s, enum alert_kind kind, const char *bot, bool over, int64_t value)
{
    const struct alert a = alert_of(kind, bot, over, value);
    alert_sender_add(s, &a);
}

static void ok(struct rig *r)
{
    alert_sender_tried(r->sender, true, -1, "");
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void one_after_the_other(void **state)
{
    (void)state;
    struct rig r;

    rig_init(&r, false);
    assert_true(alert_sender_idle(r.sender));
    add(r.sender, ALERT_OLDEST, "a", false, 1);
    add(r.sender, ALERT_DEAD, "a", false, 2);
    assert_int_equal(r.fake.n, 1);
    ok(&r);
    assert_int_equal(r.fake.n, 2);
    assert_int_equal(r.fake.sent[1].value, 2);
    assert_false(alert_sender_idle(r.sender));
    ok(&r);
    assert_true(alert_sender_idle(r.sender));
    rig_free(&r);
}

static void one_that_failed_is_tried_again(void **state)
{
    (void)state;
    struct rig r;

    rig_init(&r, false);
    add(r.sender, ALERT_OLDEST, "a", false, 1);
    alert_sender_tried(r.sender, false, -1, "refused");
    add(r.sender, ALERT_DEAD, "a", false, 2);
    assert_int_equal(r.fake.n, 1); /* it waits */
    assert_false(alert_sender_idle(r.sender));
    rig_free(&r);
}

static void once_is_once(void **state)
{
    (void)state;
    struct rig r;
    struct alert_result result;

    rig_init(&r, true);
    add(r.sender, ALERT_TEST, "", false, 1);
    alert_sender_result(r.sender, &result);
    assert_false(result.ended);
    alert_sender_tried(r.sender, false, -1, "refused");
    assert_true(alert_sender_idle(r.sender));
    alert_sender_result(r.sender, &result);
    assert_true(result.ended && !result.delivered);
    assert_string_equal(result.why, "refused");
    assert_string_equal(result.name, "url");
    rig_free(&r);
}

/* What waits is told as it is now; the one under way, other bots and ends stay. */
static void a_newer_telling_takes_the_place_of_an_older(void **state)
{
    (void)state;
    struct rig r;

    rig_init(&r, false);
    add(r.sender, ALERT_OLDEST, "a", false, 1); /* under way */
    add(r.sender, ALERT_OLDEST, "a", false, 2); /* replaced by 5 */
    add(r.sender, ALERT_OLDEST, "b", false, 3);
    add(r.sender, ALERT_DEAD, "a", false, 4);
    add(r.sender, ALERT_OLDEST, "a", false, 5);
    add(r.sender, ALERT_OLDEST, "a", true, 6);
    static const int64_t want[] = {1, 3, 4, 5, 6};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(r.fake.n, i + 1);
        assert_int_equal(r.fake.sent[i].value, want[i]);
        ok(&r);
    }
    assert_true(alert_sender_idle(r.sender));
    rig_free(&r);
}

static void beyond_its_size_the_oldest_is_dropped(void **state)
{
    (void)state;
    struct rig r;
    char bot[16];

    rig_init(&r, false);
    for (int i = 0; i < ALERT_QUEUE_MAX + 10; i++) {
        snprintf(bot, sizeof(bot), "bot%d", i);
        add(r.sender, ALERT_OLDEST, bot, false, i);
    }
    while (!alert_sender_idle(r.sender))
        ok(&r);
    assert_int_equal(r.fake.n, ALERT_QUEUE_MAX);
    assert_int_equal(r.fake.sent[0].value, 0); /* was under way */
    assert_int_equal(r.fake.sent[1].value, 11);
    assert_int_equal(r.fake.sent[ALERT_QUEUE_MAX - 1].value, ALERT_QUEUE_MAX + 9);
    rig_free(&r);
}

static void a_reload_takes_over_what_waits(void **state)
{
    (void)state;
    struct rig r;

    rig_init(&r, false);
    add(r.sender, ALERT_OLDEST, "a", false, 1);
    alert_sender_tried(r.sender, false, -1, "refused");
    add(r.sender, ALERT_OLDEST, "a", true, 2);
    r.other.channel = channel_of();
    struct alert_sender *next = alert_sender_new(r.loop, &r.other.channel, false);
    alert_sender_take(next, r.sender);
    assert_true(alert_sender_idle(r.sender));
    assert_int_equal(r.other.n, 1); /* at once: the old one's wait is not its own */
    alert_sender_tried(next, true, -1, "");
    assert_int_equal(r.other.n, 2);
    assert_true(r.other.sent[1].over);
    alert_sender_free(next);
    rig_free(&r);
}

static void what_is_sent(void **state)
{
    (void)state;
    struct alert a = alert_of(ALERT_OLDEST, "shop", false, 312);
    struct buf out = BUF_EMPTY;

    a.since = 1796007846827;
    snprintf(a.message, sizeof(a.message), "a \"quote\"");
    alert_add_json(&out, &a);
    assert_string_equal(buf_str(&out),
                        "{\"alert\":\"oldest\",\"bot\":\"shop\",\"state\":\"firing\",\"value\":312,"
                        "\"since\":1796007846.827,\"message\":\"a \\\"quote\\\"\",\"next\":\"n\"}");
    buf_clear(&out);
    alert_add_text(&out, &a);
    assert_string_equal(buf_str(&out), "[alert] tgspool oldest, bot shop\na \"quote\"\nnext: n");
    a = alert_of(ALERT_STORE, "", true, 1);
    buf_clear(&out);
    alert_add_json(&out, &a);
    assert_non_null(strstr(buf_str(&out), "\"bot\":null,\"state\":\"over\""));
    buf_clear(&out);
    alert_add_text(&out, &a);
    assert_string_equal(buf_str(&out), "[over] tgspool store\nm\nnext: n");
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(one_that_failed_is_tried_again),
        cmocka_unit_test(once_is_once),
        cmocka_unit_test(a_newer_telling_takes_the_place_of_an_older),
        cmocka_unit_test(beyond_its_size_the_oldest_is_dropped),
        cmocka_unit_test(a_reload_takes_over_what_waits),
        cmocka_unit_test(what_is_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
