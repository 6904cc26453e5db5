/* tgspool tail: what happens, as it happens. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/mask.h"
#include "cli/show.h"

#define WAIT "30"

static void print_one(const struct json *v)
{
    char *what = show_text(v, "what"), *id = show_text(v, "id"), *kind = show_text(v, "kind"),
         *lane = show_text(v, "lane"), *reason = show_text(v, "reason"), *outcome = show_text(v, "outcome"),
         *bot = show_text(v, "bot");
    char at[32], due[32];
    struct buf line = BUF_EMPTY, clean = BUF_EMPTY;
    int64_t due_at = show_ms(v, "due"), when = show_ms(v, "at");

    buf_printf(&line, "%.8s %-8s %s", text_time(when, at) + 11, what, id[0] ? id : bot);
    if (kind[0])
        buf_printf(&line, " %s", kind);
    if (lane[0])
        buf_printf(&line, " %s", lane);
    if (json_get(v, "attempt"))
        buf_printf(&line, " try %lld", (long long)show_number(v, "attempt"));
    if (outcome[0])
        buf_printf(&line, ": %s%s%s", reason, reason[0] && strcmp(reason, outcome) != 0 ? ", " : "",
                   strcmp(reason, outcome) != 0 ? outcome : "");
    if (due_at)
        buf_printf(&line, ", again in %s", text_age(due_at - when, due));
    text_add_clean(&clean, buf_slice(&line), SIZE_MAX, false);
    cli_print("%s\n", buf_str(&clean));
    buf_free(&line);
    buf_free(&clean);
    free(what);
    free(id);
    free(kind);
    free(lane);
    free(reason);
    free(outcome);
    free(bot);
}

static void print_all(const struct cli *cli, const struct json *v)
{
    const struct json *events = json_get(v, "events");
    struct buf out = BUF_EMPTY;
    struct json_out j;

    if (show_number(v, "missed"))
        cli_warn("tgspool list", "%lld happenings were missed", (long long)show_number(v, "missed"));
    for (size_t i = 0; i < json_length(events); i++) {
        if (!cli->json) {
            print_one(json_item(events, i));
            continue;
        }
        json_start(&j, &out);
        mask_write(&j, json_item(events, i), true);
        json_end(&j);
        cli_print("%s\n", buf_str(&out));
        buf_clear(&out);
    }
    buf_free(&out);
}

static int run_tail(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    char *after = NULL;
    bool once = cli_flag(cli, "once");
    int rc;

    (void)argc;
    (void)argv;
    struct request *q = request_open(cli, NEED_DAEMON, &e);
    if (!q)
        return cli_fail_err(&e);
    do {
        struct buf path = BUF_EMPTY;
        struct answer a;
        buf_add_str(&path, "/v1/tail");
        if (cli_option(cli, "bot"))
            query_add(&path, "bot", cli_option(cli, "bot"));
        if (after) {
            query_add(&path, "after", after);
            query_add(&path, "wait", WAIT);
        } else if (cli_option(cli, "limit")) {
            query_add(&path, "limit", cli_option(cli, "limit"));
        }
        rc = request_send(q, "GET", buf_str(&path), slice_make(NULL, 0), &a, &e);
        buf_free(&path);
        if (rc < 0)
            break;
        print_all(cli, a.root);
        free(after);
        after = xasprintf("%lld", (long long)show_number(a.root, "next"));
        answer_clear(&a);
    } while (!once && cli_finish(EX_OK) == EX_OK);
    free(after);
    request_close(q);
    return rc < 0 ? cli_fail_err(&e) : cli_finish(EX_OK);
}

static const struct cli_option options[] = {{"bot", "BOT", "of this bot"},
                                            {"limit", "N", "so many of the past, at first; 100 if not given"},
                                            {"once", NULL, "only what is past; do not wait"},
                                            {NULL, NULL, NULL}};

const struct command command_tail = {
    .name = "tail",
    .arguments = "[--bot BOT]",
    .summary = "what happens, as it happens",
    .usage = "Shows what the daemon did last (at most 1,000 happenings) and goes on with what\n"
             "happens, until Ctrl-C. With --json, one JSON object a line.\n",
    .options = options,
    .max_arguments = 0,
    .run = run_tail,
};
