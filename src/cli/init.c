/* tgspool init: a directory with everything that a first start needs: config, token file, spool, an example
 * handler. Nothing that is there already is written over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "core/option_command.h"
#include "core/option_yaml.h"
#include "daemon/secrets.h"
#include "wire/json.h"

static const char placeholder[] = "replace this line by the token that @BotFather gave you\n";

static const char handler_text[] =
    "#!/bin/sh\n"
    "# An example handler: tgspool starts it once for each update, with the update (JSON) on standard input "
    "and\n"
    "# TGSPOOL_ID, TGSPOOL_KIND, TGSPOOL_ATTEMPT, TGSPOOL_KEY ... in the environment; see tgspool(1).\n"
    "# Exit 0: done. Exit 65: never try this update again. Any other: it is tried again later, and the last "
    "line of\n"
    "# standard error is kept with it. Put your bot's own work in place of what follows.\n"
    "umask 077\n"
    "bytes=$(wc -c)\n"
    "echo \"$(date) $TGSPOOL_ID $TGSPOOL_KIND, $bytes bytes, attempt $TGSPOOL_ATTEMPT\" >>\"$(dirname "
    "\"$0\")/handled.log\"\n";

struct plan {
    char *dir; /* absolute */
    const char *name;
    char *config, *token_file, *spool, *socket, *handler;
    struct buf token;        /* what will be in the token file */
    const char *token_state; /* "written", "kept" or "missing" */
};

static void plan_clear(struct plan *p)
{
    free(p->dir);
    free(p->config);
    free(p->token_file);
    free(p->spool);
    free(p->socket);
    free(p->handler);
    if (p->token.p)
        explicit_bzero(p->token.p, p->token.n);
    buf_free(&p->token);
}

/* A command to run next. */
static void add_next(struct buf *out, const char *verb, const char *config)
{
    char *argv[] = {(char *)"tgspool", (char *)verb, (char *)"-c", (char *)config, NULL};
    command_join(out, argv);
}

static int is_there(const struct plan *p, struct err *e)
{
    struct buf check = BUF_EMPTY;

    add_next(&check, "check", p->config);
    err_set(e, EX_CANTCREAT,
            "%s is there already and is left as it is; check it with %s, or name another directory",
            p->config, buf_str(&check));
    buf_free(&check);
    return -1;
}

/* Names the directory and what will be in it. */
static int plan_make(struct plan *p, const char *dir, struct err *e)
{
    p->dir = file_resolve(dir);
    for (size_t n = strlen(p->dir); n > 1 && p->dir[n - 1] == '/';)
        p->dir[--n] = '\0';
    p->config = xasprintf("%s/tgspool.yaml", p->dir);
    p->token_file = xasprintf("%s/%s.token", p->dir, p->name);
    p->spool = xasprintf("%s/spool", p->dir);
    p->socket = xasprintf("%s/tgspool.sock", p->dir);
    p->handler = xasprintf("%s/on-update", p->dir);
    if (access(p->config, F_OK) == 0)
        return is_there(p, e);
    return 0;
}

/* ---- the token ---------------------------------------------------------------------------------- */

/* Asks on the terminal, without echo. Signals are off meanwhile: one would leave the terminal without echo.
 * The echo goes before the question comes, and what was typed ahead is kept: an answer that is quicker than
 * this process is neither shown nor lost. */
static void ask_token(struct buf *out)
{
    struct termios was, quiet;
    char line[512];

    if (tcgetattr(STDIN_FILENO, &was) < 0)
        return;
    quiet = was;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
    fputs("Token of the bot, from @BotFather (not shown; empty: later): ", stderr);
    if (fgets(line, sizeof(line), stdin))
        buf_add(out, line, strcspn(line, " \t\r\n"));
    tcsetattr(STDIN_FILENO, TCSADRAIN, &was);
    fputc('\n', stderr);
    explicit_bzero(line, sizeof(line));
}

/* What to write into the token file: the token of the environment, else one that is asked for, else a placeholder. */
static int find_token(struct plan *p, struct err *e)
{
    const char *env = getenv("TGSPOOL_TOKEN");
    int64_t bot_id;

    if (access(p->token_file, F_OK) == 0) {
        p->token_state = "kept";
        return 0;
    }
    if (env)
        buf_add_str(&p->token, env);
    else if (isatty(STDIN_FILENO))
        ask_token(&p->token);
    p->token_state = p->token.n ? "written" : "missing";
    if (p->token.n && !secrets_parse_token(buf_slice(&p->token), &bot_id))
        return err_set(
            e, EX_DATAERR,
            "%s is not a bot token; it is digits, a colon, and 30 or more of A-Z a-z 0-9 _ -; nothing "
            "was made",
            env ? "TGSPOOL_TOKEN" : "what was typed");
    buf_add_str(&p->token, p->token.n ? "\n" : placeholder);
    return 0;
}

/* ---- the config --------------------------------------------------------------------------------- */

static void add_option(struct buf *out, const char *indent, const char *name, const char *value)
{
    buf_printf(out, "%s%s: ", indent, name);
    node_add_scalar(out, value);
    buf_add_char(out, '\n');
}

/* The config's text, checked by the parser before anything is written: a path may be too long for a socket. */
static int make_config(const struct plan *p, struct buf *text, struct err *e)
{
    char *argv[] = {p->handler, NULL};
    struct buf command = BUF_EMPTY;

    command_join(&command, argv);
    buf_add_str(text, "# The configuration of tgspool; tgspool.yaml(5) and `tgspool config --options` tell\n"
                      "# every option. After a change: tgspool check -c FILE, then SIGHUP or a restart.\n"
                      "spool:\n");
    add_option(text, "  ", "dir", p->spool);
    buf_add_str(text, "listen:\n");
    add_option(text, "  ", "socket", p->socket);
    buf_add_str(text, "  socket_mode: \"0600\"\nbots:\n");
    buf_printf(text, "  %s:\n", p->name);
    add_option(text, "    ", "token_file", p->token_file);
    buf_add_str(text, "    deliver: exec\n");
    add_option(text, "    ", "command", buf_str(&command));
    buf_free(&command);
    struct config *c = config_parse(p->config, buf_slice(text), e);
    config_free(c);
    return c ? 0 : -1;
}

/* Nothing is made before all that a person may have given wrong was looked at. The config comes last: where it is,
 * everything it names is. */
static int write_all(struct plan *p, struct err *e)
{
    struct buf config = BUF_EMPTY;
    int rc = make_config(p, &config, e);

    if (rc == 0)
        rc = find_token(p, e);
    if (rc == 0)
        rc = file_make_dir(p->dir, 0700, e);
    if (rc == 0 && p->token.n)
        rc = file_create(p->token_file, buf_slice(&p->token), 0600, e);
    if (rc == 0)
        rc = file_make_dir(p->spool, 0700, e);
    if (rc == 0 && access(p->handler, F_OK) < 0)
        rc = file_create(p->handler, slice_make(handler_text, sizeof(handler_text) - 1), 0700, e);
    if (rc == 0)
        rc = file_create(p->config, buf_slice(&config), 0600, e);
    buf_free(&config);
    return rc;
}

/* ---- what is told ------------------------------------------------------------------------------- */

static void tell(const struct cli *cli, const struct plan *p)
{
    struct buf check = BUF_EMPTY, run = BUF_EMPTY, out = BUF_EMPTY;
    struct json_out j;

    add_next(&check, "check", p->config);
    add_next(&run, "run", p->config);
    if (cli->json) {
        json_start(&j, &out);
        json_object(&j);
        json_kv_cstr(&j, "config", p->config);
        json_kv_cstr(&j, "token_file", p->token_file);
        json_kv_cstr(&j, "token", p->token_state);
        json_kv_cstr(&j, "handler", p->handler);
        json_key(&j, "next");
        json_array(&j);
        json_text(&j, buf_slice(&check));
        json_text(&j, buf_slice(&run));
        json_array_end(&j);
        json_object_end(&j);
        json_end(&j);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "config   %s\n", p->config);
        buf_printf(&out, "token    %s (%s)\n", p->token_file, p->token_state);
        buf_printf(&out, "spool    %s\n", p->spool);
        buf_printf(&out, "handler  %s\n\n", p->handler);
        if (strcmp(p->token_state, "missing") == 0)
            buf_add_str(&out, "Put the bot's token into the token file, as its only line. Then:\n");
        buf_printf(&out, "  %s\n  %s\n", buf_str(&check), buf_str(&run));
    }
    cli_put(buf_slice(&out));
    buf_free(&check);
    buf_free(&run);
    buf_free(&out);
}

static int init_run(struct cli *cli, int argc, char **argv)
{
    const char *name = cli_option(cli, "name");
    struct plan p = {.name = name ? name : "bot"};
    struct err e = ERR_NONE;

    (void)argc;
    if (p.name[0] == '-') /* it would be taken for an option wherever it is named */
        return cli_fail(EX_USAGE, "--name needs a bot's name, which does not begin with '-'");
    if (!text_is_bot_name(slice_str(p.name)))
        return cli_fail(EX_USAGE, "\"%s\" is not a bot's name; accepted: 1 to %d of A-Z a-z 0-9 _ -", p.name,
                        BOT_NAME_MAX);
    int rc = plan_make(&p, argv[0], &e);
    if (rc == 0)
        rc = write_all(&p, &e);
    if (rc == 0)
        tell(cli, &p);
    plan_clear(&p);
    return rc < 0 ? cli_fail_err(&e) : cli_finish(EX_OK);
}

static const struct cli_option init_options[] = {
    {"name", "NAME", "the bot's name in the config (default: bot)"},
    {NULL, NULL, NULL},
};

const struct command command_init = {
    .name = "init",
    .arguments = "DIR [--name NAME]",
    .summary = "make a directory with a config, token file and handler",
    .usage = "Makes DIR, if it is missing, and in it: tgspool.yaml, NAME.token, the directory\n"
             "spool, and on-update, an example handler. All of them are private to the user.\n"
             "What is there already is never written over.\n"
             "\n"
             "The token is taken from the environment variable TGSPOOL_TOKEN, else asked for\n"
             "without echo if standard input is a terminal; else NAME.token tells what to put\n"
             "into it.\n",
    .options = init_options,
    .min_arguments = 1,
    .max_arguments = 1,
    .run = init_run,
};
