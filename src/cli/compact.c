/* tgspool compact */
#include <stdlib.h>

#include "base/text.h"
#include "cli/show.h"

#define PATH "/v1/compact?wait=20"

static void show(const struct answer *a)
{
    char before[32], after[32];

    cli_print("the database had %s, and has %s now\n", text_bytes(show_number(a->root, "before"), before),
              text_bytes(show_number(a->root, "after"), after));
}

static int run_compact(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct answer a;
    struct request *q = request_open(cli, NEED_SPOOL, &e);

    (void)argc;
    (void)argv;
    if (!q)
        return cli_fail_err(&e);
    int rc = request_send(q, "POST", PATH, slice_str("{}"), &a, &e);
    while (rc == 0 && a.status == 202) { /* it goes on, whoever waits */
        answer_clear(&a);
        if (!cli->json)
            cli_warn(NULL,
                     "still at work, for which the disk needs room; ending this command does not end it");
        rc = request_send(q, "GET", PATH, slice_str(""), &a, &e);
    }
    if (rc < 0)
        return show_failure(q, &e);
    if (cli->json)
        show_json(&a);
    else
        show(&a);
    answer_clear(&a);
    request_close(q);
    return cli_finish(EX_OK);
}

const struct command command_compact = {
    .name = "compact",
    .arguments = "",
    .summary = "give the room of what was removed back to the disk",
    .usage = "Rewrites the database's files without what was removed from them, and says how\n"
             "large they were and are. A running daemon does it in the background, at its\n"
             "work; it does so now and then by itself. Ending this command does not end it.\n"
             "While it works it needs free room, at most 200 MB.\n",
    .max_arguments = 0,
    .run = run_compact,
};
