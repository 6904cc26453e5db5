#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"

static struct {
    enum log_level level;
    enum log_format format;
    bool journald;
    struct buf *secrets;
    size_t n_secrets;
} the_log = {LOG_INFO, LOG_TEXT, false, NULL, 0};

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const int level_priorities[] = {3, 4, 6, 7}; /* syslog(3) */

void log_setup(enum log_level level, enum log_format format, bool journald)
{
    the_log.level = level;
    the_log.format = format;
    the_log.journald = journald;
}

bool log_enabled(enum log_level level)
{
    return level <= the_log.level;
}

void log_add_secret(struct slice secret)
{
    if (secret.n < 6)
        return;
    for (size_t i = 0; i < the_log.n_secrets; i++)
        if (slice_eq(buf_slice(&the_log.secrets[i]), secret))
            return;
    the_log.secrets = xrealloc(the_log.secrets, (the_log.n_secrets + 1) * sizeof(*the_log.secrets));
    struct buf *b = &the_log.secrets[the_log.n_secrets++];
    *b = BUF_EMPTY;
    buf_add_slice(b, secret);
}

void log_forget_secrets(void)
{
    for (size_t i = 0; i < the_log.n_secrets; i++)
        buf_free(&the_log.secrets[i]);
    free(the_log.secrets);
    the_log.secrets = NULL;
    the_log.n_secrets = 0;
}

static void replace_all(struct buf *text, struct slice what, const char *by)
{
    struct buf out = BUF_EMPTY;
    const char *p = text->p, *end = text->p + text->n, *hit;

    if (!text->n || !memmem(p, text->n, what.p, what.n))
        return;
    while ((hit = memmem(p, (size_t)(end - p), what.p, what.n)) != NULL) {
        buf_add(&out, p, (size_t)(hit - p));
        buf_add_str(&out, by);
        p = hit + what.n;
    }
    buf_add(&out, p, (size_t)(end - p));
    buf_free(text);
    *text = out;
}

void log_redact(struct buf *text)
{
    for (size_t i = 0; i < the_log.n_secrets; i++)
        replace_all(text, buf_slice(&the_log.secrets[i]), "<secret>");
    text_scrub_tokens(text);
}

static void add_json_string(struct buf *line, struct slice s)
{
    buf_add_char(line, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"' || s.p[i] == '\\')
            buf_add_char(line, '\\');
        buf_add_char(line, s.p[i]);
    }
    buf_add_char(line, '"');
}

static void add_json(struct buf *out, enum log_level level, const char *bot, struct slice text)
{
    char when[32];

    if (the_log.journald)
        buf_printf(out, "<%d>", level_priorities[level]);
    buf_printf(out, "{\"time\":\"%s\",\"level\":\"%s\",", text_time(clock_wall_ms(), when),
               level_names[level]);
    if (bot)
        buf_printf(out, "\"bot\":\"%s\",", bot);
    buf_add_str(out, "\"msg\":");
    add_json_string(out, text);
    buf_add_str(out, "}\n");
}

/* How many bytes of text go on a line of so many columns: up to the last blank, or the last that follows a
 * stop if the line is half full then; a word that is wider is cut. */
static size_t take_line(struct slice text, size_t columns)
{
    size_t n = 0, blank = 0, stop = 0, used = 0;

    while (n < text.n && used < columns) {
        if (text.p[n] == ' ' && n) {
            blank = n;
            if (strchr(";:,.", text.p[n - 1]) && used >= columns / 2)
                stop = n;
        }
        n += text_utf8_len(text.p + n, text.n - n);
        used++;
    }
    if (n == text.n || text.p[n] == ' ')
        return n;
    return stop ? stop : blank ? blank : n;
}

/* The same head on each line, so that each can be found by level and bot. The later ones go on after "...": with a
 * blank there was one, without it a word was cut. */
static void add_lines(struct buf *out, enum log_level level, const char *bot, struct slice text)
{
    struct buf head = BUF_EMPTY;
    char when[32];

    if (!the_log.journald)
        buf_printf(&head, "%s ", text_time(clock_wall_ms(), when));
    buf_printf(&head, "%-5s %s%s", level_names[level], bot ? bot : "", bot ? ": " : "");
    while (text.n && text.p[text.n - 1] == ' ')
        text.n--;
    for (const char *more = "";; more = "...") {
        size_t n = take_line(text, LOG_COLUMNS - head.n - strlen(more));
        if (the_log.journald)
            buf_printf(out, "<%d>", level_priorities[level]);
        buf_add_slice(out, buf_slice(&head));
        buf_add_str(out, more);
        buf_add(out, text.p, n);
        buf_add_char(out, '\n');
        text = slice_make(text.p + n, text.n - n);
        if (!text.n)
            break;
    }
    buf_free(&head);
}

void log_write(enum log_level level, const char *bot, const char *fmt, ...)
{
    struct buf raw = BUF_EMPTY, text = BUF_EMPTY, out = BUF_EMPTY;
    va_list ap;

    if (!log_enabled(level))
        return;
    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    log_redact(&raw);
    text_add_clean(&text, buf_slice(&raw), 4096, false);
    if (the_log.format == LOG_JSON)
        add_json(&out, level, bot, buf_slice(&text));
    else
        add_lines(&out, level, bot, buf_slice(&text));
    ssize_t n = write(STDERR_FILENO, out.p, out.n); /* one write: lines of processes do not mix */
    (void)n;
    buf_free(&raw);
    buf_free(&text);
    buf_free(&out);
}
