/* The log, on standard error: TIME LEVEL [BOT: ]MESSAGE in lines of at most LOG_COLUMNS, or one JSON object a
 * line. What is registered as a secret, and whatever looks like a Telegram token, never comes out. No payload and
 * no handler's text may be given to it. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/bytes.h"

#define LOG_COLUMNS 100

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

/* Level and format may be changed at any time. `journald`: lines get a <N> priority in front (sd-daemon(3)), and
 * those of text no time, which the journal has. */
void log_setup(enum log_level level, enum log_format format, bool journald);
bool log_enabled(enum log_level level);

/* Remembers a secret (copied) of at least 6 bytes that is replaced in every line by "<secret>". */
void log_add_secret(struct slice secret);
void log_forget_secrets(void);
/* Appends text to out with secrets and tokens replaced; for what is shown elsewhere than in the log. */
struct buf;
void log_redact(struct buf *text);

/* Writes one message. `bot` is the bot's name or NULL. The text is a plain sentence, starting with what happened;
 * figures that one may look for stand at its end as name=value, and a warning ends with the next command. Up to
 * about 60 characters, what is filled in included, fit on a line; what does not goes on on the next, with the
 * same head, after "...". Lint takes at most 140. Control characters come out as blanks. */
void log_write(enum log_level level, const char *bot, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(bot, ...) log_write(LOG_ERROR, bot, __VA_ARGS__)
#define log_warn(bot, ...) log_write(LOG_WARN, bot, __VA_ARGS__)
#define log_info(bot, ...) log_write(LOG_INFO, bot, __VA_ARGS__)
#define log_debug(bot, ...)                         \
    do {                                            \
        if (log_enabled(LOG_DEBUG))                 \
            log_write(LOG_DEBUG, bot, __VA_ARGS__); \
    } while (0)

#endif
