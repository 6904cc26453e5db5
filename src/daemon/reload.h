/* Going over to a configuration, at the start and on SIGHUP: all or nothing. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include <stdbool.h>

#include "base/err.h"

struct bots;
struct setup;
struct watching;

/* Makes the bots run by this setup, which is taken if it succeeds: new ones start, those whose section is
 * gone end their work, the others go on under what is new. Otherwise -1 and e, everything is as before, and
 * the setup is still the caller's. Between spool_begin and spool_commit. */
int reload_apply(struct bots *b, struct setup *s, struct err *e);

/* Reads the config file again and goes over to it; says in the log how that went. Returns whether it did. */
bool reload_from_file(struct bots *b, struct watching *w, const char *path);

#endif
