/* A bot's queue of updates as Telegram keeps it: ids, offsets, what confirms and what is dropped. No clock,
 * no socket: it is given `now` in milliseconds. */
#ifndef BOTAPI_QUEUE_H
#define BOTAPI_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define QUEUE_MAX_UPDATES 100000
#define QUEUE_MAX_BYTES (128 << 20)
#define UPDATE_MAX_BYTES (512 << 10)
#define ANSWER_MAX_BYTES (4 << 20)
#define UPDATE_ID_END 2000000000 /* ids are below */

/* A kind of update as Telegram knows it. */
struct update_kind {
    const char *name;
    bool by_default; /* in the list that is used when none is asked for */
    int keeps_s;     /* how long one is kept unfetched */
};

extern const struct update_kind update_kinds[];
extern const int n_update_kinds;
int update_kind_find(struct slice name); /* -1: unknown */

struct queued {
    int32_t id;
    int64_t expires_at;
    char *p; /* owned: the whole result entry */
    size_t n;
};

struct queue {
    struct queued *v; /* the oldest at v[first]; ids ascend */
    size_t first, n, cap;
    size_t bytes;
    int32_t tail;        /* the next id to be given */
    uint32_t allowed;    /* kinds of which updates are made, a bit each */
    int64_t expire_next; /* nothing expires before */
    uint64_t made, confirmed, expired, overflowed, not_allowed, deleted;
};

void queue_init(struct queue *q, int32_t first_id);
void queue_free(struct queue *q);

/* The default list of kinds. */
uint32_t queue_default_kinds(void);

/* Adds an update of a kind (-1: of no known kind, always allowed) whose entry begins with `"update_id":ID`:
 * `{"update_id":ID,\n` + members + `}`. Returns its id, or -1 if it was dropped as Telegram would. */
int32_t queue_add(struct queue *q, int kind, struct slice members, int64_t now);
/* Adds an entry that is served as it is, broken or not; "@ID@" in it becomes its id. */
int32_t queue_add_raw(struct queue *q, struct slice entry, int64_t now);

/* Does what an offset does on arrival. What is then at the head is what to serve: an offset that is not
 * obeyed serves from the head too. */
void queue_apply_offset(struct queue *q, int64_t offset, int64_t now);

/* Takes one away that a webhook has taken. */
void queue_remove(struct queue *q, int32_t id);

/* Appends up to limit entries from the head on, separated by commas, stopping near 4 MiB. Returns how many;
 * first and last get their ids. */
int queue_answer(const struct queue *q, int limit, struct buf *out, int32_t *first, int32_t *last);

int32_t queue_head(const struct queue *q); /* the tail, if it is empty */

#endif
