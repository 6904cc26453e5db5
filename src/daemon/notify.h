/* Telling systemd how the service stands: the datagrams of sd_notify(3), written by hand. Without
 * NOTIFY_SOCKET in the environment all of it does nothing. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and takes them out of the environment, so that no
 * child answers in our place. */
void notify_init(void);
void notify_ready(void);
void notify_reloading(void); /* to be followed by notify_ready */
void notify_stopping(void);
void notify_status(const char *sentence);
void notify_watchdog(void);
/* Asks for more time to stop, or to start. */
void notify_extend_timeout(int64_t ms);
/* How often notify_watchdog is to be called, at half of the time allowed; 0: no watchdog. */
int64_t notify_watchdog_ms(void);

#endif
