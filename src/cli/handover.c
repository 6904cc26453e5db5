/* tgspool handover: gives a bot back to the program that had it before, or to the next one. The daemon does it;
 * this asks for it and shows how far it is. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show.h"

#define ASK_AGAIN "2s" /* how long the daemon waits for the end before it tells how far it is */
#define SAY_AGAIN 5    /* answers without a change: ten seconds */

/* What was last shown, so that a line stands for a change, or for a while without one. */
struct shown {
    char *state, *trouble;
    int64_t left;
    unsigned unchanged; /* answers since the latest line */
};

static bool differs(char **was, char *is)
{
    bool changed = !*was || strcmp(*was, is) != 0;

    free(*was);
    *was = is;
    return changed;
}

static bool is_under_way(const struct json *v)
{
    struct slice state = json_string(json_get(v, "state"));
    return slice_eq_str(state, "draining") || slice_eq_str(state, "telling");
}

static void show_progress(const char *bot, const struct json *v, struct shown *s)
{
    int64_t left = show_number(v, "pending") + show_number(v, "processing");
    bool changed = differs(&s->state, show_text(v, "state")), telling = strcmp(s->state, "telling") == 0;
    bool again = ++s->unchanged >= SAY_AGAIN, hindered = differs(&s->trouble, show_text(v, "trouble"));

    if (telling && (changed || again))
        cli_print("%s: empty; telling Telegram the last that was taken\n", bot);
    else if (!telling && (changed || again || s->left != left))
        cli_print("%s: intake has ended; %lld events wait, %lld are being processed\n", bot,
                  (long long)show_number(v, "pending"), (long long)show_number(v, "processing"));
    else if (!again && !hindered)
        return;
    cli_finish(EX_OK); /* seen at once, also through a pipe, and before what is said about it */
    if (!telling && (changed || again)) {
        show_breaker(v, bot, clock_now());
        if (slice_eq_str(json_string(json_get(v, "deliver")), "paused")) {
            char *next = xasprintf("tgspool resume %s deliver", bot);
            cli_warn(next, "%s: delivery is paused, so what waits stays", bot);
            free(next);
        }
    }
    if ((hindered || again) && s->trouble[0])
        cli_warn(NULL, "%s: %s", bot, s->trouble);
    s->left = left;
    s->unchanged = 0;
}

static void show_allowed(const struct json *list)
{
    if (slice_eq_str(json_string(list), "default")) {
        cli_print("allowed_updates: Telegram's default list again, as before\n");
        return;
    }
    if (json_length(list) == 0)
        return;
    cli_print("allowed_updates: as before, ");
    for (size_t i = 0; i < json_length(list); i++) {
        struct slice kind = json_string(json_item(list, i));
        cli_print("%s%.*s", i ? ", " : "", (int)kind.n, kind.p);
    }
    cli_print("\n");
}

static void show_end(const char *bot, const struct json *v)
{
    int64_t calls = show_number(v, "calls");
    char *message = show_text(v, "message");

    show_allowed(json_get(v, "allowed_updates"));
    if (calls)
        cli_print("%lld calls are still going out; leave tgspool running until they have ended\n",
                  (long long)calls);
    cli_print("%s: %s\n", bot, message);
    free(message);
}

/* Looks until it is over. a gets the last answer. */
static int follow(const struct cli *cli, struct request *q, const char *bot, struct answer *a, struct err *e)
{
    struct shown shown = {.left = -1};
    struct buf path = BUF_EMPTY;
    int rc = 0;

    buf_printf(&path, "/v1/bots/%s/handover", bot);
    query_add(&path, "wait", ASK_AGAIN);
    while (is_under_way(a->root) && rc == 0) {
        if (!cli->json)
            show_progress(bot, a->root, &shown);
        answer_clear(a);
        rc = request_send(q, "GET", buf_str(&path), slice_make(NULL, 0), a, e);
    }
    buf_free(&path);
    free(shown.state);
    free(shown.trouble);
    return rc;
}

static int run_handover(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct answer a;
    int rc = EX_OK;

    (void)argc;
    if (!text_is_bot_name(slice_str(argv[0])))
        return cli_fail(EX_USAGE, "\"%s\" is not a bot's name", argv[0]);
    struct request *q = request_open(cli, NEED_DAEMON, &e);
    if (!q)
        return cli_fail_err(&e);
    char *path = xasprintf("/v1/bots/%s/handover", argv[0]);
    bool failed =
        request_send(q, "POST", path, slice_str("{}"), &a, &e) < 0 || follow(cli, q, argv[0], &a, &e) < 0;
    free(path);
    if (failed)
        return show_failure(q, &e);
    bool done = slice_eq_str(json_string(json_get(a.root, "state")), "done");
    if (cli->json) {
        show_json(&a);
    } else if (done) {
        show_end(argv[0], a.root);
    }
    if (!done)
        rc = cli_fail(EX_TEMPFAIL, "%s: the handover was ended: intake was resumed meanwhile", argv[0]);
    answer_clear(&a);
    request_close(q);
    return cli_finish(rc);
}

const struct command command_handover = {
    .name = "handover",
    .arguments = "BOT",
    .summary = "give a bot back to the program that had it before",
    .usage = "Stops the bot's intake, waits until all that was taken is handled, confirms the\n"
             "last of it to Telegram, and puts back the allowed_updates of before. Then the\n"
             "old bot, or the next, can start: it gets every update from there on, and none\n"
             "twice.\n"
             "\n"
             "Ending this command does not end the handover; the same command goes on with\n"
             "it. To take it back: tgspool resume BOT.\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_handover,
};
