/* tgspool export: events with all that is known of them, one JSON object a line, for `import`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "cli/show.h"
#include "cli/still.h"

#define PAGE "500"

/* An answer of the api has one event a line, between its first and its last line; a comma begins or ends
 * some. */
static size_t put_lines(FILE *out, struct slice body)
{
    const char *p = memchr(body.p, '\n', body.n), *end = body.p + body.n;
    size_t n = 0;

    while (p && ++p < end && *p != ']') {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        if (!lf)
            break;
        size_t len = (size_t)(lf - p);
        if (len && p[len - 1] == ',')
            len--;
        if (len) {
            fwrite(p, 1, len, out);
            putc('\n', out);
            n++;
        }
        p = lf;
    }
    return n;
}

static int pages(const struct cli *cli, struct request *q, FILE *out, uint64_t *n, struct err *e)
{
    char *next = NULL;

    do {
        struct buf path = BUF_EMPTY;
        struct answer a;
        buf_add_str(&path, "/v1/events");
        query_add_filters(cli, &path);
        query_add(&path, "limit", PAGE);
        query_add(&path, "payload", "1");
        if (next)
            query_add(&path, "after", next);
        int rc = request_send(q, "GET", buf_str(&path), slice_make(NULL, 0), &a, e);
        buf_free(&path);
        free(next);
        if (rc < 0)
            return -1;
        *n += put_lines(out, buf_slice(&a.body));
        next = json_string(json_get(a.root, "next")).n ? show_text(a.root, "next") : NULL;
        answer_clear(&a);
    } while (next && !ferror(out));
    free(next);
    return 0;
}

/* Payloads are private: a new file is the owner's alone. */
static FILE *open_output(const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f)
        err_set(e, EX_CANTCREAT, "cannot make %s: %s%s", path, strerror(errno),
                errno == EEXIST ? "; name another file, or remove it" : "");
    return f;
}

/* The daemon shall not be burdened: its checkpoint is read here. Who may not read that is answered by the daemon. */
static struct request *open_source(const struct cli *cli, struct still **still, struct err *e)
{
    *still = still_open(cli, e);
    if (*still)
        return request_look(still_dir(*still), e);
    if (e->exit_code != EX_NOPERM)
        return NULL;
    *e = ERR_NONE;
    return request_open(cli, NEED_READ, e);
}

static int run_export(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    uint64_t n = 0;
    const char *path = argc ? argv[0] : "-";
    bool to_stdout = strcmp(path, "-") == 0;
    FILE *out = to_stdout ? stdout : NULL;

    struct still *still;
    struct request *q = open_source(cli, &still, &e);
    int rc = q ? 0 : -1;
    if (rc == 0 && !to_stdout && !(out = open_output(path, &e)))
        rc = -1;
    if (rc == 0)
        rc = pages(cli, q, out, &n, &e);
    request_close(q);
    still_close(still);
    if (!to_stdout && out) {
        (void)FAILPOINT("export.before_sync");
        bool bad = fflush(out) != 0 || fsync(fileno(out)) < 0 || ferror(out);
        bad |= fclose(out) != 0;
        (void)FAILPOINT("export.after_sync");
        if (rc == 0 && bad)
            rc = err_set(&e, EX_IOERR, "cannot write %s: %s", path, strerror(errno));
        if (rc < 0) /* half an export looks like a whole one */
            unlink(path);
    }
    if (rc < 0)
        return cli_fail_err(&e);
    if (!to_stdout && cli->json)
        cli_print("{\"exported\":%llu}\n", (unsigned long long)n);
    else if (!to_stdout)
        cli_print("%llu %s written to %s\n", (unsigned long long)n, n == 1 ? "event" : "events", path);
    return cli_finish(EX_OK);
}

static const struct cli_option options[] = {FILTER_OPTIONS, {NULL, NULL, NULL}};

const struct command command_export = {
    .name = "export",
    .arguments = "[FILTERS] [FILE]",
    .summary = "events as lines of JSON, to a file or standard output",
    .usage = "Writes events with their payloads, one JSON object a line, to a new FILE (mode\n"
             "0600) or to standard output. `tgspool import` puts them back, here or into\n"
             "another spool.\n",
    .options = options,
    .max_arguments = 1,
    .run = run_export,
};
