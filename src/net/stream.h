/* A connection: one object over a connected descriptor, in plain or by TLS behind the same few operations. It
 * reads into a buffer, writes from a queue, and tells its owner by one callback taking an event. */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

struct loop;
struct stream;

enum stream_event {
    STREAM_READY,   /* the handshake of stream_secure ended well */
    STREAM_DATA,    /* stream_in grew */
    STREAM_DRAINED, /* everything given to stream_write was handed to the kernel */
    STREAM_EOF,     /* the peer will send no more; writing goes on */
    STREAM_FAILED,  /* broken: stream_error says how. Nothing comes after it; close it */
};

/* Events come from the loop only, never from inside a call of this module. The callback may close the stream.
 */
typedef void stream_fn(void *arg, struct stream *s, enum stream_event ev);

/* Takes fd, which must be connected and non-blocking. */
struct stream *stream_new(struct loop *l, int fd, stream_fn *fn, void *arg);
/* From here on events go to another owner. */
void stream_set_owner(struct stream *s, stream_fn *fn, void *arg);
/* Closes the descriptor at once and forgets what was not written; the memory goes at the end of the loop's
 * turn, so that s may still be looked at inside its own callback. No event comes any more. NULL is harmless.
 */
void stream_close(struct stream *s);

/* Closes so that the peer sees a failure (a reset), not an end. */
void stream_abort(struct stream *s);

/* What was read and not yet taken: the owner takes bytes by buf_drop or buf_clear, in the callback. One who
 * takes them later calls stream_resume after it. */
struct buf *stream_in(struct stream *s);
/* Reading stops while `max` bytes wait in stream_in (at first 256 KiB). */
void stream_set_in_max(struct stream *s, size_t max);
/* Buffers of up to so many bytes are kept while they are empty, which is for connections that carry much (at
 * first 0: nearly all are idle nearly all the time). */
void stream_keep_buffers(struct stream *s, size_t bytes);
/* Reading stops until stream_resume; neither data nor the peer's end is noticed meanwhile. */
void stream_pause(struct stream *s);
void stream_resume(struct stream *s);

/* Queues bytes (copied); as much as the kernel takes is written at once. After stream_end: ignored. */
void stream_write(struct stream *s, struct slice bytes);
/* Queues bytes that go out with those of the next stream_write. */
void stream_prepare(struct stream *s, struct slice bytes);
size_t stream_queued(const struct stream *s);   /* bytes not yet handed to the kernel */
size_t stream_out_held(const struct stream *s); /* memory that these take; 0 if there are none */
/* Half-close: once the queue is written the peer is told that no more comes. Reading goes on. */
void stream_end(struct stream *s);

/* After STREAM_FAILED: a few words such as "connection reset by peer", and its errno (0 if it was not one).
 */
const char *stream_error(const struct stream *s);
int stream_errno(const struct stream *s);
int stream_fd(const struct stream *s);

/* ---- for the kinds of connection ---------------------------------------------------------------- */

/* What an operation returns beside a count of bytes. */
enum { STREAM_AGAIN = -1, STREAM_BROKEN = -2 };

/* One kind of connection. An operation that cannot go on returns STREAM_AGAIN and sets *want to the IO_ bit
 * that it waits for; a broken one returns STREAM_BROKEN and calls stream_set_error. */
struct stream_ops {
    int (*handshake)(struct stream *s, void *state, int *want); /* 0: done. NULL: there is none */
    ssize_t (*read)(struct stream *s, void *state, void *p, size_t n, int *want); /* 0: the peer's end */
    ssize_t (*write)(struct stream *s, void *state, const void *p, size_t n, int *want);
    int (*end)(struct stream *s, void *state, int *want); /* tells the peer that no more comes; 0: done */
    void (*free)(void *state);
};

/* Puts another kind on top of the descriptor, and starts its handshake. Nothing may wait in either direction.
 * Takes state. */
void stream_secure(struct stream *s, const struct stream_ops *ops, void *state);
void stream_set_error(struct stream *s, int err_no, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
