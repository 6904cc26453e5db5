/* Listening sockets. The control socket's permissions are its access control, so it must never be there with
 * wider ones than asked for, not even for a moment. */
#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/mem.h"
#include "base/text.h"

#define BACKLOG 128
#define SOCKET_KIND (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

/* Takes the lock beside the socket; its file stays when we end, as removing it would open a race. */
static int take_lock(const char *path, struct err *e)
{
    char *name = xasprintf("%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    if (fd < 0) {
        err_set(e, errno == EACCES || errno == EPERM ? EX_NOPERM : EX_CANTCREAT, "cannot open %s: %s", name,
                strerror(errno));
    } else if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        err_set(e, EX_UNAVAILABLE, "another process holds %s: is a daemon running on this socket already?",
                name);
        close(fd);
        fd = -1;
    }
    free(name);
    return fd;
}

/* Whether anybody answers: 1 yes, 0 no, -1 and e if that cannot be told. */
static int is_answered(const struct sockaddr_un *a, struct err *e)
{
    int fd = socket(AF_UNIX, SOCKET_KIND, 0);

    if (fd < 0)
        return err_set(e, EX_OSERR, "cannot make a socket: %s", strerror(errno));
    int r = connect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? errno : 0;
    close(fd);
    if (r == 0 || r == EAGAIN || r == EINPROGRESS) /* the latter two: its queue is full */
        return 1;
    if (r == ECONNREFUSED || r == ENOENT)
        return 0;
    return err_set(e, EX_UNAVAILABLE, "%s is there already, and whether it is in use cannot be told: %s",
                   a->sun_path, strerror(r));
}

static int remove_stale(const struct sockaddr_un *a, struct err *e)
{
    struct stat st;

    if (lstat(a->sun_path, &st) < 0) {
        if (errno == ENOENT)
            return 0;
        return err_set(e, EX_NOPERM, "cannot look at %s: %s", a->sun_path, strerror(errno));
    }
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, EX_CANTCREAT,
                       "%s is there already and is not a socket; remove it or choose another path",
                       a->sun_path);
    int answered = is_answered(a, e);
    if (answered < 0)
        return -1;
    if (answered)
        return err_set(e, EX_UNAVAILABLE, "another process answers on %s", a->sun_path);
    if (unlink(a->sun_path) < 0 && errno != ENOENT)
        return err_set(e, EX_NOPERM, "cannot remove the stale socket %s: %s", a->sun_path, strerror(errno));
    return 0;
}

int listen_find_group(const char *name, gid_t *gid, struct err *e)
{
    struct group *g = getgrnam(name);
    int64_t n = g ? (int64_t)g->gr_gid : 0;

    if (!g && text_to_i64(slice_str(name), 0, INT32_MAX, &n) < 0)
        return err_set(e, EX_NOUSER, "there is no group \"%s\"", name);
    if (gid)
        *gid = (gid_t)n;
    return 0;
}

/* Opens the socket up as far as asked, and listens. */
static int open_up(int fd, const char *path, mode_t mode, gid_t gid, struct err *e)
{
    if (gid != (gid_t)-1 && lchown(path, (uid_t)-1, gid) < 0)
        return err_set(e, EX_NOPERM, "cannot give the socket %s to group %lu: %s", path, (unsigned long)gid,
                       strerror(errno));
    if (chmod(path, mode) < 0)
        return err_set(e, EX_NOPERM, "cannot set the mode of %s: %s", path, strerror(errno));
    if (listen(fd, BACKLOG) < 0)
        return err_set(e, EX_OSERR, "cannot listen on %s: %s", path, strerror(errno));
    return 0;
}

/* Binds under a umask that shuts everyone else out. */
static int bind_unix(int fd, const struct sockaddr_un *a, mode_t mode, gid_t gid, struct err *e)
{
    mode_t old = umask(0177);
    int why = bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? errno : 0;

    umask(old);
    if (why)
        return err_set(e, EX_CANTCREAT, "cannot make the socket %s: %s", a->sun_path, strerror(why));
    if (open_up(fd, a->sun_path, mode, gid, e) < 0) {
        unlink(a->sun_path);
        return -1;
    }
    return 0;
}

int listen_unix_open(struct listen_unix *u, const char *path, mode_t mode, const char *group, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;
    gid_t gid = (gid_t)-1;
    int fd = -1;

    *u = (struct listen_unix){.lock_fd = -1};
    if (strlen(path) >= sizeof(a.sun_path))
        return err_set(e, EX_CONFIG, "the socket's path is longer than %zu bytes: %s", sizeof(a.sun_path) - 1,
                       path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    if (group && listen_find_group(group, &gid, e) < 0)
        return -1;
    u->lock_fd = take_lock(path, e);
    if (u->lock_fd < 0)
        return -1;
    if (remove_stale(&a, e) < 0)
        goto fail;
    fd = socket(AF_UNIX, SOCKET_KIND, 0);
    if (fd < 0) {
        err_set(e, EX_OSERR, "cannot make a socket: %s", strerror(errno));
        goto fail;
    }
    if (bind_unix(fd, &a, mode, gid, e) < 0)
        goto fail;
    if (lstat(path, &st) < 0) {
        err_set(e, EX_CANTCREAT, "the socket %s disappeared", path);
        goto fail;
    }
    u->path = xstrdup(path);
    u->dev = st.st_dev;
    u->ino = st.st_ino;
    return fd;

fail:
    if (fd >= 0)
        close(fd);
    close(u->lock_fd);
    u->lock_fd = -1;
    return -1;
}

void listen_unix_close(struct listen_unix *u)
{
    struct stat st;

    if (!u->path)
        return;
    if (lstat(u->path, &st) == 0 && st.st_dev == u->dev && st.st_ino == u->ino)
        unlink(u->path);
    close(u->lock_fd);
    free(u->path);
    u->path = NULL;
}

/* Of the address's own family. Returns its size. */
static socklen_t to_sockaddr(const struct ip_port *p, struct sockaddr_storage *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(p->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(p->port)};

    if (ip_is_v4(&p->addr)) {
        memcpy(&v4.sin_addr, p->addr.b + 12, sizeof(v4.sin_addr));
        memcpy(out, &v4, sizeof(v4));
        return sizeof(v4);
    }
    memcpy(&v6.sin6_addr, p->addr.b, sizeof(v6.sin6_addr));
    memcpy(out, &v6, sizeof(v6));
    return sizeof(v6);
}

/* Binds and listens. Returns a descriptor, or -1 with errno. */
static int bind_tcp(const struct ip_port *p, uint16_t *port)
{
    struct sockaddr_storage a;
    socklen_t n = to_sockaddr(p, &a);
    int fd = socket(a.ss_family, SOCKET_KIND, 0), yes = 1;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    *port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                          : ((struct sockaddr_in *)&a)->sin_port);
    return fd;
}

static const char *advice(int why)
{
    switch (why) {
    case EADDRINUSE:
        return "; end what listens there (ss -ltnp tells), or choose another port";
    case EADDRNOTAVAIL:
        return "; this machine has no such address (ip addr tells which it has)";
    case EACCES:
        return "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose a higher one";
    default:
        return "";
    }
}

int listen_tcp(const char *address, uint16_t *port, struct err *e)
{
    struct ip_port p;
    const char *why = ip_port_parse(slice_str(address), &p);

    if (why)
        return err_set(e, EX_CONFIG, "\"%s\" %s; accepted: ADDRESS:PORT", address, why);
    int fd = bind_tcp(&p, port);
    if (fd < 0)
        err_set(e, errno == EACCES ? EX_NOPERM : EX_UNAVAILABLE, "cannot listen on %s: %s%s", address,
                strerror(errno), advice(errno));
    return fd;
}
