/* What replay and discard have in common. */
#ifndef CLI_ACT_H
#define CLI_ACT_H

#include "cli/command.h"

/* verb: "replay"; past: "replayed", as the api counts. */
int act_run(struct cli *cli, int argc, char **argv, const char *verb, const char *past);

#endif
