#include "cli/still.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/show.h"
#include "daemon/configfile.h"
#include "store/dir.h"

struct still {
    struct request *q; /* to the daemon, NULL if none runs */
    char *id;          /* of the daemon's checkpoint */
    char *dir;
    int lock_fd;
};

static int by_daemon(struct still *s, struct err *e)
{
    struct answer a;

    if (request_send(s->q, "POST", "/v1/checkpoint", slice_make(NULL, 0), &a, e) < 0)
        return -1;
    s->id = show_text(a.root, "id");
    s->dir = show_text(a.root, "path");
    answer_clear(&a);
    if (access(s->dir, R_OK | X_OK) < 0)
        return err_set(e, EX_NOPERM,
                       "cannot read %s, which the daemon made: %s; run this as the daemon's user", s->dir,
                       strerror(errno));
    return 0;
}

static int by_lock(struct still *s, const struct cli *cli, struct err *e)
{
    struct config *c = configfile_read(cli->config_path, e);
    int schema, rc = -1;

    if (!c)
        return -1;
    s->dir = xstrdup(c->dir);
    if (store_dir_look(c->dir, &schema, e) < 0)
        ;
    else if (!schema)
        err_set(e, EX_UNAVAILABLE, "there is no spool at %s", c->dir);
    else if ((s->lock_fd = store_dir_lock(c->dir, e)) >= 0)
        rc = store_dir_end_cut(c->dir, e);
    config_free(c);
    return rc;
}

struct still *still_open(const struct cli *cli, struct err *e)
{
    struct still *s = xcalloc(1, sizeof(*s));
    struct err none = ERR_NONE;

    s->lock_fd = -1;
    s->q = request_open(cli, NEED_DAEMON, &none);
    int rc = s->q ? by_daemon(s, e) : none.exit_code == EX_UNAVAILABLE ? by_lock(s, cli, e) : -1;
    if (rc == 0)
        return s;
    if (!s->q && !e->exit_code)
        *e = none;
    still_close(s);
    return NULL;
}

void still_close(struct still *s)
{
    struct answer a;

    if (!s)
        return;
    if (s->id) {
        char *path = xasprintf("/v1/checkpoint/%s", s->id);
        struct err e = ERR_NONE; /* it ends within the hour, whatever happens */
        if (request_send(s->q, "DELETE", path, slice_make(NULL, 0), &a, &e) == 0)
            answer_clear(&a);
        free(path);
    }
    request_close(s->q);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s->id);
    free(s->dir);
    free(s);
}

const char *still_dir(const struct still *s)
{
    return s->dir;
}

bool still_by_daemon(const struct still *s)
{
    return s->q != NULL;
}
