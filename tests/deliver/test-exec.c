/* exec against real processes: every outcome it produces, and what a child is given and is not. */
#include "../unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "deliver/slots.h"
#include "proc/env.h"
#include "rig.h"

#define UPDATE LIT("{\"update_id\":101,\"message\":{\"text\":\"hello\"}}")

/* Runs one event through a script. */
static struct fake_outcome outcome_of(const char *script, int64_t lease_ms)
{
    struct rig r;

    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, script);
    r.box.lease_ms = lease_ms;
    uint64_t seq = fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    rig_run(&r, 1);
    struct fake_outcome o = *fake_outcome(&r.box, seq);
    assert_true(slots_idle(r.slots));
    rig_close(&r);
    return o;
}

static void every_row_of_the_table(void **state)
{
    static const struct {
        const char *script;
        enum outcome_kind kind;
        int64_t after_ms;
        const char *error;
    } rows[] = {
        {"cat >/dev/null", OUTCOME_DONE, -1, ""},
        {"exit 0", OUTCOME_DONE, -1, ""},
        {"echo noise >&2; exit 0", OUTCOME_DONE, -1, ""},
        {"echo no such user >&2; exit 65", OUTCOME_REJECTED, -1, "no such user"},
        {"exit 69", OUTCOME_UNAVAILABLE, -1, "exit status 69"},
        {"exit 126", OUTCOME_UNAVAILABLE, -1, "exit status 126"},
        {"exec 2>/dev/null; /no/such/program", OUTCOME_UNAVAILABLE, -1, "exit status 127"},
        {"echo 'retry-after: 30' >&2; exit 69", OUTCOME_UNAVAILABLE, 30000, "exit status 69"},
        {"exit 1", OUTCOME_RETRY, -1, "exit status 1"},
        {"exit 2", OUTCOME_RETRY, -1, "exit status 2"},
        {"exit 75", OUTCOME_RETRY, -1, "exit status 75"},
        {"exit 255", OUTCOME_RETRY, -1, "exit status 255"},
        {"kill -9 $$", OUTCOME_RETRY, -1, "killed by signal 9 (Killed)"},
        {"kill -TERM $$", OUTCOME_RETRY, -1, "killed by signal 15 (Terminated)"},
        {"echo first >&2; echo second >&2; echo >&2; exit 1", OUTCOME_RETRY, -1, "second"},
        {"printf 'no newline' >&2; exit 1", OUTCOME_RETRY, -1, "no newline"},
        {"echo busy >&2; echo 'Retry-After:  7 ' >&2; exit 1", OUTCOME_RETRY, 7000, "busy"},
        {"echo 'retry-after: soon' >&2; exit 1", OUTCOME_RETRY, -1, "retry-after: soon"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake_outcome o = outcome_of(rows[i].script, 20000);
        check_row(i, o.kind == rows[i].kind);
        check_row(i, o.after_ms == rows[i].after_ms);
        if (strcmp(o.error, rows[i].error))
            fail_msg("row %zu: error '%s'", i, o.error);
    }
}

static void what_cannot_be_started_is_unavailable(void **state)
{
    static const char *const programs[] = {"/no/such/program", "no-such-program-anywhere", "/etc/passwd",
                                           "/tmp"};
    struct rig r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        rig_init(&r, DELIVER_EXEC);
        r.argv[0] = (char *)(uintptr_t)programs[i];
        uint64_t seq = fake_add(&r.box, UPDATE);
        rig_open(&r, NULL);
        rig_run(&r, 1);
        check_row(i, fake_outcome(&r.box, seq)->kind == OUTCOME_UNAVAILABLE);
        check_row(i, strstr(fake_outcome(&r.box, seq)->error, "cannot be started: "));
        check_row(i, strstr(fake_outcome(&r.box, seq)->error, programs[i]));
        rig_close(&r);
    }
}

static void a_program_is_found_in_path(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_EXEC);
    r.argv[0] = (char *)(uintptr_t) "true";
    uint64_t seq = fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    rig_run(&r, 1);
    assert_int_equal(fake_outcome(&r.box, seq)->kind, OUTCOME_DONE);
    rig_close(&r);
}

/* ---- what the child gets ------------------------------------------------------------------------ */

/* What a script wrote to descriptor 2 as its last line, ended with status 65. */
static char *told(const char *script, char out[2048])
{
    struct fake_outcome o = outcome_of(script, 20000);

    assert_int_equal(o.kind, OUTCOME_REJECTED);
    memcpy(out, o.error, 2048);
    return out;
}

static void update_and_envelope(void **state)
{
    char out[2048];

    (void)state;
    assert_string_equal(told("cat >&2; exit 65", out),
                        "{\"update_id\":101,\"message\":{\"text\":\"hello\"}}");
    told("echo \"$TGSPOOL_ID $TGSPOOL_BOT $TGSPOOL_UPDATE_ID $TGSPOOL_KIND $TGSPOOL_LANE $TGSPOOL_ATTEMPT "
         "$TGSPOOL_KEY $TGSPOOL_AGE\" >&2; exit 65",
         out);
    assert_string_equal(out, "shop/101 shop 101 message chat:7 2 4242:101:deadbeef 3");
    told("echo $(( $(date +%s) - TGSPOOL_RECEIVED_AT )) >&2; exit 65", out);
    assert_in_range(atoi(out), 2, 9);
}

static void environment_without_secrets(void **state)
{
    static const char *const secrets[] = {"TGSPOOL_TOKEN", "SHOP_TOKEN",   "CREDENTIALS_DIRECTORY",
                                          "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"};
    char out[2048];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        setenv(secrets[i], "hush-hush", 1);
    setenv("ORDINARY", "kept", 1);
    setenv("TGSPOOL_ID", "of someone else", 1);
    assert_string_equal(told("env | grep -c hush >&2; exit 65", out), "1"); /* not yet hidden */
    proc_env_hide("SHOP_TOKEN");
    proc_env_hide("SHOP_TOKEN");
    proc_env_hide(NULL);
    assert_string_equal(told("env | grep -c hush >&2; exit 65", out), "0");
    assert_string_equal(told("echo $ORDINARY $TGSPOOL_ID >&2; exit 65", out), "kept shop/101");
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        unsetenv(secrets[i]);
    unsetenv("TGSPOOL_ID");
}

static void token_env_of_the_bot_is_hidden(void **state)
{
    struct rig r;

    (void)state;
    setenv("OTHER_TOKEN", "hush-hush", 1);
    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, "env | grep -q hush && exit 65; exit 0");
    r.bot.token_env = (char *)(uintptr_t) "OTHER_TOKEN";
    uint64_t seq = fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    rig_run(&r, 1);
    assert_int_equal(fake_outcome(&r.box, seq)->kind, OUTCOME_DONE);
    rig_close(&r);
    unsetenv("OTHER_TOKEN");
}

static void no_descriptor_leaks(void **state)
{
    char out[2048];
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec, as a library might do */

    (void)state;
    assert_true(leak > 2);
    /* ls has its own for the directory: 0 1 2 3 */
    assert_string_equal(told("echo $(ls /proc/self/fd) >&2; exit 65", out), "0 1 2 3");
    close(leak);
}

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void none_is_left_with_us(void **state)
{
    int before = count_descriptors();

    (void)state;
    outcome_of("exit 0", 20000);
    outcome_of("exit 1", 20000);
    outcome_of("sleep 100", 100);
    assert_int_equal(count_descriptors(), before);
}

static void signals_are_as_a_program_expects(void **state)
{
    char out[2048];
    sigset_t set;

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    assert_string_equal(told("grep SigBlk /proc/self/status | tr -d '\\t' >&2; exit 65", out),
                        "SigBlk:0000000000000000");
    /* 32 and 33 are the C library's own; what starts programs by posix_spawn (make does) leaves them ignored */
    told("grep SigIgn /proc/self/status | tr -d '\\t' >&2; exit 65", out);
    assert_memory_equal(out, "SigIgn:", 7);
    assert_int_equal(strtoull(out + 7, NULL, 16) & ~(UINT64_C(3) << 31), 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- streams ------------------------------------------------------------------------------------ */

static void large_updates(void **state)
{
    static const struct {
        const char *script;
        const char *error;
    } rows[] = {
        {"wc -c >&2; exit 65", "1048576"},
        {"exec 0<&-; sleep 0.1; echo deaf >&2; exit 65", "deaf"},
        {"head -c 10 >/dev/null; exec 0<&-; sleep 0.1; echo half >&2; exit 65", "half"},
        {"sleep 0.1; echo unread >&2; exit 65", "unread"},
    };
    char *big = xmalloc(1 << 20);
    struct rig r;

    (void)state;
    memset(big, 'x', 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        rig_init(&r, DELIVER_EXEC);
        rig_script(&r, rows[i].script);
        uint64_t seq = fake_add(&r.box, slice_make(big, 1 << 20));
        rig_open(&r, NULL);
        rig_run(&r, 1);
        check_row(i, fake_outcome(&r.box, seq)->kind == OUTCOME_REJECTED);
        check_row(i, !strcmp(fake_outcome(&r.box, seq)->error, rows[i].error));
        rig_close(&r);
    }
    free(big);
}

/* What a handler that succeeds leaves on its standard output. */
static void calls_on_standard_output(void **state)
{
    static const struct {
        const char *script, *said;
    } rows[] = {
        {"echo '{\"method\":\"sendMessage\",\"chat_id\":5}'",
         "sendMessage chat:5 {\"method\":\"sendMessage\",\"chat_id\":5}\n"},
        {"printf ' \\n[{\"method\":\"a\"},1,'; echo '{\"x\":1},{\"method\":\"getMe\"}]'",
         "a event:0 {\"method\":\"a\"}\n"
         "refused: this method is not taken from an answer getMe event:0 {\"method\":\"getMe\"}\n"},
        {"echo '{\"ok\":true}'", ""},
        {"echo '{\"method\":\"a\"} and more'", ""},
        {"echo 'sent {\"method\":\"a\"}'", ""},
        {"echo '{\"method\":\"a\"}'; exit 1", ""},
        {"echo '{\"method\":\"a\"}'; exit 65", ""},
        {"printf '{\"method\":\"a\",\"x\":\"'; head -c 8388608 /dev/zero | tr '\\0' y; echo '\"}'",
         "refused: the calls on standard output are larger than 8 MiB; this is how they begin  event:0 "
         "{\"method\":\"a\","},
        {"printf '{'; head -c 9388608 /dev/zero | tr '\\0' y", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fake_outcome o = outcome_of(rows[i].script, 20000);
        size_t n = strncmp(rows[i].said, "refused: the calls", 18) ? sizeof(o.said) : strlen(rows[i].said);
        if (strncmp(o.said, rows[i].said, n))
            fail_msg("row %zu: %s", i, o.said);
    }
}

static void floods_are_dropped(void **state)
{
    struct fake_outcome o =
        outcome_of("head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2; echo >&2; "
                   "echo end >&2; exit 1",
                   20000);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_RETRY);
    assert_string_equal(o.error, "end");
    o = outcome_of("tr '\\0' z </dev/zero | head -c 3000000 >&2; exit 1", 20000);
    assert_int_equal(strlen(o.error), 512);
}

/* ---- the lease and the group -------------------------------------------------------------------- */

/* Reads a pid that a script wrote, and forgets the file. */
static pid_t read_pid(const char *path)
{
    FILE *f = fopen(path, "r");
    int pid = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &pid), 1);
    fclose(f);
    unlink(path);
    return pid;
}

static bool lives(pid_t pid)
{
    char path[64], text[256] = "";

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    return n > 0 && !strstr(text, ") Z");
}

static void lease_over_obedient(void **state)
{
    int64_t from = clock_now();
    struct fake_outcome o = outcome_of("exec sleep 100", 300);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_LEASE_EXPIRED);
    assert_in_range(o.at - from, 295, 4900);
}

static char pid_file[64];

/* Scripts write the pid to watch to $PID_FILE. */
static int set_pid_file(void **state)
{
    (void)state;
    snprintf(pid_file, sizeof(pid_file), "/tmp/test-exec-%d.pid", (int)getpid());
    return setenv("PID_FILE", pid_file, 1);
}

/* The child obeys SIGTERM, its own child does not: the event is held until both are gone. */
static void lease_over_stubborn_grandchild(void **state)
{
    const char *script = "(trap '' TERM; echo $(exec sh -c 'echo $PPID') >$PID_FILE; sleep 100; sleep 100) & "
                         "trap 'exit 0' TERM; wait";
    int64_t from = clock_now();
    struct fake_outcome o = outcome_of(script, 300);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_LEASE_EXPIRED);
    assert_false(lives(read_pid(pid_file)));
    assert_in_range(o.at - from, 5295, 15000);
}

/* A failed handler that leaves something running: it is ended before the event is given back. */
static void leftovers_of_a_failure_are_ended(void **state)
{
    const char *script = "sleep 100 & echo $! >$PID_FILE; exit 1";
    struct fake_outcome o = outcome_of(script, 20000);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_RETRY);
    assert_string_equal(o.error, "exit status 1");
    assert_false(lives(read_pid(pid_file)));
}

/* What a successful handler leaves running is its own business. */
static void leftovers_of_a_success_live(void **state)
{
    const char *script = "sleep 100 & echo $! >$PID_FILE; exit 0";
    struct fake_outcome o = outcome_of(script, 20000);
    pid_t pid = read_pid(pid_file);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_DONE);
    assert_true(lives(pid));
    kill(pid, SIGKILL);
}

/* Our own death, however it comes, kills the child. */
static void death_of_the_daemon(void **state)
{
    const char *script = "echo $$ >$PID_FILE; exec sleep 100";
    pid_t daemon = fork();

    (void)state;
    if (!daemon) {
        outcome_of(script, 20000);
        _exit(0);
    }
    int64_t give_up = clock_now() + 10000;
    struct timespec nap = {0, 10000000};
    struct stat st;
    while ((stat(pid_file, &st) || !st.st_size) && clock_now() < give_up)
        nanosleep(&nap, NULL);
    pid_t pid = read_pid(pid_file);
    assert_true(lives(pid));
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    while (lives(pid) && clock_now() < give_up)
        nanosleep(&nap, NULL);
    assert_false(lives(pid));
}

/* ---- slots -------------------------------------------------------------------------------------- */

static void as_many_at_once_as_configured(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, "sleep 0.4");
    r.bot.concurrency = 3;
    for (int i = 0; i < 6; i++)
        fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    int64_t from = clock_now();
    rig_run_for(&r, 100);
    assert_int_equal(slots_busy(r.slots), 3);
    rig_run(&r, 6);
    assert_in_range(clock_now() - from, 790, 5000);
    rig_close(&r);
}

static bool is_idle(struct rig *r)
{
    return slots_idle(r->slots);
}

static void shutdown_lets_finish_then_releases(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, "read x; case $x in *slow*) sleep 100;; *) sleep 0.2;; esac");
    r.bot.concurrency = 2;
    r.bot.shutdown_wait_ms = 2500;
    uint64_t quick = fake_add(&r.box, LIT("{\"a\":\"quick\"}\n")),
             slow = fake_add(&r.box, LIT("{\"a\":\"slow\"}\n"));
    fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    rig_run_for(&r, 50);
    assert_int_equal(slots_busy(r.slots), 2);
    slots_shutdown(r.slots);
    assert_false(slots_idle(r.slots));
    rig_run_until(&r, is_idle);
    assert_int_equal(r.box.n_outcomes, 2); /* the third was not claimed */
    assert_int_equal(fake_outcome(&r.box, quick)->kind, OUTCOME_DONE);
    assert_int_equal(fake_outcome(&r.box, slow)->kind, OUTCOME_RELEASED);
    rig_close(&r);
}

static void forced_discard(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, "sleep 100");
    uint64_t seq = fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    rig_run_for(&r, 50);
    assert_false(slots_kill_event(r.slots, seq + 1));
    assert_true(slots_kill_event(r.slots, seq));
    rig_run(&r, 1);
    assert_int_equal(fake_outcome(&r.box, seq)->kind, OUTCOME_DISCARDED);
    rig_close(&r);
}

/* What is being ended already, since it failed or took too long, is not tried again either. */
static void forced_discard_of_what_is_ending(void **state)
{
    static const struct {
        const char *script;
        int64_t lease_ms;
    } rows[] = {{"trap '' TERM; sleep 100 & exit 1", 60000},
                {"trap '' TERM; sleep 100 & wait; sleep 100", 1000}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig r;
        rig_init(&r, DELIVER_EXEC);
        rig_script(&r, rows[i].script);
        r.box.lease_ms = rows[i].lease_ms;
        uint64_t seq = fake_add(&r.box, UPDATE);
        rig_open(&r, NULL);
        rig_run_for(&r, 2500);
        assert_int_equal(r.box.n_outcomes, 0);
        assert_true(slots_kill_event(r.slots, seq));
        rig_run(&r, 1);
        assert_int_equal(fake_outcome(&r.box, seq)->kind, OUTCOME_DISCARDED);
        rig_close(&r);
    }
}

static void reload_keeps_what_runs(void **state)
{
    struct rig r;
    struct err e = ERR_NONE;

    (void)state;
    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, "sleep 1; echo old >&2; exit 65");
    uint64_t first = fake_add(&r.box, UPDATE), second = fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    rig_run_for(&r, 50);
    rig_script(&r, "echo new >&2; exit 65");
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), 0);
    rig_run_for(&r, 50);
    assert_int_equal(slots_busy(r.slots), 1); /* not two, although the new slot is free */
    rig_run(&r, 2);
    assert_string_equal(fake_outcome(&r.box, first)->error, "old");
    assert_string_equal(fake_outcome(&r.box, second)->error, "new");
    r.bot.deliver = DELIVER_PULL;
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), 0);
    fake_add(&r.box, UPDATE);
    rig_run_for(&r, 50);
    assert_int_equal(r.box.n_outcomes, 2);
    rig_close(&r);
}

static void a_claim_lost_in_a_failed_commit(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_EXEC);
    rig_script(&r, "exit 0");
    fake_add(&r.box, UPDATE);
    rig_open(&r, NULL);
    slots_tick(r.slots);
    assert_false(slots_idle(r.slots));
    fake_commit(&r.box, false);
    assert_true(slots_idle(r.slots));
    assert_int_not_equal(slots_next_deadline(r.slots), TIME_NEVER); /* it asks for another */
    slots_tick(r.slots);
    uint64_t seq = fake_add(&r.box, UPDATE);
    rig_run(&r, 1);
    assert_int_equal(fake_outcome(&r.box, seq)->kind, OUTCOME_DONE);
    fake_add(&r.box, UPDATE);
    slots_tick(r.slots); /* and freed with a claim on its way */
    rig_close(&r);
    assert_int_equal(r.box.n_pending, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table),
        cmocka_unit_test(what_cannot_be_started_is_unavailable),
        cmocka_unit_test(a_program_is_found_in_path),
        cmocka_unit_test(update_and_envelope),
        cmocka_unit_test(environment_without_secrets),
        cmocka_unit_test(token_env_of_the_bot_is_hidden),
        cmocka_unit_test(no_descriptor_leaks),
        cmocka_unit_test(none_is_left_with_us),
        cmocka_unit_test(signals_are_as_a_program_expects),
        cmocka_unit_test(large_updates),
        cmocka_unit_test(calls_on_standard_output),
        cmocka_unit_test(floods_are_dropped),
        cmocka_unit_test(lease_over_obedient),
        cmocka_unit_test(lease_over_stubborn_grandchild),
        cmocka_unit_test(leftovers_of_a_failure_are_ended),
        cmocka_unit_test(leftovers_of_a_success_live),
        cmocka_unit_test(death_of_the_daemon),
        cmocka_unit_test(as_many_at_once_as_configured),
        cmocka_unit_test(shutdown_lets_finish_then_releases),
        cmocka_unit_test(forced_discard),
        cmocka_unit_test(forced_discard_of_what_is_ending),
        cmocka_unit_test(reload_keeps_what_runs),
        cmocka_unit_test(a_claim_lost_in_a_failed_commit),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("exec", tests, set_pid_file, NULL);
}
