/* All destinations of alerts together: an alert goes to each of them. */
#ifndef OPS_ALERT_POST_H
#define OPS_ALERT_POST_H

#include "base/err.h"
#include "ops/alert_channels.h"

#define ALERT_DESTINATIONS 3

/* All borrowed for the call of alert_post_new. */
struct alert_destinations {
    char *const *command;                          /* NULL: none */
    const char *url;                               /* NULL: none */
    const struct alert_telegram_options *telegram; /* NULL: none */
    const char *proxy_url;                         /* for url; NULL: direct */
};

struct alert_post;

/* once: see alert_sender_new. Returns NULL and e if a URL is wrong, or a CA file cannot be read. */
struct alert_post *alert_post_new(struct loop *l, const struct alert_destinations *d, bool once,
                                  struct err *e);
/* Ends what is under way; what waits is lost. */
void alert_post_free(struct alert_post *p);
/* Takes over what waits at `before` for destinations that are still there, and frees it. before may be NULL. */
void alert_post_take(struct alert_post *p, struct alert_post *before);
/* Secrets and tokens that its texts hold by mistake are taken out. */
void alert_post_add(struct alert_post *p, const struct alert *a);
/* Nothing waits or is under way. */
bool alert_post_idle(const struct alert_post *p);
/* How the latest try of each ended; returns how many there are. */
size_t alert_post_results(const struct alert_post *p, struct alert_result out[ALERT_DESTINATIONS]);

#endif
