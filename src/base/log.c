#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

void log_write(enum log_level level, const char *bot, const char *fmt, ...)
{
    struct buf raw = BUF_EMPTY, text = BUF_EMPTY, line = BUF_EMPTY;
    char when[32];
    va_list ap;

    if (!log_enabled(level))
        return;
    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    log_redact(&raw);
    text_add_clean(&text, buf_slice(&raw), 4096, false);

    if (the_log.journald)
        buf_printf(&line, "<%d>", level_priorities[level]);
    if (the_log.format == LOG_JSON) {
        buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",", text_time(clock_wall_ms(), when),
                   level_names[level]);
        if (bot)
            buf_printf(&line, "\"bot\":\"%s\",", bot);
        buf_add_str(&line, "\"msg\":");
        add_json_string(&line, buf_slice(&text));
        buf_add_str(&line, "}\n");
    } else {
        if (!the_log.journald)
            buf_printf(&line, "%s ", text_time(clock_wall_ms(), when));
        buf_printf(&line, "%-5s %s%s%s\n", level_names[level], bot ? bot : "", bot ? ": " : "",
                   buf_str(&text));
    }
    ssize_t n = write(STDERR_FILENO, line.p, line.n); /* one write a line: lines of processes do not mix */
    (void)n;
    buf_free(&raw);
    buf_free(&text);
    buf_free(&line);
}
