/* The destinations of alerts as a setup names them; and alerts that are sent without the rest of the daemon: at a start
 * that fails, and by `tgspool alert-test`. */
#ifndef DAEMON_ALERTING_H
#define DAEMON_ALERTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct alert;
struct alert_post;
struct alert_trial;
struct alert_policy;
struct loop;
struct setup;

/* See alert_post_new. current: where the setup in force is found at any later time, of which a refused token is read
 * anew. */
struct alert_post *alerting_post(struct loop *l, const struct setup *s, struct setup *const *current,
                                 bool once, struct err *e);
void alerting_policy(const struct setup *s, struct alert_policy *out);

/* Sends one alert to every destination, and waits for that at most `ms`; runs a loop of its own. Says in the log where
 * it did not arrive. Returns whether it arrived anywhere, or there is nowhere to send
 * it. */
bool alerting_send_now(struct setup *s, const struct alert *a, int64_t ms);

/* A test alert to every destination, on a running loop. told is called once, from the loop, when all have answered or
 * wait_ms are over, with
 *     {"destinations":[{"name","delivered": bool,"why": sentence or null}]}
 * Returns NULL and e where a destination cannot be used at all. */
typedef void alert_told_fn(void *arg, struct slice json);
struct alert_trial *alert_trial_new(struct loop *l, struct setup *const *s, int64_t wait_ms,
                                    alert_told_fn *told, void *arg, struct err *e);
void alert_trial_free(struct alert_trial *t); /* before or inside told; NULL is harmless */

/* The same in this process alone, for when no daemon runs. Returns 0 and the JSON, or -1 and e. */
int alerting_test(const char *config_path, struct buf *json, struct err *e);

#endif
