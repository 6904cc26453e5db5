/* The slots of one box: as many as its concurrency. Each tick claims events for the free ones and hands them
 * to the bot's deliverer (exec, worker or http; of a box out: call), which ends each try with an outcome. */
#ifndef DELIVER_SLOTS_H
#define DELIVER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"

struct children;
struct loop;
struct slots;
struct spool_box;

/* bot is copied as far as needed; it may be of any deliver mode: with `pull` nothing is claimed. url_secret:
 * what the bot's url_secret_file holds, copied; NULL: none. The bot's token_env is hidden from all children
 * from now on. Returns NULL and e (EX_CONFIG) if the deliverer cannot be made. */
struct slots *slots_new(struct loop *l, struct spool_box *box, const struct bot_config *bot,
                        const char *url_secret, struct err *e);
/* From now on its children are counted there, and start only as far as that allows. children is borrowed. To be
 * called before the first tick; without it there is no limit but the concurrency. */
void slots_limit_children(struct slots *s, struct children *children);
/* Of a bot's box out: its calls are sent to the Bot API. All is copied but for reread_arg, which must outlive the
 * slots. */
struct slots_calls {
    const struct bot_config *bot; /* api_root, ca_file, ip, shutdown_wait */
    const char *token;
    const char *proxy_url; /* NULL: direct */
    /* Reads the token's file anew, after Telegram refused the token. Returns 0, or -1 and e. */
    int (*reread_token)(void *arg, struct buf *out, struct err *e);
    void *reread_arg;
};
struct slots *slots_new_calls(struct loop *l, struct spool_box *out, const struct slots_calls *c,
                              struct err *e);
/* As slots_reconfigure. */
int slots_reconfigure_calls(struct slots *s, const struct slots_calls *c, struct err *e);

/* In each tick, between spool_work and spool_commit. */
void slots_tick(struct slots *s);
/* When slots_tick has something to do even if nothing else happens; TIME_NEVER: nothing. */
int64_t slots_next_deadline(const struct slots *s);

/* A new configuration of the bot. What runs goes on under the old one; no claim is made for the new one as
 * long as old work and new would be more than its concurrency. Returns 0, or -1 and e with nothing changed.
 */
int slots_reconfigure(struct slots *s, const struct bot_config *bot, const char *url_secret, struct err *e);

/* Nothing is claimed any more, idle workers end. What still runs after shutdown_wait is ended (SIGTERM, 5 s,
 * SIGKILL) and released. Done when slots_idle. */
void slots_shutdown(struct slots *s);
/* Whether no event is held and nothing runs. */
bool slots_idle(const struct slots *s);
unsigned slots_busy(const struct slots *s); /* events held */

/* Ends the try of this event, for a forced discard: when nothing of it runs any more it is completed as
 * discarded, unless it ended before by the handler's own word (done, rejected). Returns whether it was held here. */
bool slots_kill_event(struct slots *s, uint64_t seq);

/* Kills what runs, without outcomes. */
void slots_free(struct slots *s);

#endif
