/* A spool that stands still while a command reads it: a checkpoint that the running daemon made, or, when none runs, the
 * spool's own directory, locked. */
#ifndef CLI_STILL_H
#define CLI_STILL_H

#include "cli/command.h"

struct still;

/* Returns NULL and e: EX_NOPERM also where the daemon made a checkpoint that this user may not read. */
struct still *still_open(const struct cli *cli, struct err *e);
/* Removes the checkpoint, or lets go the lock. */
void still_close(struct still *s); /* harmless with NULL */

const char *still_dir(const struct still *s);
bool still_by_daemon(const struct still *s);

#endif
