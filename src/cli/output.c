/* What commands show: text, complaints, tables. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/command.h"
#include "core/option_command.h"

/* The errno of the first failure on standard output: later ones have none. */
static int output_error;

static void note_output(bool ok)
{
    if (!ok && !output_error)
        output_error = errno;
}

static void flush_output(void)
{
    note_output(fflush(stdout) == 0);
}

void cli_print(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    note_output(vprintf(fmt, ap) >= 0);
    va_end(ap);
}

void cli_put(struct slice bytes)
{
    if (bytes.n)
        note_output(fwrite(bytes.p, 1, bytes.n, stdout) == bytes.n);
}

int cli_finish(int code)
{
    static bool told;

    flush_output();
    if (!output_error && !ferror(stdout))
        return code;
    if (told || output_error == EPIPE) { /* EPIPE: whoever read it has seen enough */
        told = true;
        return EX_IOERR;
    }
    told = true;
    return cli_fail(EX_IOERR, "cannot write the output: %s", strerror(output_error ? output_error : EIO));
}

/* One clean line on standard error, behind what is on standard output already. */
static void complain(const char *lead, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void complain(const char *lead, const char *fmt, va_list ap)
{
    struct buf raw = BUF_EMPTY, line = BUF_EMPTY;

    buf_vprintf(&raw, fmt, ap);
    buf_add_str(&line, lead);
    text_add_clean(&line, buf_slice(&raw), SIZE_MAX, true);
    buf_add_char(&line, '\n');
    flush_output();
    fwrite(line.p, 1, line.n, stderr);
    buf_free(&raw);
    buf_free(&line);
}

int cli_fail(int exit_code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain("tgspool: ", fmt, ap);
    va_end(ap);
    return exit_code;
}

int cli_fail_err(const struct err *e)
{
    return cli_fail(e->exit_code ? e->exit_code : EX_SOFTWARE, "%s", e->text);
}

static const struct cli *the_cli; /* whose -c and --socket belong into every command that is proposed */

void cli_output_for(const struct cli *cli)
{
    the_cli = cli;
}

/* An option of a command that is proposed, with its value as a shell wants it. */
static void add_given(struct buf *out, const char *option, const char *value)
{
    char *const words[] = {(char *)option, (char *)value, NULL};

    buf_add_char(out, ' ');
    command_join(out, words);
}

void cli_add_command(struct buf *out, const char *command)
{
    static const char own[] = "tgspool ";

    buf_add_str(out, command);
    if (!the_cli || strncmp(command, own, sizeof(own) - 1) != 0)
        return;
    if (the_cli->config_given)
        add_given(out, "-c", the_cli->config_path);
    if (the_cli->socket_path)
        add_given(out, "--socket", the_cli->socket_path);
}

static void print_next(const char *lead, const char *command)
{
    struct buf line = BUF_EMPTY;

    buf_add_str(&line, lead);
    cli_add_command(&line, command);
    buf_add_char(&line, '\n');
    flush_output();
    fwrite(line.p, 1, line.n, stderr);
    buf_free(&line);
}

void cli_warn(const char *next, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain("warning: ", fmt, ap);
    va_end(ap);
    if (next)
        print_next("  next: ", next);
}

void cli_next(const struct cli *cli, const char *fmt, ...)
{
    struct buf line = BUF_EMPTY;
    va_list ap;

    if (cli->json)
        return;
    buf_add_str(&line, "tgspool ");
    va_start(ap, fmt);
    buf_vprintf(&line, fmt, ap);
    va_end(ap);
    print_next("next: ", buf_str(&line));
    buf_free(&line);
}

void cli_add_wrapped(struct buf *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t n = strcspn(text, " ");
        if (column && column + 1 + n > 80) {
            buf_add_char(out, '\n');
            column = 0;
        }
        buf_add_str(out, column ? " " : "    ");
        column += (column ? 1 : 4) + n;
        buf_add(out, text, n);
        text += n + (text[n] == ' ');
    }
    buf_add_char(out, '\n');
}

/* ---- tables ------------------------------------------------------------------------------------- */

struct cli_table {
    char *align;
    size_t columns;
    unsigned width;
    char **cells; /* row by row */
    size_t n;
};

unsigned cli_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize w;
    int64_t n;

    if (columns && text_to_i64(slice_str(columns), 1, INT16_MAX, &n) == 0)
        return (unsigned)n;
    if (!isatty(STDOUT_FILENO))
        return UINT_MAX;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
}

struct cli_table *cli_table_new(const char *align, unsigned width)
{
    struct cli_table *t = xcalloc(1, sizeof(*t));

    t->align = xstrdup(align);
    t->columns = strlen(align);
    t->width = width;
    return t;
}

void cli_table_cell(struct cli_table *t, const char *fmt, ...)
{
    struct buf raw = BUF_EMPTY, clean = BUF_EMPTY;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    text_add_clean(&clean, buf_slice(&raw), SIZE_MAX, false);
    buf_free(&raw);
    t->cells = xrealloc(t->cells, (t->n + 1) * sizeof(*t->cells));
    t->cells[t->n++] = clean.n ? buf_steal(&clean) : xstrdup("");
}

/* Columns that text takes on a terminal, up to max of them; *bytes gets how many bytes those are. */
static unsigned text_width(const char *s, unsigned max, size_t *bytes)
{
    mbstate_t st = {0};
    unsigned width = 0;
    size_t i = 0, n = strlen(s);

    while (i < n) {
        wchar_t wc;
        size_t len = mbrtowc(&wc, s + i, n - i, &st);
        int w = 1;
        if (len == 0 || len > n - i) {
            len = 1; /* no locale for it: a byte a column */
            memset(&st, 0, sizeof(st));
        } else {
            w = wcwidth(wc);
        }
        if (w < 0)
            w = 1;
        if (width + (unsigned)w > max)
            break;
        width += (unsigned)w;
        i += len;
    }
    *bytes = i;
    return width;
}

/* Takes columns from those that may be cut, always from the widest of them, until a line fits; from those that
 * should rather not be cut only when the others are at their least. */
static void fit(const struct cli_table *t, unsigned *widths)
{
    for (char cut = '<';;) {
        unsigned total = 0;
        size_t widest = t->columns;
        for (size_t c = 0; c < t->columns; c++) {
            total += widths[c] + (c ? 2 : 0);
            if (t->align[c] == cut && widths[c] > 1 && (widest == t->columns || widths[c] > widths[widest]))
                widest = c;
        }
        if (total <= t->width || (widest == t->columns && cut == 'm'))
            return;
        if (widest == t->columns)
            cut = 'm';
        else
            widths[widest]--;
    }
}

static void add_cell(struct buf *out, const char *cell, unsigned width, char align, bool last)
{
    size_t bytes;
    unsigned w = text_width(cell, width, &bytes);
    bool cut = cell[bytes] != '\0';

    if (cut) { /* a mark in the last column says so */
        w = text_width(cell, width - 1, &bytes) + 1;
    }
    for (unsigned i = w; align == 'r' && i < width; i++)
        buf_add_char(out, ' ');
    buf_add(out, cell, bytes);
    if (cut)
        buf_add_char(out, '~');
    for (unsigned i = w; align != 'r' && !last && i < width; i++)
        buf_add_char(out, ' ');
}

void cli_table_print(struct cli_table *t, struct buf *out)
{
    unsigned *widths = xcalloc(t->columns, sizeof(*widths));
    size_t bytes;

    for (size_t i = 0; i < t->n; i++) {
        unsigned w = text_width(t->cells[i], UINT_MAX, &bytes);
        if (w > widths[i % t->columns])
            widths[i % t->columns] = w;
    }
    fit(t, widths);
    for (size_t i = 0; i < t->n; i++) {
        size_t c = i % t->columns;
        if (c)
            buf_add_str(out, "  ");
        add_cell(out, t->cells[i], widths[c], t->align[c], c + 1 == t->columns);
        if (c + 1 == t->columns) {
            while (out->n && out->p[out->n - 1] == ' ')
                out->p[--out->n] = '\0';
            buf_add_char(out, '\n');
        }
        free(t->cells[i]);
    }
    free(widths);
    free(t->cells);
    free(t->align);
    free(t);
}
