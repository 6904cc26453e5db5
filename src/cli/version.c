/* tgspool version */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/command.h"

static int run_version(struct cli *cli, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (cli->json)
        cli_print("{\"version\":\"%s\"}\n", PACKAGE_VERSION);
    else
        cli_print("tgspool %s\n", PACKAGE_VERSION);
    return cli_finish(EX_OK);
}

const struct command command_version = {
    .name = "version",
    .arguments = "",
    .summary = "which version this is",
    .usage = "Prints the version.\n",
    .run = run_version,
};
