/* What a command is, and what it is given. A command is a file that exports one `const struct command`; the
 * table of all of them is in cli.c, which reads the options (before or after the command's name), finds the
 * command and runs it.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

struct cli;

/* An option of a command. Every command also takes -c FILE, --socket PATH, --json and --help. Where two
 * commands have an option of one name, both take a value or neither does. */
struct cli_option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* what stands for its value in the help, "BOT"; NULL: a flag without value */
    const char *text;  /* a few words for the help */
};

struct command {
    const char *name;
    const char *arguments; /* for the usage line, behind the name: "[BOT/ID...]"; "" for none */
    const char *summary;   /* one line of at most 60 characters, no full stop */
    const char
        *usage; /* paragraphs for `tgspool NAME --help`, lines of at most 80 characters, ending with '\n' */
    const struct cli_option *options; /* NULL: none beside the common ones */
    int min_arguments, max_arguments; /* of argv below; max -1: any number */
    /* argv holds argc words that are no options (the command's name not among them). Returns an exit code of
     * sysexits.h (0 for success); whatever went wrong has been told by then. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

#define CLI_GIVEN_MAX 32

struct cli {
    const char *config_path; /* of -c, else SYSCONFDIR/tgspool/tgspool.yaml; never NULL */
    bool config_given;       /* -c was there */
    const char *socket_path; /* of --socket; NULL: the config's */
    bool json;               /* --json: the answer as one JSON document on standard output */
    const struct command *command;
    struct {
        const char *name, *value;
    } given[CLI_GIVEN_MAX];
    unsigned n_given;
};

/* The value of an option of the command ("" for a flag), or NULL if it was not given. */
const char *cli_option(const struct cli *cli, const char *name);
static inline bool cli_flag(const struct cli *cli, const char *name)
{
    return cli_option(cli, name) != NULL;
}

/* ---- what people see ---------------------------------------------------------------------------- */

/* To standard output: text, and bytes as they are. */
void cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_put(struct slice bytes);
/* Flushes standard output; call it last. Returns code, or EX_IOERR (told) if something could not be written.
 */
int cli_finish(int code);

/* "tgspool: SENTENCE" on standard error, control characters made harmless. Returns exit_code, so that
 * `return cli_fail(EX_USAGE, ...)` serves. */
int cli_fail(int exit_code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same with e's text and exit code. */
int cli_fail_err(const struct err *e);
/* A warning on standard error, and in a second line what to do about it: "  next: COMMAND". next may be NULL
 * only where the sentence itself ends with the command to run. */
void cli_warn(const char *next, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "next: tgspool COMMAND" on standard error, for people (not with --json). */
void cli_next(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Wherever a command is proposed that begins with "tgspool ", the given -c FILE and --socket PATH are put behind it. */
void cli_output_for(const struct cli *cli); /* cli.c tells whose they are */
void cli_add_command(struct buf *out, const char *command);

/* Appends words of text in lines of at most 80 columns, indented by 4. */
void cli_add_wrapped(struct buf *out, const char *text);

/* A table for people: cells are UTF-8 text, made fit to show; the widest lines are cut to `width` columns by
 * shortening the columns marked with '<' in `align` (one character a column: 'l' left, 'r' right, '<' left
 * and may be cut, 'm' the same, but only when nothing of '<' is left). The first row is the header. Rows are
 * added cell by cell. */
/* The columns of a table that may be wide: COLUMNS of the environment, else those of the terminal, 80 if it does
 * not tell; no limit where standard output is no terminal. */
unsigned cli_width(void);
struct cli_table;
struct cli_table *cli_table_new(const char *align, unsigned width);
void cli_table_cell(struct cli_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_table_print(struct cli_table *t, struct buf *out); /* appends to out; frees t */

/* ---- the whole program, but for main.c ---------------------------------------------------------- */

int cli_main(int argc, char **argv);

/* The table's rows, one by one: NULL past the end. */
const struct command *cli_command_at(unsigned i);

extern const struct command command_run, command_init, command_check, command_config, command_status,
    command_list, command_show, command_replay, command_discard, command_export, command_import,
    command_pause, command_resume, command_tail, command_version, command_webhook, command_handover,
    command_alert_test, command_backup, command_repair, command_restore, command_verify, command_compact,
    command_drill;

#endif
