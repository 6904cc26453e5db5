/* Starts at which the store cannot be opened: told to every destination of alerts before the process ends. A supervisor
 * starts it again and again: a stamp, an empty file in spool.dir or beside the socket, keeps that from being told more
 * often than alerts.repeat says; what arrived nowhere is told again after a minute. */
#ifndef DAEMON_UNSTARTED_H
#define DAEMON_UNSTARTED_H

#include <stdbool.h>

#include "base/err.h"

struct config;
struct setup;

/* e: why the store was not opened. Takes at most 15 s; 75 s for damage and a wrong configuration, if it arrives nowhere. That another process has it open is no alert. */
void unstarted_tell(struct setup *s, const struct err *e);
/* The store is open: whether that was told to be impossible before. Forgets it. */
bool unstarted_is_over(const struct config *c);

#endif
