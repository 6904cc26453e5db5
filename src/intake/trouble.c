/* When to say that something is still wrong. */
#include "intake/trouble.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

/* Between one line and the next; the last repeats. */
static const int64_t line_gaps[] = {MINUTES(1), MINUTES(5), MINUTES(15), HOURS(1)};

void trouble_met(struct trouble *t, const char *bot, int kind, const char *sentence, int64_t wait_ms,
                 int64_t now)
{
    char age[32], wait[32];
    unsigned run = trouble_run(t, kind);

    if (!t->since) {
        *t = (struct trouble){.since = now, .kind = kind, .next_line_at = now};
    } else if (kind != t->kind) {
        t->kind = kind;
        t->next_line_at =
            t->told_at + SECONDS(10); /* at once, but two that alternate shall not fill the log */
    }
    t->run = run;
    t->tries++;
    snprintf(t->text, sizeof(t->text), "%s", sentence);
    if (now < t->next_line_at)
        return;
    t->next_line_at = now + line_gaps[t->lines < ARRAY_LEN(line_gaps) ? t->lines : ARRAY_LEN(line_gaps) - 1];
    t->lines++;
    t->told_at = now;
    text_age(wait_ms, wait);
    if (t->tries == 1)
        log_warn(bot, "intake fails: %s; next try in %s", t->text, wait);
    else
        log_warn(bot, "intake fails for %s: %s; next try in %s", text_age(now - t->since, age), t->text,
                 wait);
}

unsigned trouble_run(const struct trouble *t, int kind)
{
    return t->since && t->kind == kind ? t->run + 1 : 1;
}

void trouble_over(struct trouble *t, const char *bot, int64_t now)
{
    char age[32];

    if (!t->since)
        return;
    log_info(bot, "intake works again: after=%s tries=%u", text_age(now - t->since, age), t->tries);
    *t = (struct trouble){.since = 0};
}
