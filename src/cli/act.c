/* Replay and discard: named events, or those of a filter; a long one is followed until it is finished. */
#include "cli/act.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/show.h"

/* `replay BOT --state done`: the one word without a slash is no event. Returns 0, or an exit code. */
static int check_bot(const struct cli *cli, const char *bot, bool any, const char *verb)
{
    if (cli_option(cli, "bot"))
        return cli_fail(EX_USAGE, "name the bot once: %s, or --bot %s", bot, cli_option(cli, "bot"));
    if (!any && !cli_flag(cli, "all"))
        return cli_fail(EX_USAGE,
                        "a bot alone needs --all or a filter (tgspool %s %s --all); events are named BOT/ID",
                        verb, bot);
    return 0;
}

/* The request: {"ids":[...]} or filters. by_id tells which. Returns 0, or an exit code. */
static int make_body(const struct cli *cli, int argc, char **argv, const char *verb, struct buf *body,
                     bool *by_id)
{
    struct json_out j;
    bool any;

    json_start(&j, body);
    json_object(&j);
    any = json_add_filters(cli, &j);
    if (argc == 1 && text_is_bot_name(slice_str(argv[0]))) {
        int rc = check_bot(cli, argv[0], any, verb);
        if (rc)
            return rc;
        json_kv_cstr(&j, "bot", argv[0]);
        any = true;
        argc = 0;
    }
    *by_id = argc > 0;
    if (cli_flag(cli, "all"))
        json_kv_bool(&j, "all", true);
    if (cli_flag(cli, "dry-run"))
        json_kv_bool(&j, "dry_run", true);
    if (cli_flag(cli, "force"))
        json_kv_bool(&j, "force", true);
    if (argc) {
        json_key(&j, "ids");
        json_array(&j);
        for (int i = 0; i < argc; i++)
            json_cstr(&j, argv[i]);
        json_array_end(&j);
    }
    json_object_end(&j);
    json_end(&j);
    if (argc && (any || cli_flag(cli, "all") || cli_flag(cli, "dry-run")))
        return cli_fail(EX_USAGE, "name events, or give filters, not both");
    if (!argc && !any && !cli_flag(cli, "all"))
        return cli_fail(EX_USAGE,
                        "which events? Name some (tgspool %s BOT/ID), or give filters (tgspool %s --bot BOT "
                        "--dry-run), or --all; to see what there is: tgspool list",
                        verb, verb);
    return 0;
}

static void tell_busy(const char *id, const char *verb)
{
    char *command = xasprintf("tgspool %s %s --force", verb, id);
    struct buf next = BUF_EMPTY;

    cli_add_command(&next, command);
    cli_fail(0, "%s: it is being processed; next: %s", id, buf_str(&next));
    buf_free(&next);
    free(command);
}

/* One line for each named event. Returns the exit code: that of the first which failed. */
static int tell_ids(const struct json *events, const char *verb, const char *past)
{
    int rc = EX_OK;

    for (size_t i = 0; i < json_length(events); i++) {
        const struct json *v = json_item(events, i), *error = json_get(v, "error");
        char *id = show_text(v, "id"), *as = show_text(v, "as"), *message = show_text(error, "message");
        struct slice code = json_string(json_get(error, "code"));
        if (!error)
            cli_print("%s: %s%s%s\n", id, past, as[0] ? " as " : "", as);
        else if (slice_eq_str(code, "busy"))
            tell_busy(id, verb);
        else
            cli_fail(0, "%s: %s", id, message);
        if (error && rc == EX_OK)
            rc = slice_eq_str(code, "unknown_event") ? EX_NOINPUT : EX_TEMPFAIL;
        free(id);
        free(as);
        free(message);
    }
    return rc;
}

static int tell_counts(const struct cli *cli, const struct json *v, const char *verb, const char *past)
{
    long long changed = (long long)show_number(v, past), skipped = (long long)show_number(v, "skipped"),
              busy = (long long)show_number(v, "busy");
    bool dry = json_true(json_get(v, "dry_run"));

    cli_print("%lld %s %s%s\n", changed, changed == 1 ? "event" : "events", dry ? "would be " : "", past);
    if (skipped)
        cli_print("%lld skipped: %s\n", skipped,
                  strcmp(verb, "replay") == 0 ? "not ended yet, or replayed before" : "ended meanwhile");
    if (busy)
        cli_warn("the same command with --force ends their handlers", "%lld left: being processed", busy);
    if (dry && changed && !cli->json)
        cli_print("nothing was done; to do it, leave out --dry-run\n");
    if (!slice_eq_str(json_string(json_get(v, "state")), "failed"))
        return EX_OK;
    cli_warn("tgspool status",
             "it was cut short, as the disk has no room or the store failed; run it again when that is over");
    return EX_TEMPFAIL;
}

/* A job: asks until it is finished. a gets the last answer. */
static int follow(struct cli *cli, struct request *q, struct answer *a, struct err *e)
{
    while (slice_eq_str(json_string(json_get(a->root, "state")), "running")) {
        char *path = xasprintf("/v1/jobs/%lld", (long long)show_number(a->root, "job"));
        const struct timespec second = {.tv_sec = request_in_process(q) ? 0 : 1};
        if (!cli->json)
            cli_warn(NULL, "still at work, %lld events looked at; ending this command does not end it",
                     (long long)show_number(a->root, "matched"));
        nanosleep(&second, NULL);
        answer_clear(a);
        int rc = request_send(q, "GET", path, slice_make(NULL, 0), a, e);
        free(path);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int act_run(struct cli *cli, int argc, char **argv, const char *verb, const char *past)
{
    struct err e = ERR_NONE;
    struct buf body = BUF_EMPTY;
    struct answer a;
    char *path = xasprintf("/v1/%s", verb);
    struct request *q = NULL;
    bool by_id = false;

    int rc = make_body(cli, argc, argv, verb, &body, &by_id);
    if (rc)
        goto out;
    q = request_open(cli, NEED_SPOOL, &e);
    if (!q || request_send(q, "POST", path, buf_slice(&body), &a, &e) < 0 || follow(cli, q, &a, &e) < 0) {
        rc = cli_fail_err(&e);
        goto out;
    }
    if (cli->json)
        rc = show_json(&a);
    else if (by_id)
        rc = tell_ids(json_get(a.root, "events"), verb, past);
    else
        rc = tell_counts(cli, a.root, verb, past);
    answer_clear(&a);
out:
    request_close(q);
    buf_free(&body);
    free(path);
    return cli_finish(rc);
}
