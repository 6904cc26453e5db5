/* The command line as a whole, without a daemon: the words it takes and refuses, and the commands that work on the spool
 * itself. cli_main runs in a child process, whose output and exit code are looked at. */
#include "../unit/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tree.h"
#include "cli/command.h"
#include "cli/request.h"
#include "store/dir.h"
#include "wire/json.h"

static char dir[64], config_path[128];

/* What the last command said. */
static struct buf out, err;

static void read_back(int fd, struct buf *b)
{
    char chunk[4096];
    ssize_t n;

    buf_clear(b);
    lseek(fd, 0, SEEK_SET);
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        buf_add(b, chunk, (size_t)n);
    close(fd);
}

static int scratch_file(void)
{
    char path[] = "/tmp/tgspool-commands-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

/* Runs one line of words; "%" stands for the config's path. Returns the exit code. */
static int run(const char *line)
{
    char name[] = "tgspool", *words[32] = {name}, *copy = xstrdup(line), *save = NULL;
    int n = 1, status, out_fd = scratch_file(), err_fd = scratch_file();

    for (char *w = strtok_r(copy, " ", &save); w && n < 31; w = strtok_r(NULL, " ", &save))
        words[n++] = strcmp(w, "%") == 0 ? config_path : w;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(out_fd, 1);
        dup2(err_fd, 2);
        int rc = cli_main(n, words);
        fflush(NULL);
        _exit(rc);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_back(out_fd, &out);
    read_back(err_fd, &err);
    free(copy);
    if (!WIFEXITED(status))
        fail_msg("tgspool %s: signal %d\n%s", line, WTERMSIG(status), buf_str(&err));
    return WEXITSTATUS(status);
}

static void expect(int code, const char *line)
{
    int rc = run(line);

    if (rc != code)
        fail_msg("tgspool %s: exit %d\n%s%s", line, rc, buf_str(&out), buf_str(&err));
}

static void says(const struct buf *b, const char *text)
{
    if (!strstr(buf_str(b), text))
        fail_msg("\"%s\" is missing in:\n%s", text, buf_str(b));
}

static void does_not_say(const struct buf *b, const char *text)
{
    if (strstr(buf_str(b), text))
        fail_msg("\"%s\" is in:\n%s", text, buf_str(b));
}

/* ---- words -------------------------------------------------------------------------------------- */

static void test_every_command_has_help(void **state)
{
    (void)state;
    for (unsigned i = 0; cli_command_at(i); i++) {
        const struct command *c = cli_command_at(i);
        char *line = xasprintf("%s --help", c->name), *usage = xasprintf("usage: tgspool %s", c->name);
        expect(0, line);
        says(&out, usage);
        says(&out, "--socket PATH");
        assert_int_equal(err.n, 0);
        assert_true(strlen(c->summary) <= 60);
        for (const char *p = buf_str(&out); *p;) { /* fits a terminal */
            size_t n = strcspn(p, "\n");
            if (n > 80)
                fail_msg("%s: %.*s", c->name, (int)n, p);
            p += n + (p[n] == '\n');
        }
        free(line);
        free(usage);
    }
    expect(0, "--help");
    says(&out, "replay");
    expect(0, "help list");
    says(&out, "usage: tgspool list");
    expect(EX_USAGE, "");
    expect(0, "--version");
    says(&out, "tgspool ");
}

static void test_mistakes_get_a_hint(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"lst", "did you mean `tgspool list`?"},
        {"stats", "did you mean `tgspool status`?"},
        {"frobnicate", "`tgspool --help` lists them"},
        {"list --stat dead", "did you mean --state?"},
        {"--stat dead list", "did you mean --state?"},
        {"list --stat=dead", "did you mean --state?"},
        {"list --frob", "`tgspool list --help` lists them"},
        {"--frob list", "list has no option --frob"},
        {"--xyzzy", "`tgspool --help` lists them"},
        {"--hepl", "did you mean --help?"},
        {"list --state", "--state STATES"},
        {"list --json=yes", "takes no value"},
        {"list --state dead --state done", "twice"},
        {"status --state dead", "status has no option --state"},
        {"--state dead status", "status has no option --state"},
        {"list -x", "no option -x"},
        {"list --chat 5 -7", "--chat"},
        {"list extra", "too many arguments; usage: tgspool list"},
        {"show", "too few arguments; usage: tgspool show BOT/ID"},
        {"pause", "too few arguments"},
        {"pause shop lunch", "intake or deliver"},
        {"list -c", "-c FILE"},
        {"list --chat -x", "--chat needs a value"},
        {"replay", "--dry-run"},
        {"replay shop/5 --bot shop", "not both"},
        {"replay shop/5 shop/6 --dry-run", "not both"},
        {"replay shop", "a bot alone needs --all or a filter (tgspool replay shop --all)"},
        {"discard shop --dry-run", "(tgspool discard shop --all)"},
        {"replay shop --bot other", "name the bot once"},
        {"init", "usage: tgspool init DIR [--name NAME]"},
        {"init /dev/null/x --name=-x", "does not begin with '-'"},
        {"list --limit 0", "--limit must be"},
        {"run --json", "log.format"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        expect(EX_USAGE, rows[i].line);
        says(&err, rows[i].says);
    }
}

static void test_no_config_no_daemon(void **state)
{
    (void)state;
    expect(EX_CONFIG, "status -c /nonexistent/tgspool.yaml");
    expect(EX_UNAVAILABLE, "tail -c %");
    says(&err, "tgspool run");
    expect(EX_UNAVAILABLE, "status -c %"); /* nothing is made by looking */
    says(&err, "there is no spool");
    char *spool = xasprintf("%s/spool", dir);
    static const char *const lines[] = {"list -c %",         "show shop/5 -c %", "export -c %",
                                        "replay --all -c %", "pause shop -c %",  "check --offline -c %"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        int rc = run(lines[i]);
        if (rc != EX_UNAVAILABLE && (rc || strncmp(lines[i], "check", 5)))
            fail_msg("%s: exit status %d\n%s%s", lines[i], rc, buf_str(&out), buf_str(&err));
        assert_int_equal(access(spool, F_OK), -1);
    }
    assert_int_equal(mkdir(spool, 0700), 0); /* as `init` makes it */
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        run(lines[i]);
        assert_int_equal(rmdir(spool), 0); /* still empty */
        assert_int_equal(mkdir(spool, 0700), 0);
    }
    expect(EX_UNAVAILABLE, "list -c %");
    says(&err, "there is no spool");
    expect(0, "check --offline -c %");
    says(&out, "`run` makes it");
    char *other = xasprintf("%s/other", spool);
    assert_int_equal(file_create(other, LIT("x"), 0600, NULL), 0);
    expect(EX_CONFIG, "list -c %");
    says(&err, "is no spool and not empty");
    expect(EX_CONFIG, "check --offline -c %");
    says(&out, "BAD  store: ");
    free(other);
    free(spool);
}

/* ---- the commands on a spool -------------------------------------------------------------------- */

static const char lines[] =
    "{\"bot\":\"shop\",\"bot_id\":123456,\"box\":\"in\",\"update_id\":5,\"received_at\":1764439568.123,"
    "\"state\":\"pending\",\"payload\":{\"update_id\":5, "
    "\"message\":{\"chat\":{\"id\":-42,\"type\":\"group\"},"
    "\"text\":\"MARKER\"}},\"newlines\":[15]}\n"
    "{\"bot\":\"shop\",\"bot_id\":123456,\"box\":\"in\",\"update_id\":6,\"received_at\":1764439569,\"state\":"
    "\"dead\","
    "\"reason\":\"rejected\",\"error\":\"no stock\",\"payload\":{\"update_id\":6,\"poll\":{\"id\":\"1\"}}}\n";

static void import_lines(void)
{
    char *path = xasprintf("%s/lines", dir), *line = xasprintf("import %s -c %%", path);

    unlink(path);
    assert_int_equal(file_create(path, slice_str(lines), 0600, NULL), 0);
    expect(0, line);
    free(path);
    free(line);
}

/* Another process has the spool, and no daemon listens. */
static void test_locked_spool(void **state)
{
    struct err e = ERR_NONE;
    char *spool = xasprintf("%s/spool", dir), *who = xasprintf("process %ld", (long)getpid());
    struct store_dir d;

    (void)state;
    import_lines();
    assert_int_equal(store_dir_open(spool, &d, &e), 0);
    expect(EX_TEMPFAIL, "list -c %");
    says(&err, who);
    says(&err, "--socket");
    expect(EX_TEMPFAIL, "check --offline -c %");
    says(&out, who);
    does_not_say(&out, "next: tgspool run");
    expect(EX_TEMPFAIL, "run -c %");
    says(&err, who);
    says(&err, "next: tgspool status -c ");
    store_dir_close(&d);
    expect(0, "list -c %");
    free(spool);
    free(who);
}

static void test_import_list_show(void **state)
{
    (void)state;
    import_lines();
    says(&out, "2 new, 0 known already, 0 bad");
    import_lines();
    says(&out, "0 new, 2 known already, 0 bad");

    expect(0, "-c % list"); /* options before and after the command */
    says(&out, "shop/5  pending          message  chat:-42");
    says(&out, "shop/6  dead (rejected)  poll     poll:1");
    says(&out, "  no stock\n");
    does_not_say(&out, "MARKER");
    expect(0, "list --state=dead -c %");
    does_not_say(&out, "shop/5");
    expect(0, "list --error stock -c %");
    says(&out, "shop/6");
    does_not_say(&out, "shop/5");
    expect(0, "list --error rejected -c %");
    says(&out, "no events");
    expect(0, "--payload list -c %");
    says(&out, "MARKER");
    expect(0, "list --limit 1 --json -c %");
    struct json *v = json_parse(buf_slice(&out), NULL);
    assert_int_equal(json_length(json_get(v, "events")), 1);
    assert_int_equal(json_type(json_get(v, "next")), JSON_STRING);
    json_free(v);
    does_not_say(&out, "MARKER");
    expect(0, "list --limit 1 --kind message -c %");
    says(&err, "next: tgspool list --limit 1 --kind message --after ");
    says(&err, config_path);
    expect(0, "list --chat 7 -c %");
    says(&out, "no events");
    expect(EX_USAGE, "list --state asleep -c %");
    says(&err, "pending, processing, done, dead");

    expect(0, "show shop/5 -c %");
    says(&out, "\"text\": \"<6 chars>\"");
    does_not_say(&out, "MARKER");
    expect(0, "show shop/5 --json -c %");
    does_not_say(&out, "MARKER");
    expect(0, "show shop/5 --payload -c %");
    says(&out, "\"text\": \"MARKER\"");
    expect(EX_NOINPUT, "show shop/7 -c %");
    says(&err, "next: tgspool list");
}

/* Cut to the width that COLUMNS tells, and not at all where nobody's terminal is. */
static void long_row(const char *columns, const char *last)
{
    if (columns)
        setenv("COLUMNS", columns, 1);
    expect(0, "list -c %");
    unsetenv("COLUMNS");
    says(&out, "a-bot-with-the-longest-name-32-c/2147483647");
    says(&out, last);
    for (const char *p = buf_str(&out); columns && *p;) {
        size_t n = strcspn(p, "\n");
        if (n > (size_t)atoi(columns))
            fail_msg("%zu columns:\n%s", n, p);
        p += n + (p[n] == '\n');
    }
}

static void test_long_ids_are_whole(void **state)
{
    static const char line[] =
        "{\"bot\":\"a-bot-with-the-longest-name-32-c\",\"bot_id\":123457,\"box\":\"in\",\"received_at\":"
        "1764439569,"
        "\"state\":\"dead\",\"reason\":\"rejected\",\"error\":\"an error text that fills what is left of the "
        "line\","
        "\"update_id\":2147483647,\"payload\":{\"update_id\":2147483647,\"deleted_business_messages\":"
        "{\"chat\":{\"id\":-1001234567890123}}}}\n";
    char *path = xasprintf("%s/long", dir), *import = xasprintf("import %s -c %%", path);

    (void)state;
    assert_int_equal(file_create(path, slice_str(line), 0600, NULL), 0);
    expect(0, import);
    long_row("80", "~\n");
    long_row("120", "~\n");
    long_row(NULL, "  an error text that fills what is left of the line\n");
    long_row("300", "  an error text that fills what is left of the line\n");
    free(path);
    free(import);
}

/* A changed order takes effect when the daemon starts, not when somebody looks. */
static void test_looking_leaves_the_order(void **state)
{
    struct buf text = BUF_EMPTY;

    (void)state;
    import_lines();
    assert_int_equal(file_read(config_path, 4096, &text, NULL), 0);
    buf_add_str(&text, "    order: bot\n");
    unlink(config_path);
    assert_int_equal(file_create(config_path, buf_slice(&text), 0600, NULL), 0);
    buf_free(&text);
    for (int i = 0; i < 2; i++) {
        expect(0, "list -c %");
        expect(0, "show shop/5 -c %");
        expect(0, "export -c %");
        expect(0, "status -c %");
        does_not_say(&out, "barrier");
    }
    expect(0, "pause shop deliver -c %");
    expect(0, "resume shop -c %");
    expect(0, "status -c %");
    says(&out, "barrier");
}

static void test_status_and_acts(void **state)
{
    (void)state;
    import_lines();
    expect(0, "status -c %");
    says(&out, "no daemon runs");
    says(&err, "1 dead event");
    says(&err, "next: tgspool list --bot shop --box in --state dead -c ");
    for (const char *p = buf_str(&out); *p;) {
        size_t n = strcspn(p, "\n");
        assert_true(n <= 60);
        p += n + (p[n] == '\n');
    }
    expect(0, "replay --all --dry-run -c %");
    says(&out, "1 event would be replayed");
    expect(0, "replay shop/6 -c %");
    says(&out, "shop/6: replayed as shop/@3");
    expect(0, "list -c %"); /* of two with one id, the id stands for the newer */
    says(&out, "shop/@2  dead (rejected)");
    says(&out, "shop/6   pending");
    expect(0, "list --state dead --json -c %");
    says(&out, "\"id\":\"shop/6\",\"ref\":\"shop/@2\"");
    expect(0, "show shop/@2 -c %");
    says(&err, "next: tgspool show shop/@2 --payload -c ");
    expect(0, "replay --state dead -c %");
    says(&out, "0 events replayed");
    expect(EX_TEMPFAIL, "replay shop/5 -c %");
    expect(EX_NOINPUT, "replay shop/99 -c %");
    expect(0, "discard shop/5 -c %");
    says(&out, "shop/5: discarded");
    expect(0, "pause shop deliver -c %");
    says(&err, "next: tgspool resume shop -c ");
    expect(0, "status -c %");
    says(&out, "paused");
    expect(0, "resume shop -c %");
    expect(EX_NOINPUT, "pause nobody -c %");
    expect(0, "status --json -c %");
    struct json *v = json_parse(buf_slice(&out), NULL);
    const struct json *box = json_item(json_get(v, "boxes"), 0);
    assert_slice(json_number(json_get(box, "dead")), "2");
    assert_slice(json_number(json_get(box, "pending")), "1");
    json_free(v);
}

/* A bot's name instead of --bot, as the warning about its program proposes it. */
static void test_acts_on_a_bot(void **state)
{
    static const char *const lines_of_nobody[] = {
        "replay nosuch --state done -c %", "replay --bot nosuch --state done -c %",
        "discard nosuch --all -c %", "list --bot nosuch -c %", "export --bot nosuch -c %"};

    (void)state;
    import_lines();
    expect(0, "replay shop --state dead --dry-run -c %");
    says(&out, "1 event would be replayed\n");
    expect(0, "replay shop --all -c %");
    says(&out, "1 event replayed\n");
    expect(0, "discard shop --kind message -c %");
    says(&out, "1 event discarded\n");
    expect(0, "discard shop --all --json -c %");
    says(&out, "\"discarded\":1");
    for (size_t i = 0; i < ARRAY_LEN(lines_of_nobody); i++) {
        expect(EX_NOINPUT, lines_of_nobody[i]);
        says(&err, "there is no bot of this name; `tgspool status -c ");
    }
}

/* Only where a call was ever stored. */
static void test_status_hides_an_idle_box(void **state)
{
    static const char call[] =
        "{\"bot\":\"shop\",\"bot_id\":123456,\"box\":\"out\",\"received_at\":1764439569,"
        "\"hash\":\"0011223344556677\",\"method\":\"sendMessage\",\"state\":\"done\",\"payload\":{\"method\":"
        "\"sendMessage\"}}\n";
    char *path = xasprintf("%s/call", dir), *import = xasprintf("import %s -c %%", path);

    (void)state;
    import_lines();
    expect(0, "status -c %");
    says(&out, "shop  in ");
    does_not_say(&out, "shop  out");
    assert_int_equal(file_create(path, slice_str(call), 0600, NULL), 0);
    expect(0, import);
    expect(0, "status -c %");
    says(&out, "shop  out");
    free(path);
    free(import);
}

/* ---- a daemon that is mute ---------------------------------------------------------------------- */

static void test_patience(void **state)
{
    (void)state;
    assert_int_equal(request_patience_ms("/v1/status"), 30000);
    assert_int_equal(request_patience_ms("/v1/tail?limit=7"), 30000);
    assert_int_equal(request_patience_ms("/v1/tail?after=7&wait=30"), 60000);
    assert_int_equal(request_patience_ms("/v1/tail?wait=20&after=7"), 50000);
    assert_int_equal(request_patience_ms("/v1/events?error=wait%3D99"), 30000);
    assert_int_equal(request_patience_ms("/v1/import"), 150000);
}

#ifdef ENABLE_FAILPOINTS
static int listen_mute(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock", dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}
#endif

static void test_mute_daemon(void **state)
{
    (void)state;
#ifdef ENABLE_FAILPOINTS
    int fd = listen_mute();
    setenv("TGSPOOL_FAILPOINTS", "request.impatient=errno:1", 1);
    expect(EX_TEMPFAIL, "status -c %");
    says(&err, "no answer from the daemon at ");
    expect(EX_TEMPFAIL, "replay shop --all -c %");
    says(&err, "may still be done");
    unsetenv("TGSPOOL_FAILPOINTS");
    close(fd);
#else
    skip();
#endif
}

static void test_export(void **state)
{
    struct stat st;
    char *path = xasprintf("%s/out", dir), *line = xasprintf("export %s -c %%", path);

    (void)state;
    import_lines();
    expect(0, "export -c %");
    says(&out, "\"newlines\":[15]");
    assert_int_equal(err.n, 0);
    unsigned n = 0;
    for (const char *p = buf_str(&out); *p; n++) {
        size_t len = strcspn(p, "\n");
        struct json *v = json_parse(slice_make(p, len), NULL);
        assert_non_null(v);
        json_free(v);
        p += len + 1;
    }
    assert_int_equal(n, 2);
    expect(0, line);
    says(&out, "2 events written");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    expect(EX_CANTCREAT, line); /* what is there is not written over */
    expect(EX_NOINPUT, "import /nonexistent -c %");
    free(path);
    free(line);
}

static void test_bad_import_tells_line_and_code(void **state)
{
    char *path = xasprintf("%s/bad", dir), *line = xasprintf("import %s -c %%", path);

    (void)state;
    assert_int_equal(file_create(path, LIT("{}\nMARKER\n"), 0600, NULL), 0);
    expect(EX_DATAERR, line);
    says(&err, "line 1: ");
    says(&err, "line 2: ");
    does_not_say(&err, "MARKER");
    free(path);
    free(line);
}

static void test_check_offline(void **state)
{
    (void)state;
    import_lines();
    expect(0, "check --offline -c %");
    says(&out, "ok   store: a spool of schema 2 that can be read; no daemon runs");
    says(&err, "next: tgspool run -c ");
    says(&out, "ok   shop handler");
    expect(0, "check --offline --json -c %");
    struct json *v = json_parse(buf_slice(&out), NULL);
    assert_true(json_true(json_get(v, "ok")));
    json_free(v);
    chmod(dir, 0700);
    char *token = xasprintf("%s/token", dir);
    chmod(token, 0644);
    expect(EX_CONFIG, "check --offline -c %");
    says(&out, "BAD  config");
    does_not_say(&out, "AAAAAAAA");
    free(token);
}

static void write_config(const char *spool, const char *socket, const char *command)
{
    char *config =
        xasprintf("spool:\n  dir: %s\nlisten:\n  socket: %s\nbots:\n  shop:\n    token_file: %s/token\n"
                  "    deliver: exec\n    command: %s\n",
                  spool, socket, dir, command);

    unlink(config_path);
    assert_int_equal(file_create(config_path, slice_str(config), 0600, NULL), 0);
    free(config);
}

/* What makes `run` fail makes `check` fail. */
static void test_check_of_the_socket(void **state)
{
    char *spool = xasprintf("%s/spool", dir), *file = xasprintf("%s/file", dir),
         *lost = xasprintf("%s/lost/sock", dir);

    (void)state;
    assert_int_equal(file_create(file, LIT("x"), 0600, NULL), 0);
    write_config(spool, file, "/bin/true");
    expect(EX_CANTCREAT, "check --offline -c %");
    says(&out, "is not a socket\n     next: remove it");
    write_config(spool, lost, "/bin/true");
    expect(EX_CANTCREAT, "check --offline -c %");
    says(&out, "is not there\n     next: make it");
    write_config(spool, "/tgspool-nonexistent/sock", "/bin/true");
    expect(EX_CANTCREAT, "check --offline -c %");
    says(&out, "BAD  socket: the directory of ");
    free(lost);
    lost = xasprintf("%s/sock", spool); /* which run makes */
    write_config(spool, lost, "/bin/true");
    expect(0, "check --offline -c %");
    says(&out, "sock can be made");
    free(spool);
    free(file);
    free(lost);
}

/* What is shared with others is not to be closed to them. */
static void test_check_of_open_directories(void **state)
{
    char *spool = xasprintf("%s/open", dir), *socket = xasprintf("%s/sock", dir),
         *other = xasprintf("%s/other", spool);

    (void)state;
    assert_int_equal(mkdir(spool, 0755), 0);
    write_config(spool, socket, "/bin/true");
    expect(0, "check --offline -c %");
    says(&out, "next: chmod 0700 ");
    assert_int_equal(file_create(other, LIT("x"), 0600, NULL), 0);
    expect(EX_CONFIG, "check --offline -c %");
    says(&out, "give spool.dir a directory of its own");
    does_not_say(&out, "chmod");
    free(spool);
    free(socket);
    free(other);
}

static void test_check_of_a_script(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } rows[] = {
        {"#!/bin/sh\n", "ok   shop handler", 0},
        {"#! /bin/sh -e\n", "ok   shop handler", 0},
        {"#!/usr/bin/env sh\n", "ok   shop handler", 0},
        {"#!/usr/bin/env -S sh -e\n", "ok   shop handler", 0},
        {"echo no first line\n", "ok   shop handler", 0},
        {"#!/nonexistent/python\n", "names /nonexistent/python, which cannot be run", EX_CONFIG},
        {"#!/usr/bin/env python-nonexistent\n", "names python-nonexistent, which cannot", EX_CONFIG},
        {"#!/bin/sh\r\necho\r\n", "next: end its lines with a line feed alone", EX_CONFIG},
    };
    char *spool = xasprintf("%s/spool", dir), *socket = xasprintf("%s/sock", dir),
         *script = xasprintf("%s/script", dir);

    (void)state;
    write_config(spool, socket, script);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unlink(script);
        assert_int_equal(file_create(script, slice_str(rows[i].text), 0700, NULL), 0);
        expect(rows[i].code, "check --offline -c %");
        says(&out, rows[i].says);
    }
    free(spool);
    free(socket);
    free(script);
}

/* A read-only file system at a path, seen by this process only. Returns 0, or -1 where the system allows no such thing. */
static int mount_read_only(const char *path)
{
    if (mkdir(path, 0700) < 0 || (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0))
        return -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    return mount("none", path, "tmpfs", MS_RDONLY, "mode=0700");
}

static void test_check_of_a_read_only_spool(void **state)
{
    char *socket = xasprintf("%s/sock", dir), *place = xasprintf("%s/readonly", dir);
    char *below = xasprintf("%s/spool", place);
    bool mounted = mount_read_only(place) == 0;

    (void)state;
    if (mounted) {
        write_config(place, socket, "/bin/true");
        expect(EX_IOERR, "check --offline -c %");
        says(&out, "is on a read-only file system");
        write_config(below, socket, "/bin/true");
        expect(EX_CANTCREAT, "check --offline -c %");
        says(&out, "is read-only");
        assert_int_equal(umount(place), 0);
    }
    free(socket);
    free(place);
    free(below);
    if (!mounted)
        skip();
}

/* ---- the stage ---------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    unsetenv("COLUMNS");
    strcpy(dir, "/tmp/tgspool-commands-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(config_path, sizeof(config_path), "%s/tgspool.yaml", dir);
    char *token = xasprintf("%s/token", dir);
    char *config =
        xasprintf("spool:\n  dir: %s/spool\nlisten:\n  socket: %s/sock\nbots:\n  shop:\n    token_file: %s\n"
                  "    deliver: exec\n    command: /bin/true\n",
                  dir, dir, token);
    int rc = file_create(token, LIT("123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), 0600, NULL) < 0 ||
             file_create(config_path, slice_str(config), 0600, NULL) < 0;
    free(token);
    free(config);
    return rc ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(dir, NULL);
    buf_free(&out);
    buf_free(&err);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_command_has_help),
        TEST(test_mistakes_get_a_hint),
        TEST(test_no_config_no_daemon),
        TEST(test_locked_spool),
        TEST(test_import_list_show),
        TEST(test_long_ids_are_whole),
        TEST(test_looking_leaves_the_order),
        TEST(test_status_and_acts),
        TEST(test_acts_on_a_bot),
        TEST(test_status_hides_an_idle_box),
        TEST(test_patience),
        TEST(test_mute_daemon),
        TEST(test_export),
        TEST(test_bad_import_tells_line_and_code),
        TEST(test_check_offline),
        TEST(test_check_of_the_socket),
        TEST(test_check_of_open_directories),
        TEST(test_check_of_a_script),
        TEST(test_check_of_a_read_only_spool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
