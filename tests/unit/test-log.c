/* base/log: lines on standard error, levels, formats; secrets and tokens never come out. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

#define TOKEN "123456789:ABCDEFGHIJabcdefghij012345678_x"

static int pipe_fds[2], saved_stderr;

static int catch_stderr(void **state)
{
    (void)state;
    assert_int_equal(pipe(pipe_fds), 0);
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    saved_stderr = dup(STDERR_FILENO);
    dup2(pipe_fds[1], STDERR_FILENO);
    return 0;
}

static int give_stderr_back(void **state)
{
    (void)state;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    log_forget_secrets();
    log_setup(LOG_INFO, LOG_TEXT, false);
    return 0;
}

/* What was written since the last call. */
static const char *written(void)
{
    static char out[16384];
    ssize_t n = read(pipe_fds[0], out, sizeof(out) - 1);

    out[n > 0 ? n : 0] = '\0';
    return out;
}

static void levels_are_obeyed(void **state)
{
    (void)state;
    log_setup(LOG_WARN, LOG_TEXT, true);
    assert_true(log_enabled(LOG_ERROR));
    assert_true(log_enabled(LOG_WARN));
    assert_false(log_enabled(LOG_INFO));
    log_info(NULL, "not this");
    log_debug(NULL, "nor this");
    assert_string_equal(written(), "");
    log_error("shop", "one %d", 1);
    log_warn(NULL, "two");
    assert_string_equal(written(), "<3>error shop: one 1\n<4>warn  two\n");
    log_setup(LOG_DEBUG, LOG_TEXT, true);
    log_info(NULL, "i");
    log_debug(NULL, "d");
    assert_string_equal(written(), "<6>info  i\n<7>debug d\n");
}

static void a_time_stands_in_front(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT, false);
    log_info("a", "hello");
    const char *line = written();
    assert_int_equal(line[4], '-');
    assert_int_equal(line[23], 'Z');
    assert_string_equal(line + 24, " info  a: hello\n");
}

static void json_is_quoted(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_JSON, false);
    log_info("a", "say \"x\" \\ \n%c\x1B", 1);
    const char *line = written();
    assert_non_null(strstr(line, ",\"level\":\"info\",\"bot\":\"a\",\"msg\":\"say \\\"x\\\" \\\\    \"}\n"));
    log_info(NULL, "x");
    assert_null(strstr(written(), "\"bot\""));
}

static void one_line_whatever_is_in_it(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT, true);
    log_info(NULL, "a\nb\rc\xFF");
    assert_string_equal(written(), "<6>info  a b c\xEF\xBF\xBD\n");
    log_setup(LOG_INFO, LOG_JSON, true);
    log_info(NULL, "%05000d", 1);
    assert_non_null(strstr(written() + 4000, "00\"}\n"));
}

/* Takes a log apart into lines, each with a head of these bytes, and puts the message together again. */
static void put_together(const char *log, size_t head, char out[8192])
{
    char *to = out;

    for (const char *p = log, *end; *p; p = end + 1) {
        end = strchr(p, '\n');
        assert_non_null(end);
        size_t columns = 0;
        for (const char *c = p + (p[0] == '<' ? 3 : 0); c < end; c++)
            columns += (*c & 0xC0) != 0x80;
        assert_in_range(columns, 1, LOG_COLUMNS);
        size_t skip = p == log ? head : head + 3;
        if (p != log)
            assert_memory_equal(p + head, "...", 3);
        memcpy(to, p + skip, (size_t)(end - p) - skip);
        to += (size_t)(end - p) - skip;
    }
    *to = '\0';
}

static void lines_are_at_most_100_columns(void **state)
{
    static const char *const texts[] = {
        "short",
        "the store fails: IO error: No space left on device: While appending to file: "
        "/var/lib/tgspool/000123.log; "
        "intake and deliveries stand still until it can be opened again",
        "/a/path/without/any/blank/"
        "that-is-much-longer-than-a-line-may-be-that-is-much-longer-than-a-line-may-be-"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        ": what is wrong with it",
        "\xE4\xBD\xA0\xE5\xA5\xBD \xE4\xBD\xA0\xE5\xA5\xBD words of three bytes a character, which are "
        "columns, "
        "not bytes \xE4\xBD\xA0\xE5\xA5\xBD",
        "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000 11 "
        "222",
    };
    char got[8192];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        log_setup(LOG_INFO, LOG_TEXT, false);
        log_warn("shop", "%s", texts[i]);
        put_together(written(), strlen("2026-11-29T18:29:00.000Z warn  shop: "), got);
        assert_string_equal(got, texts[i]);
        log_setup(LOG_INFO, LOG_TEXT, true);
        log_warn(NULL, "%s", texts[i]);
        put_together(written(), strlen("<4>warn  "), got);
        assert_string_equal(got, texts[i]);
    }
    log_warn(NULL, "%0900d", 1);
    put_together(written(), strlen("<4>warn  "), got);
    assert_int_equal(strlen(got), 900);
    /* cut where a part of the sentence ends, so that a command stands on one line */
    log_setup(LOG_INFO, LOG_TEXT, true);
    log_warn("shop", "something of which much can be said is dead, as it is; to see it, run: tgspool list "
                     "--state dead --bot shop");
    assert_string_equal(
        written(), "<4>warn  shop: something of which much can be said is dead, as it is; to see it, run:\n"
                   "<4>warn  shop: ... tgspool list --state dead --bot shop\n");
}

static void secrets_never_come_out(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT, true);
    log_add_secret(LIT("short")); /* below 6 bytes: would blind the log */
    log_add_secret(LIT("p4ssword"));
    log_add_secret(LIT("p4ssword"));
    log_info("b", "with p4ssword and p4ssword, short, bot" TOKEN "/x");
    assert_string_equal(written(), "<6>info  b: with <secret> and <secret>, short, bot<token>/x\n");
    log_forget_secrets();
    log_info(NULL, "p4ssword " TOKEN);
    assert_string_equal(written(), "<6>info  p4ssword <token>\n");
    log_setup(LOG_INFO, LOG_JSON, false);
    log_add_secret(LIT("p4ssword"));
    log_info(NULL, "p4ssword " TOKEN);
    assert_non_null(strstr(written(), "\"msg\":\"<secret> <token>\""));
}

static void redact_for_others(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    log_redact(&b); /* empty is fine */
    log_add_secret(LIT("bin\0ary"));
    buf_add_slice(&b, LIT("x bin\0ary " TOKEN));
    log_redact(&b);
    assert_string_equal(buf_str(&b), "x <secret> <token>");
    buf_free(&b);
}

#define log_test(f) cmocka_unit_test_setup_teardown(f, catch_stderr, give_stderr_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        log_test(levels_are_obeyed),
        log_test(a_time_stands_in_front),
        log_test(json_is_quoted),
        log_test(one_line_whatever_is_in_it),
        log_test(secrets_never_come_out),
        log_test(redact_for_others),
        log_test(lines_are_at_most_100_columns),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
