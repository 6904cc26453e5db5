/* The config file with its secrets, on real files: where they come from, what is refused, and that none of it shows. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "core/options.h"
#include "daemon/configfile.h"
#include "proc/env.h"
#include "unit.h"

#define TOKEN_A "123456:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define TOKEN_A2 "123456:BBbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TOKEN_B "777:CCcccccccccccccccccccccccccccccccccccc"

static char dir[256];

static char *put(const char *name, const char *content, mode_t mode)
{
    char *path = xasprintf("%s/%s", dir, name);

    unlink(path); /* it may be one that cannot be written */
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static int make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    snprintf(dir, sizeof(dir), "%s/tgspool-test-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"c.yaml",
                                        "a",
                                        "b",
                                        "proxy",
                                        "secret",
                                        "cred",
                                        "api",
                                        "pull",
                                        "pull2",
                                        "alias",
                                        "alias2",
                                        "outside",
                                        "credentials/token",
                                        "credentials/api"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = xasprintf("%s/%s", dir, names[i]);
        unlink(path);
        free(path);
    }
    char *credentials = xasprintf("%s/credentials", dir);
    rmdir(credentials);
    free(credentials);
    log_forget_secrets();
    return rmdir(dir);
}

/* Loads a config whose every "@" stands for the directory. */
static struct setup *load(const char *text, struct err *e)
{
    struct buf b = BUF_EMPTY;

    for (const char *p = text; *p; p++) {
        if (*p == '@')
            buf_add_str(&b, dir);
        else
            buf_add_char(&b, *p);
    }
    char *path = put("c.yaml", buf_str(&b), 0644);
    *e = ERR_NONE;
    struct setup *s = setup_load(path, e);
    free(path);
    buf_free(&b);
    return s;
}

static void refused(const char *text, const char *place, const char *says)
{
    struct err e;
    struct setup *s = load(text, &e);
    char *at = xasprintf("%s/c.yaml:%s", dir, place);

    if (s)
        fail_msg("accepted: %s", text);
    assert_int_equal(e.exit_code, EX_CONFIG);
    if (strncmp(e.text, at, strlen(at)) != 0 || !strstr(e.text, says))
        fail_msg("%s\nbut wanted %s ... %s", e.text, at, says);
    free(at);
}

#define FILE_A "bots:\n  one:\n    token_file: @/a\n    deliver: pull\n"

static void test_token_file(void **state)
{
    struct err e;
    char *token;
    int64_t id;

    (void)state;
    refused(FILE_A, "3:17: bots.one.token_file: ", "No such file");
    free(put("a", TOKEN_A "\n", 0644));
    refused(FILE_A, "3:17:", "chmod 600");
    free(put("a", "", 0600));
    refused(FILE_A, "3:17:", "empty");
    free(put("a", "hello\n", 0600));
    refused(FILE_A, "3:17:", "/a holds is not a bot token; accepted:");
    free(put("a", TOKEN_A "\n", 0600));
    struct setup *s = load(FILE_A, &e);
    assert_non_null(s);
    assert_string_equal(s->secrets[0].token, TOKEN_A);
    assert_int_equal(s->secrets[0].bot_id, 123456);
    assert_null(s->secrets[0].proxy_url);
    /* a new token in the same file is seen when it is read again */
    free(put("a", TOKEN_A2 "\r\n", 0600));
    assert_int_equal(secrets_read_token(s->config, &s->config->bots[0], &token, &id, &e), 0);
    assert_string_equal(token, TOKEN_A2);
    free(token);
    setup_free(s);
}

static void test_token_form(void **state)
{
    static const struct {
        const char *text;
        int64_t id; /* 0: not a token */
    } rows[] = {
        {TOKEN_A, 123456},
        {"1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1},
        {"1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {"0:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {"-1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {":aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {"12a:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {"99999999999999999999:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0},
        {"1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n2", 0},
        {"1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/../getMe", 0},
        {"", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t id = 0;
        check_row(i, secrets_parse_token(slice_str(rows[i].text), &id) == (rows[i].id != 0));
        check_row(i, !rows[i].id || id == rows[i].id);
    }
}

#define FROM_ENV "bots:\n  one:\n    token_env: TGSPOOL_TEST_TOKEN\n    deliver: pull\n"

static void test_token_env(void **state)
{
    struct err e;

    (void)state;
    unsetenv("TGSPOOL_TEST_TOKEN");
    refused(FROM_ENV, "3:16: bots.one.token_env: ", "variable TGSPOOL_TEST_TOKEN is not set");
    setenv("TGSPOOL_TEST_TOKEN", TOKEN_B, 1);
    struct setup *s = load(FROM_ENV, &e);
    assert_non_null(s);
    assert_int_equal(s->secrets[0].bot_id, 777);
    assert_string_equal(s->secrets[0].token, TOKEN_B);
    setup_free(s);
    struct proc_env env; /* no child inherits it */
    proc_env_init(&env);
    for (size_t i = 0; i < env.n; i++)
        check_row(i, !strstr(env.vars[i], TOKEN_B));
    proc_env_free(&env);
    unsetenv("TGSPOOL_TEST_TOKEN");
}

#define FROM_CREDENTIAL "bots:\n  one:\n    token_credential: cred\n    deliver: pull\n"

static void test_token_credential(void **state)
{
    struct err e;

    (void)state;
    unsetenv("CREDENTIALS_DIRECTORY");
    refused(FROM_CREDENTIAL, "3:23:", "LoadCredential=");
    setenv("CREDENTIALS_DIRECTORY", dir, 1);
    refused(FROM_CREDENTIAL, "3:23:", "No such file");
    free(put("cred", " \n", 0440));
    refused(FROM_CREDENTIAL, "3:23:", "empty");
    free(put("cred", TOKEN_A "\n", 0440));
    struct setup *s = load(FROM_CREDENTIAL, &e);
    assert_non_null(s);
    assert_string_equal(s->secrets[0].token, TOKEN_A);
    setup_free(s);
    unsetenv("CREDENTIALS_DIRECTORY");
}

/* Other secrets come from there by their paths. */
static void test_files_of_credentials(void **state)
{
    static const char text[] = "listen: {http: '127.0.0.1:8480', api_token_file: @/credentials/api}\n"
                               "bots:\n  one: {token_file: @/credentials/token, deliver: pull}\n";
    char credentials[300];
    struct err e;

    (void)state;
    snprintf(credentials, sizeof(credentials), "%s/credentials", dir);
    assert_int_equal(mkdir(credentials, 0700), 0);
    free(put("credentials/token", TOKEN_A "\n", 0440));
    free(put("credentials/api", "an-api-token-of-the-tests\n", 0440));
    unsetenv("CREDENTIALS_DIRECTORY");
    refused(text, "3:21:", "can be read by others");
    setenv("CREDENTIALS_DIRECTORY", credentials, 1);
    struct setup *s = load(text, &e);
    assert_non_null(s);
    assert_string_equal(s->secrets[0].token, TOKEN_A);
    assert_string_equal(s->api_token, "an-api-token-of-the-tests");
    setup_free(s);
    free(put("outside", TOKEN_A "\n", 0440)); /* the way out again is none */
    refused("bots:\n  one: {token_file: @/credentials/../outside, deliver: pull}\n",
            "2:21:", "can be read by others");
    unsetenv("CREDENTIALS_DIRECTORY");
}

static void test_same_bot_twice(void **state)
{
    struct err e;
    static const char two[] = "bots:\n  one: {token_file: @/a, deliver: pull}\n"
                              "  two: {token_file: @/b, deliver: pull}\n";

    (void)state;
    free(put("a", TOKEN_A, 0600));
    free(put("b", TOKEN_A2, 0600));
    refused(two, "3:3:", "bots.one (line 2) and bots.two (line 3) are the same bot, id 123456");
    free(put("b", TOKEN_B, 0600));
    struct setup *s = load(two, &e);
    assert_non_null(s);
    setup_free(s);
}

#define WITH_PROXY FILE_A "    proxy_file: @/proxy\n"

static void test_proxy(void **state)
{
    struct err e;

    (void)state;
    free(put("a", TOKEN_A, 0600));
    free(put("proxy", "ftp://secretword@h\n", 0600));
    refused(WITH_PROXY, "5:17: bots.one.proxy_file: ", "");
    free(put("proxy", "https://u:secretword@h\n", 0600));
    struct setup *s = load(WITH_PROXY, &e);
    assert_null(s);
    assert_non_null(strstr(e.text, "accepted: http://, socks5:// or socks5h://"));
    assert_null(strstr(e.text, "secretword"));
    free(put("proxy", "socks5h://user:secret%77ord@h:1080\n", 0600));
    s = load(WITH_PROXY, &e);
    assert_non_null(s);
    assert_string_equal(s->secrets[0].proxy_url, "socks5h://user:secret%77ord@h:1080");
    setup_free(s);
}

static void test_url_secret(void **state)
{
    struct err e;
    static const char text[] =
        "bots:\n  one:\n    token_file: @/a\n    deliver: http\n    url: http://localhost/\n"
        "    url_secret_file: @/secret\n";

    (void)state;
    free(put("a", TOKEN_A, 0600));
    free(put("secret", "not allowed: blanks\n", 0600));
    refused(text, "6:22: bots.one.url_secret_file: ", "1 to 256 of");
    free(put("secret", "Abc-_9\n", 0600));
    struct setup *s = load(text, &e);
    assert_non_null(s);
    assert_string_equal(s->secrets[0].url_secret, "Abc-_9");
    setup_free(s);
}

#define CALLERS                                                                                             \
    "listen: {webhook: '127.0.0.1:1', dropin: '127.0.0.1:2', http: '127.0.0.1:3', api_token_file: @/api}\n" \
    "bots:\n"                                                                                               \
    "  one:\n    token_file: @/a\n    intake: webhook\n    webhook_secret_file: @/secret\n"                 \
    "    deliver: pull\n    pull_token_file: @/pull\n    dropin_token_file: @/alias\n"                      \
    "  two:\n    token_file: @/b\n    deliver: pull\n    pull_token_file: @/pull2\n    dropin_token_file: " \
    "@/alias2\n"
#define ALIAS_A "5:DDdddddddddddddddddddddddddddddddddddddd"
#define ALIAS_B "5:EEeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

/* The files that are right, one of them replaced by what is given. */
static void put_callers(const char *name, const char *content)
{
    static const char *const files[][2] = {
        {"a", TOKEN_A},
        {"b", TOKEN_B},
        {"api", "api-token-ABCDEF.~+/=\n"},
        {"secret", "Hook-_9"},
        {"pull", "pull-token-12345"},
        {"pull2", "pull-token-23456"},
        {"alias", ALIAS_A},
        {"alias2", ALIAS_B},
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        free(put(files[i][0], strcmp(files[i][0], name) == 0 ? content : files[i][1], 0600));
}

static void test_callers(void **state)
{
    static const struct {
        const char *file, *content, *place, *says;
    } rows[] = {
        {"api", "", "1:94: listen.api_token_file: ", "empty"},
        {"api", "only-15-letters", "1:94: listen.api_token_file: ", "16 to 256 of"},
        {"api", "with a blank in the middle", "1:94:", "16 to 256 of"},
        {"secret", "no blanks", "6:26: bots.one.webhook_secret_file: ", "1 to 256 of"},
        {"pull", "only-15-letters", "8:22: bots.one.pull_token_file: ", "16 to 256 of"},
        {"alias", "not-a-token-but-long-enough-to-be-one", "9:24: bots.one.dropin_token_file: ", "a colon"},
        {"pull", "api-token-ABCDEF.~+/=", "8:22:", "the same secret as the API's"},
        {"pull2", "pull-token-12345", "13:22:", "the same secret as that of bots.one"},
        {"alias2", ALIAS_A, "14:24: bots.two.dropin_token_file: ", "the same secret as that of bots.one"},
        {"alias2", TOKEN_A, "14:24:", "the same secret as that of bots.one"},
        {"alias", TOKEN_B, "9:24:", "the same secret as that of bots.two"},
    };
    struct err e;

    (void)state;
    put_callers("", NULL);
    struct setup *s = load(CALLERS, &e);
    if (!s)
        fail_msg("%s", e.text);
    assert_string_equal(s->api_token, "api-token-ABCDEF.~+/=");
    assert_string_equal(s->secrets[0].webhook_secret, "Hook-_9");
    assert_string_equal(s->secrets[0].pull_token, "pull-token-12345");
    assert_string_equal(s->secrets[0].dropin_token, ALIAS_A);
    assert_null(s->secrets[1].webhook_secret);
    assert_string_equal(s->secrets[1].pull_token, "pull-token-23456");
    setup_free(s);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put_callers(rows[i].file, rows[i].content);
        refused(CALLERS, rows[i].place, rows[i].says);
    }
    put_callers("", NULL);
    free(put("api", "api-token-ABCDEF.~+/=", 0640));
    refused(CALLERS, "1:94: listen.api_token_file: ", "chmod 600");
}

/* Whatever was read is known to the log. */
static void test_log_knows(void **state)
{
    static const char *const lines[] = {"x " TOKEN_A " y",
                                        "half AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "proxy secretword and secret%77ord",
                                        "header Abc-_9",
                                        "api api-token-ABCDEF.~+/=",
                                        "hook Hook-_9",
                                        "pull pull-token-12345",
                                        "alias " ALIAS_A,
                                        "half DDdddddddddddddddddddddddddddddddddddddd"};
    static const char *const secrets[] = {"AAaa", "ord ", "%77", "Abc", "ABCDEF", "_9", "12345", "DDdd"};
    struct buf b = BUF_EMPTY;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        buf_clear(&b);
        buf_add_str(&b, lines[i]);
        log_redact(&b);
        for (size_t k = 0; k < ARRAY_LEN(secrets); k++)
            check_row(i, !strstr(b.p, secrets[k]));
    }
    buf_free(&b);
}

static void test_file(void **state)
{
    struct err e = ERR_NONE;
    struct buf big = BUF_EMPTY;

    (void)state;
    assert_null(configfile_read(dir, &e));
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_non_null(strstr(e.text, "is a directory"));
    assert_null(configfile_read("/nonexistent/x.yaml", &e));
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_non_null(strstr(e.text, "tgspool init"));
    assert_null(configfile_read("/dev/null", &e));
    assert_non_null(strstr(e.text, "not a regular file"));
    while (big.n <= CONFIG_FILE_MAX)
        buf_add_str(&big, "# a long, long comment\n");
    char *path = put("c.yaml", buf_str(&big), 0644);
    assert_null(configfile_read(path, &e));
    assert_non_null(strstr(e.text, "larger than"));
    free(path);
    path = put("c.yaml",
               "\x7f"
               "ELF\x02\x01\x01",
               0755);
    assert_null(configfile_read(path, &e));
    assert_non_null(strstr(e.text, "c.yaml:1:1: this is not a text file"));
    free(path);
    buf_free(&big);
}

static void test_archive_in_the_spool(void **state)
{
    (void)state;
    refused("spool: {dir: @/s, archive_dir: @/s/old}\nbots: {a: {token_file: @/a, command: x}}\n",
            "1:", "spool.archive_dir: ");
    refused("spool:\n  dir: @/s/\n  archive_dir: @/s\nbots: {a: {token_file: @/a, command: x}}\n",
            "3:16:", "lies in the spool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_file),
        cmocka_unit_test(test_token_form),
        cmocka_unit_test(test_token_env),
        cmocka_unit_test(test_token_credential),
        cmocka_unit_test(test_files_of_credentials),
        cmocka_unit_test(test_same_bot_twice),
        cmocka_unit_test(test_proxy),
        cmocka_unit_test(test_url_secret),
        cmocka_unit_test(test_callers),
        cmocka_unit_test(test_log_knows),
        cmocka_unit_test(test_archive_in_the_spool),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
