/* tgspool replay */
#include "cli/act.h"
#include "cli/request.h"

static int run_replay(struct cli *cli, int argc, char **argv)
{
    return act_run(cli, argc, argv, "replay", "replayed");
}

static const struct cli_option options[] = {
    FILTER_OPTIONS, {"all", NULL, "all dead events"}, {"dry-run", NULL, "only count"}, {NULL, NULL, NULL}};

const struct command command_replay = {
    .name = "replay",
    .arguments = "BOT/ID... | [BOT] FILTERS | [BOT] --all",
    .summary = "hand ended events to the handler again",
    .usage = "Puts copies of ended events at the end of their lanes. Filters mean dead events\n"
             "unless --state says otherwise, and leave out what was replayed before.\n"
             "A bot's name beside filters or --all means --bot.\n",
    .options = options,
    .max_arguments = -1,
    .run = run_replay,
};
