#include "drill/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static const char *const words[DEED_KINDS] = {"start", "effect", "acted", "failed", "end"};

int record_open(struct record *r, const char *path, struct err *e)
{
    record_close(r);
    r->fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return r->fd < 0 ? err_set(e, EX_CANTCREAT, "cannot make %s: %s", path, strerror(errno)) : 0;
}

void record_close(struct record *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->deeds);
    *r = RECORD_EMPTY;
}

void record_add(struct record *r, enum deed_kind kind, int64_t update_id, int64_t attempt, int64_t detail)
{
    r->deeds = xrealloc(r->deeds, (r->n + 1) * sizeof(*r->deeds));
    r->deeds[r->n++] = (struct deed){kind, update_id, attempt, detail, clock_now()};
}

static void take_line(struct record *r, const char *line)
{
    long long id, attempt, detail;
    char word[16];

    if (sscanf(line, "%15s %lld %lld %lld", word, &id, &attempt, &detail) != 4)
        return;
    for (int k = 0; k < DEED_KINDS; k++)
        if (strcmp(word, words[k]) == 0)
            record_add(r, (enum deed_kind)k, id, attempt, detail);
}

void record_read(struct record *r)
{
    while (r->fd >= 0) {
        ssize_t n = read(r->fd, r->tail + r->n_tail, sizeof(r->tail) - 1 - r->n_tail);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        r->n_tail += (size_t)n;
        r->tail[r->n_tail] = '\0';
        char *line = r->tail;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            take_line(r, line);
        }
        r->n_tail = strlen(line);
        memmove(r->tail, line, r->n_tail + 1);
    }
}

int record_write(const char *path, enum deed_kind kind, int64_t update_id, int64_t attempt, int64_t detail)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "%s %lld %lld %lld\n", words[kind], (long long)update_id,
                     (long long)attempt, (long long)detail);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -1;
    bool ok = write(fd, line, (size_t)n) == n;
    close(fd);
    return ok ? 0 : -1;
}

unsigned record_count(const struct record *r, enum deed_kind kind, int64_t update_id)
{
    unsigned n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->deeds[i].kind == kind && r->deeds[i].update_id == update_id;
    return n;
}

const struct deed *record_find(const struct record *r, enum deed_kind kind, int64_t update_id, size_t from)
{
    for (size_t i = from; i < r->n; i++)
        if (r->deeds[i].kind == kind && r->deeds[i].update_id == update_id)
            return &r->deeds[i];
    return NULL;
}
