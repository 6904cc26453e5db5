/* Showing one event; and what all commands use to show answers. */
#include "cli/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/mask.h"
#include "wire/url.h"

int64_t show_ms(const struct json *object, const char *key)
{
    struct slice s = json_number(json_get(object, key));
    int64_t seconds = 0, part = 0, scale = 100;
    const char *dot = s.n ? memchr(s.p, '.', s.n) : NULL;

    if (text_to_i64(slice_make(s.p, dot ? (size_t)(dot - s.p) : s.n), 0, INT64_MAX / 2000, &seconds) < 0)
        return 0;
    for (const char *c = dot ? dot + 1 : NULL; c && c < s.p + s.n && *c >= '0' && *c <= '9'; c++, scale /= 10)
        part += (*c - '0') * scale;
    return seconds * 1000 + part;
}

int64_t show_number(const struct json *object, const char *key)
{
    int64_t v;

    return json_to_i64(json_get(object, key), &v) < 0 ? 0 : v;
}

char *show_text(const struct json *object, const char *key)
{
    struct slice s = json_string(json_get(object, key));

    return xstrndup(s.p ? s.p : "", s.n);
}

char *show_age(int64_t ms, int64_t now, char out[32])
{
    if (ms == 0)
        out[0] = '\0';
    else
        text_age(now - ms, out);
    return out;
}

void show_breaker(const struct json *object, const char *bot, int64_t now)
{
    const struct json *breaker = json_get(object, "breaker");
    struct slice cause = json_string(json_get(breaker, "cause"));
    char age[32], next[96];

    if (!json_true(json_get(breaker, "open")))
        return;
    show_age(show_ms(breaker, "since"), now, age);
    if (slice_eq_str(cause, "limited")) {
        snprintf(next, sizeof(next), "tgspool tail --bot %s", bot);
        cli_warn(next, "%s: the handler asked for a pause (429), %s ago; it is tried again", bot, age);
        return;
    }
    snprintf(next, sizeof(next), "tgspool list --bot %s --state pending --limit 5", bot);
    cli_warn(next,
             slice_eq_str(cause, "failures")
                 ? "%s: the handler fails on everything, for %s; one event at a time is tried"
                 : "%s: the handler cannot be reached, for %s; one event at a time is tried",
             bot, age);
}

int show_json(const struct answer *a)
{
    cli_put(buf_slice(&a->body));
    cli_print("\n");
    return cli_finish(EX_OK);
}

int show_failure(struct request *q, const struct err *e)
{
    request_close(q);
    return cli_fail_err(e);
}

/* ---- show --------------------------------------------------------------------------------------- */

static void line_time(const struct json *v, const char *key, const char *label)
{
    char text[32], age[32];
    int64_t ms = show_ms(v, key), now = clock_now();

    if (!ms)
        return;
    if (ms <= now)
        cli_print("%-13s %s (%s ago)\n", label, text_time(ms, text), show_age(ms, now, age));
    else
        cli_print("%-13s %s (in %s)\n", label, text_time(ms, text), show_age(now, ms, age));
}

static void line_text(const struct json *v, const char *key, const char *label)
{
    struct buf clean = BUF_EMPTY;
    struct slice s = json_string(json_get(v, key));

    if (s.n == 0)
        s = json_number(json_get(v, key));
    if (s.n == 0)
        return;
    text_add_clean(&clean, s, SIZE_MAX, false);
    cli_print("%-13s %s\n", label, buf_str(&clean));
    buf_free(&clean);
}

static void print_history(const struct json *history)
{
    char text[32];

    for (size_t i = 0; i < json_length(history); i++) {
        const struct json *item = json_item(history, i);
        char *outcome = show_text(item, "outcome"), *error = show_text(item, "error");
        struct buf clean = BUF_EMPTY;
        text_add_clean(&clean, slice_str(error), SIZE_MAX, false);
        cli_print("%-13s %s %s%s%s\n", i ? "" : "tries", text_time(show_ms(item, "at"), text), outcome,
                  clean.n ? ": " : "", buf_str(&clean));
        buf_free(&clean);
        free(outcome);
        free(error);
    }
}

/* JSON in lines, for reading: a line for each member, indented. Works on what mask_write wrote. */
static void add_pretty(struct buf *out, struct slice json)
{
    unsigned depth = 1;
    bool in_string = false;

    buf_add_str(out, "  ");
    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        bool closes = !in_string && (c == '}' || c == ']');
        bool empty = closes && i > 0 && (json.p[i - 1] == '{' || json.p[i - 1] == '[');
        depth -= closes;
        if (closes && !empty)
            buf_printf(out, "\n%*s", (int)depth * 2, "");
        buf_add_char(out, c);
        if (in_string && c == '\\' && i + 1 < json.n) {
            buf_add_char(out, json.p[++i]);
            continue;
        }
        if (c == '"')
            in_string = !in_string;
        if (in_string)
            continue;
        bool opens = c == '{' || c == '[';
        depth += opens;
        bool next_closes = opens && i + 1 < json.n && (json.p[i + 1] == '}' || json.p[i + 1] == ']');
        if (c == ',' || (opens && !next_closes))
            buf_printf(out, "\n%*s", (int)depth * 2, "");
        else if (c == ':')
            buf_add_char(out, ' ');
    }
    buf_add_char(out, '\n');
}

static void print_payload(const struct json *v, bool reveal)
{
    const struct json *payload = json_get(v, "payload");
    struct slice base64 = json_string(json_get(v, "payload_base64"));
    struct buf json = BUF_EMPTY, out = BUF_EMPTY;
    struct json_out j;

    if (!payload) {
        cli_print("payload       no JSON in UTF-8");
        if (reveal)
            cli_print("; in base64:\n%.*s\n", (int)base64.n, base64.p);
        else
            cli_print(", about %zu bytes\n", base64.n / 4 * 3);
        return;
    }
    json_start(&j, &json);
    mask_write(&j, payload, reveal);
    json_end(&j);
    add_pretty(&out, buf_slice(&json));
    cli_print("payload\n");
    struct buf clean = BUF_EMPTY;
    text_add_clean(&clean, buf_slice(&out), SIZE_MAX, true);
    cli_put(buf_slice(&clean));
    buf_free(&clean);
    buf_free(&json);
    buf_free(&out);
}

/* name: what it was asked for by; its id may stand for a newer one. */
static void print_event(const struct cli *cli, const char *name, const struct json *v)
{
    char *id = show_text(v, "id"), *state = show_text(v, "state"), *reason = show_text(v, "reason");

    cli_print("%-13s %s\n%-13s %s%s%s%s\n", "id", id, "state", state, reason[0] ? " (" : "", reason,
              reason[0] ? ")" : "");
    line_text(v, "seq", "seq");
    line_text(v, "kind", "kind");
    line_text(v, "lane", "lane");
    line_text(v, "user", "user");
    line_text(v, "key", "key");
    line_time(v, "received_at", "received");
    line_text(v, "attempts", "attempts");
    line_text(v, "interrupted", "interrupted");
    line_time(v, "next_retry_at", "next try");
    line_time(v, "claimed_at", "last claim");
    line_text(v, "claimed_by", "claimed by");
    line_time(v, "deadline", "lease until");
    line_time(v, "finished_at", "ended");
    line_text(v, "replay_of", "replay of @");
    line_text(v, "replayed_as", "replayed as @");
    line_text(v, "error", "last error");
    print_history(json_get(v, "history"));
    print_payload(v, cli_flag(cli, "payload"));
    bool unsendable = slice_eq_str(json_string(json_get(v, "box")), "out") &&
                      strcmp(reason, "rejected") == 0 && show_number(v, "attempts") == 0;
    if (strcmp(state, "dead") == 0 && show_number(v, "replayed_as") == 0 && !unsendable)
        cli_next(cli, "replay %s", name);
    else if (!cli_flag(cli, "payload"))
        cli_next(cli, "show %s --payload", name);
    free(id);
    free(state);
    free(reason);
}

/* The answer again, its payload masked. */
static void print_masked_json(const struct json *v)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &out);
    json_object(&j);
    for (size_t i = 0; i < json_length(v); i++) {
        const struct json *item;
        struct slice name = json_name(v, i, &item);
        if (slice_eq_str(name, "payload_base64") || slice_eq_str(name, "newlines"))
            continue;
        char *key = xstrndup(name.p, name.n);
        json_key(&j, key);
        mask_write(&j, item, !slice_eq_str(name, "payload"));
        free(key);
    }
    json_object_end(&j);
    json_end(&j);
    cli_print("%s\n", buf_str(&out));
    buf_free(&out);
}

static int run_show(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct request *q = request_open(cli, NEED_READ, &e);
    int rc = EX_OK;

    if (!q)
        return cli_fail_err(&e);
    for (int i = 0; i < argc && rc == EX_OK; i++) {
        struct answer a;
        struct buf path = BUF_EMPTY;
        buf_add_str(&path, "/v1/events/");
        percent_encode(&path, slice_str(argv[i]));
        if (request_send(q, "GET", buf_str(&path), slice_make(NULL, 0), &a, &e) < 0) {
            rc = cli_fail(e.exit_code, "%s: %s", argv[i], e.text);
            cli_next(cli, "list");
        } else {
            if (cli->json && cli_flag(cli, "payload"))
                rc = show_json(&a);
            else if (cli->json)
                print_masked_json(a.root);
            else
                print_event(cli, argv[i], a.root);
            answer_clear(&a);
        }
        if (i + 1 < argc && !cli->json)
            cli_print("\n");
        buf_free(&path);
    }
    request_close(q);
    return cli_finish(rc);
}

static const struct cli_option options[] = {{"payload", NULL, "show what the messages say, too"},
                                            {NULL, NULL, NULL}};

const struct command command_show = {
    .name = "show",
    .arguments = "BOT/ID...",
    .summary = "one event: its state, its tries, what is in it",
    .usage = "Shows events. An event is named as BOT/UPDATE_ID, or by its number in the spool\n"
             "as BOT/@SEQ (BOT/out/@SEQ for a call). What messages say is hidden without\n"
             "--payload.\n",
    .options = options,
    .min_arguments = 1,
    .max_arguments = -1,
    .run = run_show,
};
