#include "ops/alert_post.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

enum { COMMAND, URL, TELEGRAM };

struct alert_post {
    struct alert_sender *sender[ALERT_DESTINATIONS]; /* NULL: not configured */
};

static void add(struct alert_post *p, int i, struct loop *l, struct alert_channel *c, bool once)
{
    p->sender[i] = alert_sender_new(l, c, once);
}

struct alert_post *alert_post_new(struct loop *l, const struct alert_destinations *d, bool once,
                                  struct err *e)
{
    struct alert_channel *url = NULL, *telegram = NULL;

    if (d->url) {
        url = alert_url_new(l, d->url, d->proxy_url, e);
        if (!url)
            return NULL;
    }
    if (d->telegram) {
        telegram = alert_telegram_new(l, d->telegram, e);
        if (!telegram) {
            if (url)
                url->free(url);
            return NULL;
        }
    }
    struct alert_post *p = xcalloc(1, sizeof(*p));
    if (d->command)
        add(p, COMMAND, l, alert_command_new(l, d->command), once);
    if (url)
        add(p, URL, l, url, once);
    if (telegram)
        add(p, TELEGRAM, l, telegram, once);
    return p;
}

void alert_post_free(struct alert_post *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < ALERT_DESTINATIONS; i++)
        alert_sender_free(p->sender[i]);
    free(p);
}

void alert_post_take(struct alert_post *p, struct alert_post *before)
{
    for (size_t i = 0; before && i < ALERT_DESTINATIONS; i++)
        if (p->sender[i] && before->sender[i])
            alert_sender_take(p->sender[i], before->sender[i]);
    alert_post_free(before);
}

/* The message may have been made of an error's text: it is checked as a line of the log is. */
static void clean(struct alert *a)
{
    struct buf raw = BUF_EMPTY, text = BUF_EMPTY;

    buf_add_str(&raw, a->message);
    log_redact(&raw);
    text_add_clean(&text, buf_slice(&raw), sizeof(a->message) - 1, false);
    snprintf(a->message, sizeof(a->message), "%s", buf_str(&text));
    buf_free(&raw);
    buf_free(&text);
}

void alert_post_add(struct alert_post *p, const struct alert *a)
{
    struct alert copy = *a;

    clean(&copy);
    for (size_t i = 0; i < ALERT_DESTINATIONS; i++)
        if (p->sender[i])
            alert_sender_add(p->sender[i], &copy);
}

bool alert_post_idle(const struct alert_post *p)
{
    for (size_t i = 0; i < ALERT_DESTINATIONS; i++)
        if (p->sender[i] && !alert_sender_idle(p->sender[i]))
            return false;
    return true;
}

size_t alert_post_results(const struct alert_post *p, struct alert_result out[ALERT_DESTINATIONS])
{
    size_t n = 0;

    for (size_t i = 0; i < ALERT_DESTINATIONS; i++)
        if (p->sender[i])
            alert_sender_result(p->sender[i], &out[n++]);
    return n;
}
