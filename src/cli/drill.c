/* tgspool drill: the checks to make before a bot goes live. What they do is in src/drill. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "core/option_command.h"
#include "core/options.h"
#include "daemon/configfile.h"
#include "drill/drill.h"
#include "wire/json.h"

struct telling {
    struct cli *cli;
    const struct drill_options *o;
    struct json_out j; /* with --json */
    struct buf json;
};

/* ---- what is told ------------------------------------------------------------------------------- */

static void add_option(struct buf *out, const struct drill_options *o, const char *name)
{
    struct option_value v;

    option_get(option_find(SECTION_BOTS, slice_str(name)), o->config, o->bot, &v);
    option_value_add_yaml(out, &v);
    option_value_clear(&v);
}

static void add_handler(struct buf *out, const struct drill_options *o)
{
    if (o->run_handler)
        command_join(out, o->bot->command);
    else
        buf_add_str(out, "built in");
}

static void tell_before(void *arg, const char *dir, const char *api_root)
{
    struct telling *t = arg;
    struct buf handler = BUF_EMPTY, deliver = BUF_EMPTY, retry = BUF_EMPTY;
    char lease[32], own[32], limit[32];

    add_handler(&handler, t->o);
    add_option(&deliver, t->o, "deliver");
    add_option(&retry, t->o, "retry");
    text_from_ms(t->o->lease_ms, lease);
    if (t->cli->json) {
        json_object(&t->j);
        json_kv_cstr(&t->j, "bot", t->o->bot->name);
        json_kv_cstr(&t->j, "deliver", buf_str(&deliver));
        json_kv_cstr(&t->j, "handler", buf_str(&handler));
        json_kv_cstr(&t->j, "lease", lease);
        json_kv_cstr(&t->j, "directory", dir);
        json_kv_cstr(&t->j, "api_root", api_root);
        json_key(&t->j, "checks");
        json_array(&t->j);
    } else {
        cli_print("bot      %s (deliver: %s, handler: %s)\n", t->o->bot->name, buf_str(&deliver),
                  buf_str(&handler));
        cli_print("scratch  %s\n", dir);
        cli_print("server   %s, in Telegram's place\n", api_root);
        cli_print("times    lease %s (yours: %s)\n", lease, text_from_ms(t->o->bot->lease_ms, own));
        cli_print("         retry [%s] (yours: %s)\n", DRILL_RETRY, buf_str(&retry));
        cli_print("         all of it %s at most; --limit gives it more\n\n",
                  text_from_ms(t->o->limit_ms, limit));
        (void)cli_finish(0); /* shown now, not when the checks are over */
    }
    buf_free(&handler);
    buf_free(&deliver);
    buf_free(&retry);
}

static void tell_result(void *arg, const struct drill_result *r)
{
    struct telling *t = arg;
    struct buf seen = BUF_EMPTY, lines = BUF_EMPTY;

    text_add_clean(&seen, slice_str(r->seen), SIZE_MAX, false);
    if (t->cli->json) {
        json_object(&t->j);
        json_kv_int(&t->j, "number", r->number);
        json_kv_cstr(&t->j, "check", r->what);
        json_kv_cstr(&t->j, "result", r->pass ? "pass" : "fail");
        json_kv_text(&t->j, "seen", buf_slice(&seen));
        json_object_end(&t->j);
    } else {
        cli_add_wrapped(&lines, buf_str(&seen));
        cli_print("%d %s ... %s\n%s", r->number, r->what, r->pass ? "pass" : "FAIL", buf_str(&lines));
        (void)cli_finish(0);
    }
    buf_free(&seen);
    buf_free(&lines);
}

static int tell_end(struct telling *t, const struct drill_summary *s)
{
    if (t->cli->json) {
        json_array_end(&t->j);
        json_kv_cstr(&t->j, "result", s->signo ? "ended" : s->failed ? "fail" : "pass");
        json_kv_cstr(&t->j, "kept", s->dir);
        json_object_end(&t->j);
        buf_add_char(&t->json, '\n');
        cli_put(buf_slice(&t->json));
    } else if (s->dir) {
        cli_print("\nkept: %s (each check's config, spool and log)\n", s->dir);
    }
    if (s->signo)
        return cli_finish(128 + s->signo);
    if (s->failed)
        return cli_finish(cli_fail(EX_SOFTWARE, "%u of %u checks failed", s->failed, s->failed + s->passed));
    return cli_finish(EX_OK);
}

/* ---- what is asked for -------------------------------------------------------------------------- */

/* The bot to be tried; NULL: told, with an exit code. */
static const struct bot_config *find_bot(const struct cli *cli, const struct config *c, int *rc)
{
    const char *name = cli_option(cli, "bot");
    const struct bot_config *bot = name ? config_bot(c, name) : c->n_bots == 1 ? &c->bots[0] : NULL;
    struct buf next = BUF_EMPTY;

    if (!bot && name) {
        *rc = cli_fail(EX_NOINPUT, "there is no bot \"%s\" in %s; tgspool config shows those that there are",
                       name, c->path);
    } else if (!bot) {
        cli_add_command(&next, "tgspool drill");
        *rc = cli_fail(EX_USAGE, "%s has %zu bots, and one is tried at a time: %s --bot %s", c->path,
                       c->n_bots, buf_str(&next), c->bots[0].name);
    }
    buf_free(&next);
    return bot;
}

static int read_time(const struct cli *cli, const char *name, int64_t min, int64_t max, int64_t *ms)
{
    const char *text = cli_option(cli, name);
    char from[32], to[32];

    if (!text || (text_to_ms(slice_str(text), ms) == 0 && *ms >= min && *ms <= max))
        return 0;
    return cli_fail(EX_USAGE, "--%s: \"%s\" is not accepted; accepted: a time of %s to %s", name, text,
                    text_from_ms(min, from), text_from_ms(max, to));
}

/* The lease, and a limit that leaves time for it. */
static int read_times(const struct cli *cli, struct drill_options *o)
{
    char lease[32], limit[32];

    o->lease_ms = DRILL_LEASE_MS;
    if (read_time(cli, "lease", SECONDS(1), MINUTES(2), &o->lease_ms))
        return EX_USAGE;
    int64_t least = o->lease_ms * DRILL_LIMIT_LEASES;
    o->limit_ms = least > DRILL_LIMIT_MS ? least : DRILL_LIMIT_MS;
    if (read_time(cli, "limit", SECONDS(10), HOURS(1), &o->limit_ms))
        return EX_USAGE;
    if (o->limit_ms >= least)
        return 0;
    return cli_fail(EX_USAGE,
                    "--limit %s is too short for leases of %s: leave it out, or give it %s at least",
                    cli_option(cli, "limit"), text_from_ms(o->lease_ms, lease), text_from_ms(least, limit));
}

/* The numbers of checks; none: all. */
static int read_wanted(int argc, char **argv, bool wanted[DRILL_CHECKS + 1])
{
    for (int n = 1; n <= DRILL_CHECKS; n++)
        wanted[n] = argc == 0;
    for (int i = 0; i < argc; i++) {
        int64_t n;
        if (text_to_i64(slice_str(argv[i]), 1, DRILL_CHECKS, &n) < 0)
            return cli_fail(EX_USAGE, "there is no check \"%s\"; they are numbered 1 to %d", argv[i],
                            DRILL_CHECKS);
        wanted[n] = true;
    }
    return 0;
}

static int read_probe(const struct cli *cli, char ***probe)
{
    const char *text = cli_option(cli, "probe"), *why;
    size_t at;

    *probe = NULL;
    if (!text)
        return 0;
    if (!cli_flag(cli, "run-handler"))
        return cli_fail(EX_USAGE, "--probe counts the effects of your handler: it needs --run-handler");
    *probe = command_split(text, &why, &at);
    return *probe ? 0 : cli_fail(EX_USAGE, "--probe: %s", why);
}

/* Shows what will run, and asks for leave. Returns 0 or an exit code. */
static int ask_for_handler(const struct cli *cli, const struct drill_options *o)
{
    struct buf command = BUF_EMPTY;
    char answer[8] = "";

    if (!o->bot->command)
        return cli_fail(
            EX_USAGE,
            "--run-handler is for deliver: exec and worker; bot %s has its handler outside, where the "
            "drill cannot keep it from Telegram: leave it out, the drill plays the handler",
            o->bot->name);
    command_join(&command, o->bot->command);
    fprintf(stderr,
            "Your handler will run, with made-up updates:\n\n  %s\n\n"
            "Its environment has TGSPOOL_DRILL=1, and TGSPOOL_API_ROOT with the address of the\n"
            "drill's Bot API server. What it does elsewhere is real.\n",
            buf_str(&command));
    buf_free(&command);
    if (cli_flag(cli, "yes"))
        return 0;
    if (!isatty(STDIN_FILENO))
        return cli_fail(EX_USAGE, "nobody can be asked here; if that may run, add --yes");
    fprintf(stderr, "Run it? [y/N] ");
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return 0;
    return cli_fail(EX_USAGE, "nothing was run");
}

static int run_with(struct cli *cli, const struct drill_options *o)
{
    struct telling t = {.cli = cli, .o = o};
    struct drill_options with = *o;
    struct drill_summary summary;
    struct err e = ERR_NONE;

    with.before = tell_before;
    with.result = tell_result;
    with.arg = &t;
    json_start(&t.j, &t.json);
    int rc = drill_run(&with, &summary, &e);
    if (rc == 0)
        rc = tell_end(&t, &summary);
    else
        rc = cli_fail_err(&e);
    json_end(&t.j);
    buf_free(&t.json);
    free(summary.dir);
    return rc;
}

static int run_drill(struct cli *cli, int argc, char **argv)
{
    struct drill_options o = {.run_handler = cli_flag(cli, "run-handler"), .keep = cli_flag(cli, "keep")};
    struct err e = ERR_NONE;
    struct config *c;
    int rc = 0;

    if (argc >= 3 && strcmp(argv[0], "handler") == 0) /* what a scratch config names */
        return drill_handler(argv[1], argv[2], argc > 3 ? argv + 3 : NULL);
    if (read_wanted(argc, argv, o.wanted) || read_times(cli, &o) || read_probe(cli, &o.probe))
        return EX_USAGE;
    c = configfile_read(cli->config_path, &e);
    if (!c) {
        rc = cli_fail_err(&e);
    } else if ((o.bot = find_bot(cli, c, &rc))) {
        o.config = c;
        if (o.run_handler)
            rc = ask_for_handler(cli, &o);
        if (rc == 0)
            rc = run_with(cli, &o);
    }
    command_free(o.probe);
    config_free(c);
    return rc;
}

static const struct cli_option options[] = {
    {"bot", "BOT", "this bot; needed if there are several"},
    {"run-handler", NULL, "run the bot's own handler (exec, worker)"},
    {"probe", "COMMAND", "prints the number of the handler's effects"},
    {"yes", NULL, "do not ask before the handler is run"},
    {"lease", "TIME", "of the drill (default: 2s)"},
    {"limit", "TIME", "of all checks together (60s, more for long leases)"},
    {"keep", NULL, "keep the scratch directory"},
    {NULL, NULL, NULL},
};

const struct command command_drill = {
    .name = "drill",
    .arguments = "[-c FILE] [--bot BOT] [--run-handler] [N...]",
    .summary = "six checks before a bot goes live, in a scratch directory",
    .usage = "Tries, with daemons in a scratch directory and a Bot API server on loopback,\n"
             "what must hold before a bot goes live:\n"
             "\n"
             "  1  the daemon ends right after the write, before Telegram is told\n"
             "  2  daemon and handler are killed while they handle updates\n"
             "  3  Telegram answers 429, cuts connections, does not answer\n"
             "  4  the handler hangs\n"
             "  5  the same update comes twice, and is handed over twice: one effect\n"
             "  6  disk full, database damaged: somebody is told\n"
             "\n"
             "The config's spool, tokens and alerts are not used, only what it says of sync,\n"
             "order, delivery, concurrency, tries and expiry. A built-in handler is used;\n"
             "with --run-handler the bot's own, which has TGSPOOL_DRILL=1 in its environment\n"
             "and the server to make its calls to in TGSPOOL_API_ROOT. --probe counts what it\n"
             "did, for check 5. The exit status is 0 if all passed, 70 if not; what failed is\n"
             "kept.\n",
    .options = options,
    .max_arguments = -1,
    .run = run_drill,
};
