/* tgspool alert-test */
#include <stdlib.h>

#include "base/clock.h"
#include "cli/show.h"
#include "daemon/alerting.h"

/* Longer than a command's 30 seconds and what it takes to end it. */
#define PATH "/v1/alert-test?wait=40"

/* By the daemon, which may reach what this user may not read; or, when none runs, by this process. */
static int ask(const struct cli *cli, struct answer *a, struct err *e)
{
    struct request *q = request_open(cli, NEED_DAEMON, e);

    *a = (struct answer){.status = 200};
    if (q) {
        int rc = request_send(q, "POST", PATH, slice_str("{}"), a, e);
        request_close(q);
        return rc;
    }
    if (e->exit_code != EX_UNAVAILABLE || cli->socket_path)
        return -1;
    *e = ERR_NONE;
    if (alerting_test(cli->config_path, &a->body, e) < 0)
        return -1;
    a->root = json_parse(buf_slice(&a->body), NULL);
    return 0;
}

/* One line each. Returns how many did not get it. */
static unsigned show(const struct cli *cli, const struct json *all)
{
    unsigned failed = 0;

    for (size_t i = 0; i < json_length(all); i++) {
        const struct json *d = json_item(all, i);
        char *name = show_text(d, "name"), *why = show_text(d, "why");
        bool delivered = json_true(json_get(d, "delivered"));
        failed += !delivered;
        if (!cli->json)
            cli_print("%-9s %s%s\n", name, delivered ? "delivered" : "FAILED: ", why);
        free(name);
        free(why);
    }
    return failed;
}

static int run_alert_test(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct answer a;

    (void)argc;
    (void)argv;
    if (ask(cli, &a, &e) < 0)
        return cli_fail_err(&e);
    const struct json *all = json_get(a.root, "destinations");
    unsigned failed = show(cli, all);
    if (cli->json)
        show_json(&a);
    int rc = failed ? EX_UNAVAILABLE : EX_OK;
    if (json_length(all) == 0)
        rc = cli_fail(EX_CONFIG,
                      "alerts go nowhere: name a command, url_file or telegram in the section alerts of %s",
                      cli->config_path);
    answer_clear(&a);
    return cli_finish(rc);
}

const struct command command_alert_test = {
    .name = "alert-test",
    .arguments = "",
    .summary = "send a test alert to every destination",
    .usage = "Sends a test alert to each destination that the section alerts of the config\n"
             "names, once, and says of each whether it was delivered. The daemon does it if\n"
             "one runs, with the configuration that it runs by; else this command itself.\n",
    .max_arguments = 0,
    .run = run_alert_test,
};
