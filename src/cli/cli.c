/* The command line: finds the command and its options, which may stand in any order, and runs it. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/command.h"

#include <ctype.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

static const struct command *const commands[] = {
    &command_run,      &command_init,       &command_check,   &command_config,  &command_status,
    &command_list,     &command_show,       &command_replay,  &command_discard, &command_export,
    &command_import,   &command_pause,      &command_resume,  &command_tail,    &command_webhook,
    &command_handover, &command_backup,     &command_restore, &command_repair,  &command_verify,
    &command_version,  &command_alert_test, &command_compact, &command_drill,
};

static const struct cli_option common[] = {
    {"config", "FILE", "the config file; also -c FILE"},
    {"socket", "PATH", "the daemon's control socket, instead of the config's"},
    {"json", NULL, "the answer as JSON"},
    {"help", NULL, "this text; also -h"},
    {NULL, NULL, NULL},
};

const struct command *cli_command_at(unsigned i)
{
    return i < ARRAY_LEN(commands) ? commands[i] : NULL;
}

const char *cli_option(const struct cli *cli, const char *name)
{
    for (unsigned i = 0; i < cli->n_given; i++)
        if (strcmp(cli->given[i].name, name) == 0)
            return cli->given[i].value;
    return NULL;
}

/* ---- finding names ------------------------------------------------------------------------------ */

static const struct cli_option *in_table(const struct cli_option *table, const char *name, size_t n)
{
    for (; table && table->name; table++)
        if (strlen(table->name) == n && memcmp(table->name, name, n) == 0)
            return table;
    return NULL;
}

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* An option of any command: whether it takes a value is the same in all. */
static const struct cli_option *option_named(const char *name, size_t n)
{
    const struct cli_option *o = in_table(common, name, n);

    for (size_t i = 0; !o && i < ARRAY_LEN(commands); i++)
        o = in_table(commands[i]->options, name, n);
    return o;
}

struct guess {
    const char *name;
    unsigned distance;
};

static void guess_try(struct guess *g, const char *name, const char *wrong, size_t n)
{
    unsigned d = text_distance(slice_str(name), slice_make(wrong, n));

    if (d < g->distance) {
        g->distance = d;
        g->name = name;
    }
}

static int unknown_command(const char *wrong)
{
    struct guess g = {NULL, 3};

    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        guess_try(&g, commands[i]->name, wrong, strlen(wrong));
    if (g.name)
        return cli_fail(EX_USAGE, "there is no command \"%s\"; did you mean `tgspool %s`?", wrong, g.name);
    return cli_fail(EX_USAGE, "there is no command \"%s\"; `tgspool --help` lists them", wrong);
}

static int unknown_option(const struct command *c, const char *wrong, size_t n)
{
    struct guess g = {NULL, 3};

    for (const struct cli_option *o = common; o->name; o++)
        guess_try(&g, o->name, wrong, n);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        for (const struct cli_option *o = commands[i]->options; o && o->name; o++)
            if (!c || c == commands[i])
                guess_try(&g, o->name, wrong, n);
    if (g.name)
        return cli_fail(EX_USAGE, "%s has no option --%.*s; did you mean --%s?", c ? c->name : "tgspool",
                        (int)n, wrong, g.name);
    return cli_fail(EX_USAGE, "%s has no option --%.*s; `tgspool %s%s--help` lists them",
                    c ? c->name : "tgspool", (int)n, wrong, c ? c->name : "", c ? " " : "");
}

/* ---- help --------------------------------------------------------------------------------------- */

static void print_options(const struct cli_option *o)
{
    for (; o && o->name; o++) {
        char *left = xasprintf("--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        cli_print("  %-20s %s\n", left, o->text);
        free(left);
    }
}

static int help(const struct command *c)
{
    if (c) {
        cli_print("usage: tgspool %s%s%s\n\n%s\n", c->name, c->arguments[0] ? " " : "", c->arguments,
                  c->usage);
        cli_print("options:\n");
        print_options(c->options);
        print_options(common);
        return cli_finish(EX_OK);
    }
    cli_print("usage: tgspool COMMAND [OPTIONS] [ARGUMENTS]\n\n"
              "tgspool keeps a Telegram bot's updates safe on disk until the bot has handled\n"
              "them.\n\ncommands:\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        cli_print("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    cli_print("\noptions of every command:\n");
    print_options(common);
    cli_print("\n`tgspool COMMAND --help` tells more. To begin: tgspool init DIR\n");
    return cli_finish(EX_OK);
}

/* ---- reading the words -------------------------------------------------------------------------- */

struct words {
    char **plain; /* those that are no options; the first is the command */
    int n_plain;
    bool help, version;
    const char *unknown; /* an option of no command: told when the command is known */
};

static int add_given(struct cli *cli, const struct cli_option *o, const char *value)
{
    if (strcmp(o->name, "config") == 0) {
        cli->config_path = value;
        cli->config_given = true;
    } else if (strcmp(o->name, "socket") == 0) {
        cli->socket_path = value;
    } else if (strcmp(o->name, "json") == 0) {
        cli->json = true;
    } else if (cli_option(cli, o->name)) {
        return cli_fail(EX_USAGE, "--%s is given twice", o->name);
    } else if (cli->n_given == CLI_GIVEN_MAX) {
        return cli_fail(EX_USAGE, "too many options");
    } else {
        cli->given[cli->n_given].name = o->name;
        cli->given[cli->n_given++].value = value;
    }
    return 0;
}

/* Whether a word stands where an option's value was forgotten. A negative number, as of a chat, is a value, and so is "-". */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && (word[1] == '-' || isalpha((unsigned char)word[1]));
}

/* The value of an option, a word of its own; `as`: how the option was written. */
static int take_value(struct cli *cli, const struct cli_option *o, const char *as, char ***next)
{
    const char *value = **next;

    if (!value)
        return cli_fail(EX_USAGE, "%s needs a value: %s %s", as, as, o->value);
    if (looks_like_option(value))
        return cli_fail(EX_USAGE,
                        "%s needs a value, %s, and \"%s\" looks like an option; if it is meant, write --%s=%s",
                        as, o->value, value, o->name, value);
    (*next)++;
    return add_given(cli, o, value);
}

/* One word that begins with "--"; *next is the word behind it, taken if it is the value. Returns 0 or an exit
 * code. */
static int long_option(struct cli *cli, struct words *w, const struct command *c, const char *word,
                       char ***next)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_option *o = in_table(common, name, n);

    if (n == 4 && memcmp(name, "help", 4) == 0 && !equals) {
        w->help = true;
        return 0;
    }
    if (!o)
        o = c ? in_table(c->options, name, n) : option_named(name, n);
    if (!c && !o && strcmp(name, "version") == 0) {
        w->version = true;
        return 0;
    }
    if (!o && !c) {
        w->unknown = name;
        return 0;
    }
    if (!o)
        return unknown_option(c, name, n);
    if (!o->value && equals)
        return cli_fail(EX_USAGE, "--%s takes no value", o->name);
    if (!o->value)
        return add_given(cli, o, "");
    if (equals)
        return add_given(cli, o, equals + 1);
    return take_value(cli, o, word, next);
}

/* Goes over all words. With c NULL, only to find the command: options of all commands are known then. */
static int read_words(struct cli *cli, struct words *w, const struct command *c, char **argv)
{
    bool only_plain = false;

    w->n_plain = 0;
    cli->n_given = 0;
    while (*argv) {
        char *word = *argv++;
        int rc = 0;
        if (only_plain || word[0] != '-' || word[1] == '\0')
            w->plain[w->n_plain++] = word;
        else if (strcmp(word, "--") == 0)
            only_plain = true;
        else if (strcmp(word, "-h") == 0)
            w->help = true;
        else if (word[1] == '-')
            rc = long_option(cli, w, c, word, &argv);
        else if (word[1] != 'c')
            rc =
                word[1] >= '0' && word[1] <= '9'
                    ? cli_fail(EX_USAGE, "%s stands alone; a negative number belongs to an option: --chat %s",
                               word, word)
                    : cli_fail(EX_USAGE, "there is no option %s; `tgspool --help` lists them", word);
        else if (word[2])
            rc = add_given(cli, &common[0], word + 2);
        else
            rc = take_value(cli, &common[0], word, &argv);
        if (rc)
            return rc;
    }
    return 0;
}

static int run(struct cli *cli, char **argv, struct words *w)
{
    int rc = read_words(cli, w, NULL, argv);

    if (rc)
        return rc;
    if (w->n_plain == 0) {
        if (w->unknown)
            return unknown_option(NULL, w->unknown, strcspn(w->unknown, "="));
        if (w->version)
            return command_version.run(cli, 0, w->plain);
        if (w->help)
            return help(NULL);
        help(NULL);
        return EX_USAGE;
    }
    if (strcmp(w->plain[0], "help") == 0 && w->n_plain <= 2)
        return w->n_plain == 1              ? help(NULL)
               : command_named(w->plain[1]) ? help(command_named(w->plain[1]))
                                            : unknown_command(w->plain[1]);
    const struct command *c = command_named(w->plain[0]);
    if (!c && w->unknown) /* its value may have been taken for the command */
        return unknown_option(NULL, w->unknown, strcspn(w->unknown, "="));
    if (!c)
        return unknown_command(w->plain[0]);
    if (w->help)
        return help(c);
    rc = read_words(cli, w, c, argv);
    if (rc)
        return rc;
    int n = w->n_plain - 1;
    if (n < c->min_arguments || (c->max_arguments >= 0 && n > c->max_arguments))
        return cli_fail(EX_USAGE, "too %s arguments; usage: tgspool %s %s",
                        n < c->min_arguments ? "few" : "many", c->name, c->arguments);
    cli->command = c;
    cli_output_for(cli);
    return c->run(cli, n, w->plain + 1);
}

int cli_main(int argc, char **argv)
{
    struct cli cli = {.config_path = SYSCONFDIR "/tgspool/tgspool.yaml"};
    struct words w = {.plain = xcalloc((size_t)argc + 1, sizeof(char *))};

    setlocale(LC_CTYPE, "C.UTF-8"); /* for the width of what tables show */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* ulimit -f: the write fails, and it says why */
    int rc = run(&cli, argv + 1, &w);
    free(w.plain);
    return rc;
}
