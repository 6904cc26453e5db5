/* tgspool status: how every bot's boxes stand, and what needs a person. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show.h"

#define WIDTH 60
#define OLD_MS (5 * 60 * 1000) /* an event that waits longer is worth a warning */

static void print_head(const struct json *v, bool in_process)
{
    char *version = show_text(v, "version");
    char started[32], age[32];
    int64_t started_at = show_ms(v, "started_at"), now = show_ms(v, "now");

    if (in_process)
        cli_print("tgspool %s: no daemon runs; read from the spool\n", version);
    else
        cli_print("tgspool %s: runs since %.16sZ (%s)\n", version, text_time(started_at, started),
                  show_age(started_at, now, age));
    free(version);
}

/* One short word: how delivery stands. */
static const char *delivery(const struct json *box)
{
    if (json_true(json_get(box, "orphan")))
        return "orphan";
    if (json_true(json_get(json_get(box, "paused"), "deliver")))
        return "paused";
    if (json_true(json_get(json_get(box, "breaker"), "open")))
        return "broken";
    if (json_true(json_get(box, "behind_barrier")))
        return "barrier";
    return "ok";
}

/* The box out of a bot that never made a call. */
static bool is_idle_out(const struct json *box)
{
    return slice_eq_str(json_string(json_get(box, "box")), "out") &&
           show_number(json_get(box, "since_made"), "received") + show_number(box, "pending") +
                   show_number(box, "processing") + show_number(box, "done") + show_number(box, "dead") ==
               0;
}

static void print_boxes(const struct json *boxes, int64_t now)
{
    static const char *const heads[] = {"BOT", "BOX", "WAIT", "BUSY", "DONE", "DEAD", "OLDEST", "HANDLER"};
    struct cli_table *t = cli_table_new("<lrrrrrl", WIDTH);
    struct buf out = BUF_EMPTY;

    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        cli_table_cell(t, "%s", heads[i]);
    for (size_t i = 0; i < json_length(boxes); i++) {
        const struct json *b = json_item(boxes, i);
        if (is_idle_out(b))
            continue;
        char *bot = show_text(b, "bot"), *box = show_text(b, "box");
        char age[32];
        cli_table_cell(t, "%s", bot);
        cli_table_cell(t, "%s", box);
        cli_table_cell(t, "%lld", (long long)show_number(b, "pending"));
        cli_table_cell(t, "%lld", (long long)show_number(b, "processing"));
        cli_table_cell(t, "%lld", (long long)show_number(b, "done"));
        cli_table_cell(t, "%lld", (long long)show_number(b, "dead"));
        cli_table_cell(t, "%s", show_age(show_ms(b, "oldest_unfinished_at"), now, age));
        cli_table_cell(t, "%s", delivery(b));
        free(bot);
        free(box);
    }
    cli_table_print(t, &out);
    cli_put(buf_slice(&out));
    buf_free(&out);
}

#define GOOD_MS MINUTES(2) /* a poll takes less than a minute */

/* What is at Telegram, and what it dropped: only what is out of the ordinary. */
static void print_upstream(const struct json *box, const char *bot, int64_t now)
{
    const struct json *intake = json_get(box, "intake");
    int64_t pending = show_number(intake, "upstream_pending"),
            gaps = show_number(json_get(box, "since_made"), "gaps"), good = show_ms(intake, "answered_at");
    char age[32];

    if (good && now - good > GOOD_MS && slice_eq_str(json_string(json_get(intake, "mode")), "poll"))
        cli_print("%s: last good poll %s ago\n", bot, show_age(good, now, age));
    if (pending)
        cli_print("%s: %lld wait at Telegram\n", bot, (long long)pending);
    if (gaps)
        cli_print("%s: %lld updates lost at Telegram\n", bot, (long long)gaps);
}

/* Intake of each bot, as the daemon tells it: one line, its trouble as a warning. */
static void print_intake(const struct json *box, const char *bot, int64_t now)
{
    const struct json *intake = json_get(box, "intake");
    char *mode = show_text(intake, "mode"), *state = show_text(intake, "state"),
         *trouble = show_text(intake, "trouble");

    if (mode[0])
        cli_print("%s: intake %s%s%s\n", bot, mode, state[0] ? ", " : "", state);
    print_upstream(box, bot, now);
    if (trouble[0])
        cli_warn("tgspool check", "%s: intake: %s", bot, trouble);
    free(mode);
    free(state);
    free(trouble);
}

#define BACK_MS MINUTES(15) /* for so long after a program's return its earlier confirmations are warned of */

/* The program that polls the drop-in API. Some libraries confirm what their handlers have not ended. */
static void print_consumer(const struct json *box, const char *bot, int64_t now)
{
    const struct json *consumer = json_get(box, "consumer");
    int64_t confirmed = show_number(consumer, "confirmed"),
            before = show_number(consumer, "confirmed_before");
    int64_t since = show_ms(consumer, "since"), seen = show_ms(consumer, "seen_at");
    bool here = json_true(json_get(consumer, "waiting")) || now - seen < MINUTES(1);
    char age[32], next[96];

    if (!since)
        return;
    cli_print("%s: its program is %s, %s; confirmed: %lld\n", bot, here ? "there" : "gone",
              show_age(here ? since : seen, now, age), (long long)confirmed);
    snprintf(next, sizeof(next), "tgspool replay %s --state done --since 5m", bot);
    if (!here && confirmed)
        cli_warn(next, "%s: %lld confirmed, perhaps unhandled, as the program is gone", bot,
                 (long long)confirmed);
    else if (before && now - since < BACK_MS)
        cli_warn(next, "%s: %lld confirmed, perhaps unhandled, before the program came back %s ago", bot,
                 (long long)before, show_age(since, now, age));
}

#define RESTORED_TOLD_MS (7 * HOURS(24))

static void warn_restored(const struct json *box, const char *bot, int64_t now)
{
    const struct json *r = json_get(box, "restored"), *missing = json_get(r, "missing");
    char time[32];
    int64_t n = 0;

    if (!show_ms(r, "at") || now - show_ms(r, "at") > RESTORED_TOLD_MS)
        return;
    text_time(show_ms(r, "taken_at"), time);
    if (json_to_i64(missing, &n) < 0)
        cli_warn("tgspool tail", "%s: restored as of %.16sZ; no update came since", bot, time);
    else if (n < 0)
        cli_warn("tgspool tail", "%s: restored as of %.16sZ; what is missing is unknown", bot, time);
    else if (n)
        cli_warn("tgspool tail", "%s: restored as of %.16sZ; %lld later updates are lost", bot, time,
                 (long long)n);
}

static void warn_box(const struct json *box, int64_t now)
{
    char *bot = show_text(box, "bot"), *which = show_text(box, "box");
    const struct json *paused = json_get(box, "paused");
    int64_t oldest = show_ms(box, "oldest_unfinished_at"),
            dead = show_number(box, "dead") - show_number(box, "dead_replayed");
    bool calls = strcmp(which, "out") == 0;
    char next[96], age[32];

    print_intake(box, bot, now);
    warn_restored(box, bot, now);
    print_consumer(box, bot, now);
    show_breaker(box, bot, now);
    if (json_true(json_get(box, "orphan")))
        cli_warn("tgspool config", "%s: in no section of the config: kept, not handed out", bot);
    snprintf(next, sizeof(next), "tgspool resume %s", bot);
    if (json_true(json_get(paused, "intake")) && strcmp(which, "in") == 0)
        cli_warn(next, "%s: intake is paused; Telegram keeps updates for at most 24 hours", bot);
    if (json_true(json_get(paused, "deliver")))
        cli_warn(next, "%s: %s is paused", bot, calls ? "the sending of calls" : "delivery");
    if (oldest && now - oldest > OLD_MS) {
        snprintf(next, sizeof(next), "tgspool list --bot %s --state pending,processing --limit 5", bot);
        cli_warn(next, "%s: the oldest event waits for %s", bot, show_age(oldest, now, age));
    }
    if (dead) {
        snprintf(next, sizeof(next), "tgspool list --bot %s --box %s --state dead", bot, which);
        cli_warn(next, "%s: %lld dead %s%s", bot, (long long)dead, calls ? "call" : "event",
                 dead == 1 ? "" : "s");
    }
    free(bot);
    free(which);
}

/* Handlers that wait because as many run as may. */
static void warn_children(const struct json *children)
{
    int64_t waiting = show_number(children, "bots_waiting");

    if (waiting)
        cli_warn("tgspool config", "%lld of %lld children run, %lld %s for more: raise max_children",
                 (long long)show_number(children, "running"), (long long)show_number(children, "max"),
                 (long long)waiting, waiting == 1 ? "bot waits" : "bots wait");
}

/* Whether there is room for more. */
static void print_disk(const struct json *disk)
{
    char free_bytes[32], db[32];

    if (!disk)
        return;
    char *held = show_text(disk, "held");
    cli_print("disk: %s free; the database has %s\n", text_bytes(show_number(disk, "free"), free_bytes),
              text_bytes(show_number(disk, "db"), db));
    if (held[0])
        cli_warn("df -h", "intake is held: %s", held);
    else if (json_true(json_get(disk, "filling")))
        cli_warn("tgspool config", "the database is near spool.max_db, where intake stops");
    free(held);
}

static void warn_retention(const struct json *retention, int64_t now)
{
    int64_t since = show_ms(retention, "failing_since");
    char *trouble = show_text(retention, "trouble"), age[32];

    if (since)
        cli_warn("tgspool check", "the archive fails since %s, so nothing is removed: %s",
                 show_age(since, now, age), trouble);
    free(trouble);
}

static void print_status(const struct json *v, bool in_process)
{
    const struct json *boxes = json_get(v, "boxes");
    int64_t now = show_ms(v, "now");

    print_head(v, in_process);
    if (json_length(boxes))
        print_boxes(boxes, now);
    else
        cli_print("no bots yet\n");
    if (!json_true(json_get(v, "healthy"))) {
        char *trouble = show_text(v, "trouble");
        bool corrupt = slice_eq_str(json_string(json_get(v, "health")), "corrupt");
        cli_warn("tgspool check", "%s: %s",
                 corrupt ? "the store is damaged and stays closed" : "the store does not write", trouble);
        free(trouble);
    }
    warn_children(json_get(v, "children"));
    print_disk(json_get(v, "disk"));
    warn_retention(json_get(v, "retention"), now);
    for (size_t i = 0; i < json_length(boxes); i++)
        warn_box(json_item(boxes, i), now);
}

static int run_status(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct answer a;
    struct request *q = request_open(cli, NEED_READ, &e);

    (void)argc;
    (void)argv;
    if (!q)
        return cli_fail_err(&e);
    if (request_send(q, "GET", "/v1/status", slice_make(NULL, 0), &a, &e) < 0)
        return show_failure(q, &e);
    if (cli->json)
        show_json(&a);
    else
        print_status(a.root, request_in_process(q));
    if (request_in_process(q))
        cli_next(cli, "run");
    answer_clear(&a);
    request_close(q);
    return cli_finish(EX_OK);
}

const struct command command_status = {
    .name = "status",
    .arguments = "",
    .summary = "how every bot stands, and what needs you",
    .usage = "Shows for every bot how many events wait, are busy, done and dead, how old the\n"
             "oldest one is, and warns of what needs a person, each with the command to run\n"
             "next.\n",
    .max_arguments = 0,
    .run = run_status,
};
