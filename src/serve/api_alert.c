/* POST /v1/alert-test: a test alert to every destination of alerts, answered when all have answered. */
#include "base/clock.h"
#include "serve/api_call.h"

#define WAIT_MAX SECONDS(60)
#define WAIT_DEFAULT SECONDS(40) /* longer than any destination may take */

/* The answer was given, or the client went away. */
static void drop_trial(struct api_call *c)
{
    c->api->hooks.alert_test_end(c->state);
}

static void told(void *arg, struct slice json)
{
    api_answer(arg, 200, json);
}

void api_alert_test(struct api_call *c, const struct api_request *r, const struct params *p)
{
    const struct api_hooks *hooks = &c->api->hooks;
    int64_t wait = WAIT_DEFAULT;
    struct param_error e;
    char why[256] = "";

    (void)r;
    if (params_ms(p, "wait", SECONDS(1), WAIT_MAX, &wait, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    void *trial = hooks->alert_test ? hooks->alert_test(hooks->alert_arg, wait, told, c, why) : NULL;
    if (!trial) {
        api_fail(c, 503, "unavailable", "alerts cannot be sent: %s",
                 why[0] ? why : "the daemon does that; start it: tgspool run");
        return;
    }
    c->state = trial;
    c->drop = drop_trial;
}
