/* A call's answer, in pieces as they come. */
#include <errno.h>

#include "base/log.h"
#include "net/http_pool_in.h"

/* As in http_client.c: a later reset is not the crossing of request and close. */
#define RESEND_WITHIN_MS 5000

/* The connection ended before the answer did. */
static void on_broken(struct http_call *call)
{
    struct pool_conn *c = call->conn;
    const char *shown = buf_str(&call->pool->origin.shown);
    bool reset = c->err_no == 0 || c->err_no == ECONNRESET || c->err_no == EPIPE;
    int64_t now = loop_now(call->pool->loop);

    if (call->answering) {
        call_fail(call, HTTP_CUT, "%s closed the connection within its answer", shown);
    } else if (c->served && reset && call->keeping &&
               (call->sent_at < 0 || now - call->sent_at < RESEND_WITHIN_MS)) {
        log_debug(NULL, "%s had closed the idle connection, sending again on a new one", shown);
        c->call = NULL;
        pool_close(c);
        pool_connect(call);
    } else if (c->err_no == 0) {
        call_fail(call, HTTP_RESET, "%s closed the connection without an answer", shown);
    } else {
        call_fail(call, HTTP_RESET, "the connection to %s broke before an answer came: %s", shown,
                  stream_error(c->stream));
    }
}

static void tell_head(struct http_call *call)
{
    struct http_parser *parser = call->conn->parser;
    const struct http_message *m = http_parser_message(parser);
    size_t used;
    const struct http_call_head h = {
        .status = m->status,
        .fields = m->fields,
        .n_fields = m->n_fields,
        .length = m->has_length ? (int64_t)m->length : -1,
        .no_body = call->head_only || m->status == 204 || m->status == 304,
    };

    call->read = http_parser_feed(parser, slice_make("", 0), &used) == HTTP_DONE;
    call->head_told = true;
    call->ops->head(call->arg, &h);
}

/* Gives what the parser has of the body. The callback may end it all, so the bytes are held here. */
static void give_piece(struct http_call *call)
{
    struct pool_conn *c = call->conn;
    struct http_parser *parser = c->parser;
    struct buf piece;

    if (http_parser_message(parser)->body.n == 0)
        return;
    piece = http_parser_lend_body(parser);
    call->ops->body(call->arg, buf_slice(&piece));
    if (c->parser == parser)
        http_parser_return_body(parser, &piece);
    else
        buf_free(&piece);
}

/* Reads on. Returns false if more bytes must come first. */
static bool step(struct http_call *call)
{
    struct pool_conn *c = call->conn;
    struct buf *in = stream_in(c->stream);
    enum http_progress progress;
    size_t used;
    int status;

    if (call->read) {
        call_succeed(call);
        return false;
    }
    if (in->n) {
        progress = http_parser_feed(c->parser, buf_slice(in), &used);
        buf_drop(in, used);
    } else if (!c->ended) {
        return false;
    } else if (!call->answering || c->err_no || http_parser_eof(c->parser) != HTTP_DONE) {
        on_broken(call);
        return false;
    } else {
        progress = HTTP_DONE;
    }
    call->read = progress == HTTP_DONE;
    if (progress == HTTP_BAD)
        call_fail(call, HTTP_BAD_ANSWER, "the answer of %s cannot be used: %s",
                  buf_str(&call->pool->origin.shown), http_parser_error(c->parser, &status));
    else if (progress == HTTP_HEAD_DONE)
        tell_head(call);
    else
        give_piece(call);
    return true;
}

void call_read(struct http_call *call)
{
    struct stream *s = call->conn->stream;
    size_t before = stream_in(s)->n;

    while (!call->dead && !call->paused && call->conn && call->conn->stream == s && step(call))
        ;
    if (!call->dead && call->conn && call->conn->stream == s && stream_in(s)->n < before)
        stream_resume(s); /* it may have stopped for want of room */
}
