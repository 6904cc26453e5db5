/* tgspool import: puts exported events back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/show.h"

#define CHUNK (4u << 20)           /* of whole lines, in one request */
#define LINE_MAX_BYTES (12u << 20) /* no event is larger: a call of 8 MiB in base64, and what is around it */

struct counts {
    long long lines, fresh, known, bad;
};

static int send_lines(struct request *q, struct slice lines, struct counts *n, struct err *e)
{
    struct answer a;

    if (request_send(q, "POST", "/v1/import", lines, &a, e) < 0)
        return -1;
    const struct json *errors = json_get(a.root, "errors");
    for (size_t i = 0; i < json_length(errors); i++) {
        const struct json *v = json_item(errors, i);
        char *message = show_text(v, "message");
        cli_fail(0, "line %lld: %s", n->lines + (long long)show_number(v, "line"), message);
        free(message);
    }
    n->lines += show_number(a.root, "lines");
    n->fresh += show_number(a.root, "new");
    n->known += show_number(a.root, "known");
    n->bad += show_number(a.root, "bad");
    answer_clear(&a);
    return 0;
}

/* Sends the whole lines that are in b, and keeps the rest. */
static int send_whole(struct request *q, struct buf *b, bool at_end, struct counts *n, struct err *e)
{
    const char *lf = b->n ? memrchr(b->p, '\n', b->n) : NULL;
    size_t whole = at_end ? b->n : lf ? (size_t)(lf - b->p) + 1 : 0;

    if (!whole && b->n > LINE_MAX_BYTES)
        return err_set(e, EX_DATAERR, "line %lld is longer than any event; is this an export?", n->lines + 1);
    if (!whole)
        return 0;
    int rc = send_lines(q, slice_make(b->p, whole), n, e);
    buf_drop(b, whole);
    return rc;
}

static int read_all(struct request *q, int fd, const char *path, struct counts *n, struct err *e)
{
    struct buf b = BUF_EMPTY;
    int rc = 0;

    while (rc == 0) {
        char *room = buf_reserve(&b, 64 << 10);
        ssize_t got = read(fd, room, 64 << 10);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            rc = err_set(e, EX_IOERR, "cannot read %s: %s", path, strerror(errno));
            break;
        }
        buf_added(&b, (size_t)got);
        if (got == 0 || b.n >= CHUNK)
            rc = send_whole(q, &b, got == 0, n, e);
        if (got == 0)
            break;
    }
    buf_free(&b);
    return rc;
}

static int run_import(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct counts n = {0};
    const char *path = argc ? argv[0] : "-";
    bool from_stdin = strcmp(path, "-") == 0;

    int fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cli_fail(EX_NOINPUT, "cannot read %s: %s", path, strerror(errno));
    struct request *q = request_open(cli, NEED_MAKE, &e);
    int rc = q ? read_all(q, fd, from_stdin ? "standard input" : path, &n, &e) : -1;
    request_close(q);
    if (!from_stdin)
        close(fd);
    if (cli->json)
        cli_print("{\"lines\":%lld,\"new\":%lld,\"known\":%lld,\"bad\":%lld}\n", n.lines, n.fresh, n.known,
                  n.bad);
    else if (n.lines || rc == 0)
        cli_print("%lld new, %lld known already, %lld bad\n", n.fresh, n.known, n.bad);
    if (rc < 0)
        return cli_fail_err(&e);
    if (n.fresh)
        cli_next(cli, "status");
    return cli_finish(n.bad ? EX_DATAERR : EX_OK);
}

const struct command command_import = {
    .name = "import",
    .arguments = "[FILE]",
    .summary = "put exported events back",
    .usage = "Reads what `tgspool export` wrote from FILE or standard input. Events that are\n"
             "there already are left alone; ended ones keep their state; others wait at the\n"
             "end of their lanes. Where Telegram is asked to go on is never changed.\n",
    .max_arguments = 1,
    .run = run_import,
};
