/* Answers that their clients have not taken yet. All of a listener's together are bounded: while they are too much,
 * who holds on to one without taking it has to go, and until there is room new requests are told to come again. */
#include "net/http_conn.h"

#define UNREAD_MAX (8 * 1024 * 1024)
#define SMALL 4096 /* what is smaller is in nobody's way */
/* Beyond the limit one must take this much in this time, ... */
#define STALL_BYTES 16384
#define STALL_MS SECONDS(1)
#define HOLD_MS SECONDS(10) /* ... and all of it in this, so that everybody's turn comes */

static size_t limit(const struct http_server *s)
{
    return s->o.max_unread ? s->o.max_unread : UNREAD_MAX;
}

void http_unread_count(struct http_conn *c)
{
    size_t now = c->state == CONN_CLOSED ? 0 : stream_out_held(c->stream);

    if (c->unread == 0 && now > 0) {
        c->unread_since = c->unread_looked = loop_now(c->server->loop);
        c->unread_mark = http_conn_taken(c);
    }
    c->server->unread += now - c->unread;
    c->unread = now;
}

/* Whether others need not wait for its client any longer. */
static bool is_in_the_way(struct http_conn *c)
{
    int64_t now = loop_now(c->server->loop);

    if (c->unread < SMALL)
        return false;
    if (now - c->unread_since >= HOLD_MS)
        return true;
    if (http_conn_taken(c) - c->unread_mark >= STALL_BYTES) {
        c->unread_mark = http_conn_taken(c);
        c->unread_looked = now;
    }
    return now - c->unread_looked >= STALL_MS;
}

bool http_unread_has_room(struct http_server *s)
{
    if (s->unread <= limit(s))
        return true;
    list_each(&s->conns, it) /* what was taken in part was not told */
        http_unread_count(list_item(it, struct http_conn, link));
    list_each(&s->conns, it) {
        struct http_conn *c = list_item(it, struct http_conn, link);
        if (s->unread > limit(s) && is_in_the_way(c))
            http_conn_close(c);
    }
    return s->unread <= limit(s);
}

bool http_has_room(struct http_exchange *x)
{
    return !x->conn || http_unread_has_room(x->conn->server);
}
