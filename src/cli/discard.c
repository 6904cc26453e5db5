/* tgspool discard */
#include "cli/act.h"
#include "cli/request.h"

static int run_discard(struct cli *cli, int argc, char **argv)
{
    return act_run(cli, argc, argv, "discard", "discarded");
}

static const struct cli_option options[] = {
    FILTER_OPTIONS,
    {"all", NULL, "all that wait"},
    {"dry-run", NULL, "only count"},
    {"force", NULL, "also what is being processed: its handler is ended"},
    {NULL, NULL, NULL}};

const struct command command_discard = {
    .name = "discard",
    .arguments = "BOT/ID... | [BOT] FILTERS | [BOT] --all",
    .summary = "give up waiting events: they become dead",
    .usage = "Makes waiting events dead (reason: discarded), so that they are not handed to\n"
             "the handler. They are kept, and can be replayed. Dead ones, where an id or\n"
             "--state dead names them, are taken out of the warnings.\n"
             "A bot's name beside filters or --all means --bot.\n",
    .options = options,
    .max_arguments = -1,
    .run = run_discard,
};
