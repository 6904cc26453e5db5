/* Connections. The only state machine here is: handshaking (if the kind has one), open, each direction ended,
 * failed. Writes are tried at once, as nearly all of them fit into the kernel's buffer; whatever comes of
 * them is told by a timer that is due now, because an owner must not be called back inside its own call. */
#include "net/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop.h"

#define READ_CHUNK 16384
#define READS_A_TURN 8 /* then the other connections have their turn */
#define IN_MAX_DEFAULT (256 * 1024)
#define LARGE_OUT (256 * 1024)

struct stream {
    struct loop *loop;
    int fd;
    struct io *io;
    struct timer wake; /* due now: something is to be told, or read from what the kind has buffered */
    const struct stream_ops *ops;
    void *state;
    stream_fn *fn;
    void *arg;
    struct buf in;
    size_t in_max, keep;
    struct buf out;
    size_t out_at; /* bytes of out that are written already */
    bool handshaking, paused, got_eof;
    bool end_wanted, ended;
    bool drained;      /* to be told */
    bool write_broken; /* what arrived before is read once more, then it is a failure */
    bool failed, failure_told, closed;
    bool read_more;                            /* reading stopped although more may be there already */
    int handshake_want, read_want, write_want; /* IO_ bits the kind waits for */
    int err_no;
    char error[256];
};

/* ---- plain -------------------------------------------------------------------------------------- */

static ssize_t plain_result(struct stream *s, ssize_t r)
{
    if (r >= 0)
        return r;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return STREAM_AGAIN;
    stream_set_error(s, errno, "%s", strerror(errno));
    return STREAM_BROKEN;
}

static ssize_t plain_read(struct stream *s, void *state, void *p, size_t n, int *want)
{
    (void)state;
    *want = IO_READ;
    return plain_result(s, recv(s->fd, p, n, 0));
}

static ssize_t plain_write(struct stream *s, void *state, const void *p, size_t n, int *want)
{
    (void)state;
    *want = IO_WRITE;
    return plain_result(s, send(s->fd, p, n, MSG_NOSIGNAL));
}

static int plain_end(struct stream *s, void *state, int *want)
{
    (void)state;
    (void)want;
    shutdown(s->fd, SHUT_WR); /* fails only if the peer is gone already, which reading tells */
    return 0;
}

static const struct stream_ops plain_ops = {.read = plain_read, .write = plain_write, .end = plain_end};

/* ---- what the descriptor is watched for --------------------------------------------------------- */

static bool may_read(const struct stream *s)
{
    return !s->handshaking && !s->paused && !s->got_eof && !s->failed && s->in.n < s->in_max;
}

static bool has_to_write(const struct stream *s)
{
    return !s->handshaking && !s->failed && !s->write_broken &&
           (s->out.n > s->out_at || (s->end_wanted && !s->ended));
}

/* Watches for what can go on, and makes the timer due if something needs no waiting. */
static void settle(struct stream *s)
{
    int want = 0;

    if (s->closed)
        return;
    buf_trim(&s->in, s->keep);
    if (s->handshaking && !s->failed)
        want |= s->handshake_want;
    if (may_read(s))
        want |= s->read_want;
    if (has_to_write(s))
        want |= s->write_want;
    io_want(s->io, want);
    if (s->drained || ((s->failed || s->write_broken) && !s->failure_told) || (s->read_more && may_read(s)))
        timer_set(&s->wake, loop_now(s->loop));
}

static void tell(struct stream *s, enum stream_event ev)
{
    if (!s->closed)
        s->fn(s->arg, s, ev);
}

void stream_set_error(struct stream *s, int err_no, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s->error, sizeof s->error, fmt, ap);
    va_end(ap);
    s->err_no = err_no;
    s->failed = true;
}

/* ---- moving bytes ------------------------------------------------------------------------------- */

/* What was written goes, and the memory with it where it is much. */
static void drop_written(struct stream *s)
{
    struct buf rest = BUF_EMPTY;

    if (s->out.cap > s->keep && s->out.cap > LARGE_OUT) {
        buf_add(&rest, s->out.p + s->out_at, s->out.n - s->out_at);
        buf_free(&s->out);
        s->out = rest;
    } else {
        buf_drop(&s->out, s->out_at);
    }
    s->out_at = 0;
}

static void flush(struct stream *s)
{
    bool had = s->out.n > s->out_at;

    while (!s->failed && !s->write_broken && s->out.n > s->out_at) {
        ssize_t r = s->ops->write(s, s->state, s->out.p + s->out_at, s->out.n - s->out_at, &s->write_want);
        if (r < 0) {
            s->write_broken = r == STREAM_BROKEN;
            s->failed = false; /* not yet */
            break;
        }
        s->out_at += (size_t)r;
    }
    if (s->out.n == s->out_at) {
        buf_clear(&s->out);
        buf_trim(&s->out, s->keep);
        s->out_at = 0;
        s->drained |= had;
        if (s->end_wanted && !s->ended && !s->failed)
            s->ended = s->ops->end(s, s->state, &s->write_want) == 0;
    } else if (s->out_at > s->out.n / 2) {
        drop_written(s);
    }
}

/* Reads what is there, within this turn's share. Bytes that came before a failure are told before it. */
static void fill(struct stream *s)
{
    size_t before = s->in.n;
    int i;

    s->read_more = false;
    for (i = 0; i < READS_A_TURN && may_read(s); i++) {
        size_t room = s->in_max - s->in.n < READ_CHUNK ? s->in_max - s->in.n : READ_CHUNK;
        char *to = buf_reserve(&s->in, room);
        ssize_t r = s->ops->read(s, s->state, to, room, &s->read_want);
        if (r == 0)
            s->got_eof = true;
        if (r <= 0)
            break;
        buf_added(&s->in, (size_t)r);
        s->read_more = true; /* until a read says otherwise */
    }
    if (i < READS_A_TURN && may_read(s))
        s->read_more = false;
    if (s->in.n > before)
        tell(s, STREAM_DATA);
    if (s->closed)
        return;
    if (s->got_eof)
        tell(s, STREAM_EOF);
}

/* Tells what became known inside a call. A failure comes last, after data that arrived before it: a server
 * that refuses a large body early answers, closes, and the rest of our body meets a reset. */
static void tell_pending(struct stream *s)
{
    if (s->drained) {
        s->drained = false;
        tell(s, STREAM_DRAINED);
    }
    if (s->write_broken && !s->failed && may_read(s) && !s->closed)
        fill(s);
    if ((s->failed || s->write_broken) && !s->failure_told && !s->closed) {
        s->failed = s->failure_told = true;
        tell(s, STREAM_FAILED);
    }
}

static void shake(struct stream *s)
{
    int r = s->ops->handshake(s, s->state, &s->handshake_want);

    if (r == STREAM_AGAIN)
        return;
    s->handshaking = false;
    if (r == 0) {
        tell(s, STREAM_READY);
        if (!s->closed) {
            flush(s);
            s->read_more = true; /* the kind may have read ahead */
        }
    }
}

static void on_io(void *arg, int events)
{
    struct stream *s = arg;

    if (s->closed)
        return;
    if (s->handshaking) {
        shake(s);
    } else {
        if (has_to_write(s) && (events & s->write_want))
            flush(s);
        if (may_read(s) && (events & s->read_want))
            fill(s);
    }
    tell_pending(s);
    settle(s);
}

static void on_wake(void *arg)
{
    struct stream *s = arg;

    if (s->closed)
        return;
    if (s->handshaking)
        shake(s);
    else if (s->read_more && may_read(s))
        fill(s);
    tell_pending(s);
    settle(s);
}

/* ---- for owners --------------------------------------------------------------------------------- */

struct stream *stream_new(struct loop *l, int fd, stream_fn *fn, void *arg)
{
    struct stream *s = xcalloc(1, sizeof *s);

    s->loop = l;
    s->fd = fd;
    s->ops = &plain_ops;
    s->fn = fn;
    s->arg = arg;
    s->in_max = IN_MAX_DEFAULT;
    s->read_want = IO_READ;
    s->write_want = IO_WRITE;
    timer_init(&s->wake, l, on_wake, s);
    s->io = io_new(l, fd, on_io, s);
    settle(s);
    return s;
}

void stream_set_owner(struct stream *s, stream_fn *fn, void *arg)
{
    s->fn = fn;
    s->arg = arg;
}

static void release(void *p)
{
    struct stream *s = p;

    if (s->ops->free)
        s->ops->free(s->state);
    buf_free(&s->in);
    buf_free(&s->out);
    free(s);
}

void stream_close(struct stream *s)
{
    int want = 0;

    if (!s || s->closed)
        return;
    /* A polite end where it costs nothing: without it a TLS peer would take this for an attack. */
    if (!s->failed && !s->write_broken && !s->handshaking && !s->ended && s->out.n == s->out_at)
        s->ops->end(s, s->state, &want);
    s->closed = true;
    timer_stop(&s->wake);
    io_free(s->io);
    close(s->fd);
    s->fd = -1;
    loop_free_later(s->loop, s, release);
}

void stream_abort(struct stream *s)
{
    struct linger reset = {1, 0};

    if (!s || s->closed)
        return;
    setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    s->failed = true; /* no polite end */
    stream_close(s);
}

struct buf *stream_in(struct stream *s)
{
    return &s->in;
}

void stream_set_in_max(struct stream *s, size_t max)
{
    s->in_max = max;
    settle(s);
}

void stream_keep_buffers(struct stream *s, size_t bytes)
{
    s->keep = bytes;
    buf_trim(&s->out, bytes);
    settle(s);
}

void stream_pause(struct stream *s)
{
    s->paused = true;
    settle(s);
}

void stream_resume(struct stream *s)
{
    s->paused = false;
    s->read_more = true;
    settle(s);
}

static bool takes_bytes(const struct stream *s)
{
    return !s->closed && !s->failed && !s->write_broken && !s->end_wanted;
}

void stream_prepare(struct stream *s, struct slice bytes)
{
    if (takes_bytes(s))
        buf_add_slice(&s->out, bytes);
}

void stream_write(struct stream *s, struct slice bytes)
{
    if (!takes_bytes(s) || bytes.n == 0)
        return;
    buf_add_slice(&s->out, bytes);
    if (!s->handshaking)
        flush(s);
    settle(s);
}

size_t stream_queued(const struct stream *s)
{
    return s->out.n - s->out_at;
}

size_t stream_out_held(const struct stream *s)
{
    return stream_queued(s) ? s->out.cap : 0;
}

void stream_end(struct stream *s)
{
    if (!takes_bytes(s))
        return;
    s->end_wanted = true;
    if (!s->handshaking)
        flush(s);
    settle(s);
}

const char *stream_error(const struct stream *s)
{
    return s->error;
}

int stream_errno(const struct stream *s)
{
    return s->err_no;
}

int stream_fd(const struct stream *s)
{
    return s->fd;
}

void stream_secure(struct stream *s, const struct stream_ops *ops, void *state)
{
    assert(s->ops == &plain_ops && s->in.n == 0 && s->out.n == s->out_at);
    s->ops = ops;
    s->state = state;
    s->handshaking = true;
    s->handshake_want = IO_WRITE; /* the first step is taken as soon as the loop comes by */
    settle(s);
}
