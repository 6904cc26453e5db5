/* The server's inside: what listening (http_server.c), the connection (http_conn.c), reading (http_read.c)
 * and answering (http_reply.c) share; for those only. */
#ifndef NET_HTTP_CONN_H
#define NET_HTTP_CONN_H

#include "base/list.h"
#include "net/http_server.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls.h"

#define HTTP_READ_AHEAD 4096 /* bytes read ahead of the request under way */
/* Less than this within body_timeout_ms is no progress. */
#define HTTP_PIECE 1024

struct http_server {
    struct loop *loop;
    struct http_server_options o; /* its strings are not kept */
    http_request_fn *fn;
    void *arg;
    struct listen_unix unix_socket;
    uint16_t port;
    int fd; /* -1: no longer listening */
    struct io *io;
    struct timer accept_again;
    struct list conns;           /* those that wait for a request stand in the order in which they began to */
    unsigned n_conns, n_shaking; /* of which in SHAKE */
    size_t held, unread;         /* sums over the connections */
    struct list exchanges;       /* begun and not answered yet */
};

enum http_conn_state { CONN_SHAKE, CONN_READ, CONN_OPEN, CONN_WRITE, CONN_LINGER, CONN_CLOSED };

struct http_conn {
    struct list link;
    struct http_server *server;
    struct stream *stream;
    struct http_parser *parser;     /* NULL while no byte of a request was read */
    struct http_exchange *exchange; /* in OPEN */
    enum http_conn_state state;
    bool advancing;    /* http_conn_advance is at work further up the stack */
    bool too_many;     /* beyond the cap: gets a 503 as soon as it can be told */
    bool eof;          /* the client sends no more */
    bool keep;         /* in WRITE: READ comes after it, else LINGER */
    int64_t since;     /* in SHAKE and READ: when that began */
    uint64_t lingered; /* bytes thrown away */
    uint64_t written;  /* bytes ever given to the stream */
    size_t held;       /* as counted in server->held */
    size_t unread;     /* memory of its answer that was not taken, as counted in server->unread, ... */
    int64_t unread_since, unread_looked; /* ... since when; and when its progress was last looked at, ... */
    uint64_t unread_mark;                /* ... at which count of bytes taken */
    uint64_t taken_mark;                 /* what was moved when the time-out under way began */
    uint64_t body_mark;
    int64_t window_end;
    struct timer timer; /* of the state: time-outs, looking after a client */
    struct timer go;    /* due now: to read on what is here already */
    struct ip_addr peer_ip;
    uint16_t peer_port;
    int32_t peer_pid;
    int64_t peer_uid;
};

enum http_body_mode { BODY_UNDECIDED, BODY_WHOLE, BODY_STREAM };

struct http_exchange {
    struct list link;
    struct http_conn *conn;     /* NULL: the client went away unnoticed by the handler; then ... */
    struct http_parser *parser; /* ... this holds what `request` borrows */
    bool head_only;             /* HEAD */
    bool http_1_0;
    enum http_body_mode mode;
    bool too_long; /* by its Content-Length */
    bool read;     /* the request is whole */
    bool given;    /* ... and so much was told */
    bool paused;
    const struct http_stream_ops *ops; /* in BODY_STREAM */
    void *ops_arg;
    void (*gone)(void *arg);
    void *gone_arg;
    /* the answer */
    bool begun, bare, chunked, by_close, keep;
    int64_t left; /* bytes of its body to come; -1: not known */
    char peer_text[IP_TEXT_MAX];
    struct http_server_request request;
};

/* ---- http_conn.c -------------------------------------------------------------------------------- */

/* Takes fd. */
void http_conn_new(struct http_server *s, int fd, const struct ip_addr *ip, uint16_t port, bool too_many);
/* Closes at once. The exchange, if one waits, is told by its owner's callback or stays for an answer to
 * nowhere. */
void http_conn_close(struct http_conn *c);
/* After the last answer: tells the client that no more comes, and waits for it to go. */
void http_conn_linger(struct http_conn *c);
/* Queues bytes, which the time-out for an answer then covers. */
void http_conn_write(struct http_conn *c, struct slice bytes);
/* The same with something in front of them and behind them. */
void http_conn_write_between(struct http_conn *c, struct slice before, struct slice bytes,
                             struct slice behind);
/* The answer is queued: READ comes behind it, or LINGER. */
void http_conn_finish(struct http_conn *c, bool keep);
/* Whether it could be closed without anybody missing an answer. */
bool http_conn_is_idle(const struct http_conn *c);
/* Starts the time-out for bytes of an open exchange anew. */
void http_conn_watch(struct http_conn *c);
/* Sets the timer of an open exchange for whatever can come to its end. */
void http_conn_arm(struct http_conn *c);
uint64_t http_conn_taken(const struct http_conn *c);            /* bytes that the kernel took */
int64_t http_conn_after(const struct http_conn *c, int64_t ms); /* as a deadline */
/* The exchange goes on without its connection: its owner is told, or will find out when it answers. */
void http_conn_orphan(struct http_exchange *x);
void http_exchange_free(struct http_exchange *x);
/* Whether it waits for more of its body. */
bool http_wants_body(const struct http_exchange *x);

/* ---- http_read.c -------------------------------------------------------------------------------- */

/* Reads as many requests as are there, while each is answered at once. */
void http_conn_advance(struct http_conn *c);
/* The body will not be whole. A client that reads no answer yet is told why. */
void http_conn_body_failed(struct http_conn *c, int status, const char *code, const char *why);

/* ---- http_unread.c ------------------------------------------------------------------------------ */

/* Counts what of its answer c's client has not taken. */
void http_unread_count(struct http_conn *c);
/* Whether one more answer may be queued. Closes connections that are in the way of it. */
bool http_unread_has_room(struct http_server *s);

/* ---- http_reply.c ------------------------------------------------------------------------------- */

extern const char http_unread_busy[];
/* Answers what no handler gets to see, and ends the connection. */
void http_refuse(struct http_conn *c, int status, const char *code, const char *message);

/* ---- http_server.c ------------------------------------------------------------------------------ */

/* Takes new connections again, after a handshake ended one way or the other. */
void http_server_shaken(struct http_server *s);
/* Counts what c holds; if all hold too much, the largest has to go, which may be c. */
void http_server_count(struct http_conn *c);

#endif
