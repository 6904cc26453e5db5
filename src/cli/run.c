/* tgspool run */
#include "cli/command.h"
#include "daemon/daemon.h"

static int run_run(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;

    (void)argc;
    (void)argv;
    if (cli->socket_path)
        return cli_fail(EX_USAGE, "run takes its socket from the config: set listen.socket there");
    if (cli->json)
        return cli_fail(EX_USAGE,
                        "run gives no answer; for a log in JSON, set log.format: json in the config");
    if (daemon_run(cli->config_path, &e) == 0)
        return EX_OK;
    cli_fail_err(&e);
    if (e.exit_code == EX_TEMPFAIL) /* another one runs */
        cli_next(cli, "status");
    else if (e.exit_code == EX_NOPERM || e.exit_code == EX_CANTCREAT || e.exit_code == EX_NOINPUT ||
             e.exit_code == EX_IOERR)
        cli_next(cli, "check");
    return e.exit_code ? e.exit_code : EX_SOFTWARE;
}

const struct command command_run = {
    .name = "run",
    .arguments = "[-c FILE]",
    .summary = "the daemon, in the foreground",
    .usage = "Takes updates and hands them to the handlers until SIGTERM or SIGINT (Ctrl-C).\n"
             "It never forks away; its log goes to standard error. SIGHUP reloads the config.\n",
    .max_arguments = 0,
    .run = run_run,
};
