/* A small HTTP server in a process of its own, for tests of what asks one. */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Handles one request (head and body); runs in the server's process. Returns whether the connection stays. */
typedef bool server_fn(int fd, struct buf *request);

/* On 127.0.0.1; 0 or -1. */
int server_start(server_fn *fn, uint16_t *port);
void server_stop(void);

/* For handlers. */
void server_send(int fd, const char *text);
void server_answer(int fd, int status, const char *type, const char *more_headers, const char *body);
void server_reset(int fd); /* closing it will be a reset */

#endif
