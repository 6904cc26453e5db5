/* The control interface: how tests steer the server. Documented in control.c. */
#ifndef BOTAPI_CONTROL_H
#define BOTAPI_CONTROL_H

#include "conn.h"

/* Answers a request on the path behind "/control/". Returns as conn_reply. */
int control_serve(struct conn *c, struct slice path);

/* Queues count varied updates of the first bot, over so many chats. */
void control_generate_varied(unsigned count, unsigned chats);

#endif
