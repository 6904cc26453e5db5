/* tgspool list: events that pass a filter. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/mask.h"
#include "cli/show.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 1000000
#define PAGE 500

static void table_head(struct cli_table *t)
{
    static const char *const heads[] = {"ID", "STATE", "KIND", "LANE", "AGE", "TRIES", "ERROR"};

    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        cli_table_cell(t, "%s", heads[i]);
}

/* An id stands for the newest event that bears it: one that was replayed is told by its number. */
static void table_row(struct cli_table *t, const struct json *v)
{
    char *id = show_text(v, json_number(json_get(v, "replayed_as")).n ? "ref" : "id"),
         *state = show_text(v, "state"), *kind = show_text(v, "kind"), *lane = show_text(v, "lane"),
         *error = show_text(v, "error"), *reason = show_text(v, "reason");
    char age[32];

    cli_table_cell(t, "%s", id);
    cli_table_cell(t, reason[0] ? "%s (%s)" : "%s", state, reason);
    cli_table_cell(t, "%s", kind);
    cli_table_cell(t, "%s", lane);
    cli_table_cell(t, "%s", show_age(show_ms(v, "received_at"), clock_now(), age));
    cli_table_cell(t, "%lld", (long long)show_number(v, "attempts"));
    cli_table_cell(t, "%s", error);
    free(id);
    free(state);
    free(kind);
    free(lane);
    free(error);
    free(reason);
}

static void print_table(const struct json *events, bool payload)
{
    struct cli_table *t = cli_table_new("lm<<rr<", cli_width());
    struct buf out = BUF_EMPTY;

    table_head(t);
    for (size_t i = 0; i < json_length(events); i++)
        table_row(t, json_item(events, i));
    cli_table_print(t, &out);
    if (!payload) {
        cli_put(buf_slice(&out));
        buf_free(&out);
        return;
    }
    const char *line = buf_str(&out);
    for (size_t i = 0; *line; i++) { /* under each event's line, what is in it */
        size_t n = strcspn(line, "\n") + 1;
        cli_put(slice_make(line, n));
        line += n;
        if (i == 0)
            continue;
        const struct json *v = json_get(json_item(events, i - 1), "payload");
        struct buf json = BUF_EMPTY, clean = BUF_EMPTY;
        struct json_out j;
        json_start(&j, &json);
        if (v)
            mask_write(&j, v, true);
        else
            json_cstr(&j, "no JSON in UTF-8");
        json_end(&j);
        text_add_clean(&clean, buf_slice(&json), SIZE_MAX, false);
        cli_print("    %s\n", buf_str(&clean));
        buf_free(&clean);
        buf_free(&json);
    }
    buf_free(&out);
}

/* The events of a page as they stand in the answer, between its first '[' and the last ']': one document is
 * made of all pages. */
static void print_page_json(const struct answer *a, bool *any)
{
    const char *from = memchr(a->body.p, '[', a->body.n);
    const char *to = memrchr(a->body.p, ']', a->body.n);

    if (json_length(json_get(a->root, "events")) == 0 || !from || !to)
        return;
    cli_print(*any ? "," : "");
    *any = true;
    while (to > from + 1 && to[-1] == '\n')
        to--;
    cli_put(slice_make(from + 1, (size_t)(to - from - 1)));
}

/* How the walk over pages stands. */
struct walk {
    int64_t left;
    char *next; /* the cursor; NULL at first, and at the end */
    size_t n;
    bool any, ended;
};

static int one_page(struct cli *cli, struct request *q, struct walk *w, struct err *e)
{
    struct buf path = BUF_EMPTY;
    struct answer a;
    char limit[24];

    buf_add_str(&path, "/v1/events");
    query_add_filters(cli, &path);
    snprintf(limit, sizeof(limit), "%lld", (long long)(w->left < PAGE ? w->left : PAGE));
    query_add(&path, "limit", limit);
    if (cli_flag(cli, "payload"))
        query_add(&path, "payload", "1");
    if (w->next)
        query_add(&path, "after", w->next);
    int rc = request_send(q, "GET", buf_str(&path), slice_make(NULL, 0), &a, e);
    buf_free(&path);
    if (rc < 0)
        return -1;
    const struct json *events = json_get(a.root, "events");
    if (cli->json)
        print_page_json(&a, &w->any);
    else if (json_length(events))
        print_table(events, cli_flag(cli, "payload"));
    w->n += json_length(events);
    w->left -= (int64_t)json_length(events);
    free(w->next);
    w->next = json_string(json_get(a.root, "next")).n ? show_text(a.root, "next") : NULL;
    w->ended = !w->next;
    answer_clear(&a);
    return 0;
}

/* The command for what may follow, by the same filters. */
static void next_page(const struct cli *cli, const char *cursor)
{
    struct buf words = BUF_EMPTY;

    for (unsigned i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].name, "after") != 0)
            buf_printf(&words, " --%s%s%s", cli->given[i].name, cli->given[i].value[0] ? " " : "",
                       cli->given[i].value);
    cli_next(cli, "list%s --after %s", buf_str(&words), cursor);
    buf_free(&words);
}

static int run_list(struct cli *cli, int argc, char **argv)
{
    struct walk w = {.left = LIMIT_DEFAULT};
    struct err e = ERR_NONE;
    const char *limit = cli_option(cli, "limit"), *after = cli_option(cli, "after");

    (void)argc;
    (void)argv;
    if (limit && text_to_i64(slice_str(limit), 1, LIMIT_MAX, &w.left) < 0)
        return cli_fail(EX_USAGE, "--limit must be a number from 1 to %d", LIMIT_MAX);
    struct request *q = request_open(cli, NEED_READ, &e);
    if (!q)
        return cli_fail_err(&e);
    w.next = after ? xstrdup(after) : NULL;
    if (cli->json)
        cli_print("{\"events\":[");
    int rc = 0;
    while (rc == 0 && w.left > 0 && !w.ended)
        rc = one_page(cli, q, &w, &e);
    request_close(q);
    if (rc < 0) {
        free(w.next);
        return cli_fail_err(&e);
    }
    if (cli->json)
        cli_print("\n],\"next\":%s%s%s}\n", w.next ? "\"" : "", w.next ? w.next : "null", w.next ? "\"" : "");
    else if (w.n == 0)
        cli_print("no events\n");
    if (w.next)
        next_page(cli, w.next);
    free(w.next);
    return cli_finish(EX_OK);
}

static const struct cli_option options[] = {FILTER_OPTIONS,
                                            {"limit", "N", "at most so many; 20 if not given"},
                                            {"after", "CURSOR", "go on where an earlier list ended"},
                                            {"payload", NULL, "what the messages say, too"},
                                            {NULL, NULL, NULL}};

const struct command command_list = {
    .name = "list",
    .arguments = "[OPTIONS]",
    .summary = "events, by state, chat, kind, time, error",
    .usage = "Lists events, bot by bot in the order of their arrival. One that was replayed\n"
             "since is told by its number, BOT/@SEQ: its id stands for the newer one. ERROR\n"
             "is the text that --error searches.\n"
             "\n"
             "With --json one document, {\"events\":[...],\"next\":...}, holds them all; payloads\n"
             "only with --payload.\n",
    .options = options,
    .max_arguments = 0,
    .run = run_list,
};
