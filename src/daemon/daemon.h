/* The daemon: everything put together around one loop (design.md section 6). */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "base/err.h"

/* Runs in the foreground until SIGTERM or SIGINT (a second one ends it at once). SIGHUP reloads the
 * configuration, SIGUSR1 writes a line of status to the log. Returns 0 after an orderly end, else -1 and e.
 */
int daemon_run(const char *config_path, struct err *e);

#endif
