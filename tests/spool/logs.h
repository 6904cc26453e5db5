/* The logs and the manifest of a copy, to be written into. */
#ifndef TESTS_SPOOL_LOGS_H
#define TESTS_SPOOL_LOGS_H

#include "copy.h"
#include "store/log_piece.h"
#include "store/log_tail.h"

#define SECTOR 512

extern char logs_paths[4][COPY_PATH_MAX];

/* Some batches of one log, none of them synced, in the world. */
void logs_make(struct world *w);
/* A copy whose log has a hole that would be cut off. Returns the log's path. */
const char *logs_torn(struct world *w);
/* A copy with two logs, in logs_paths; the manifest says that RocksDB synced the first one. */
void logs_two(struct world *w);
/* Fails if the copy's logs are not found to be so. */
void logs_expect(enum log_state state, const char *what);

void logs_write(const char *path, int64_t at, const void *p, size_t n);
/* Makes zeros of the bytes from <= at < to; none if there are none. */
void logs_zero(const char *path, int64_t from, int64_t to);
/* Writes a piece into a file's first block. Returns where it ends. */
int64_t logs_put_piece(const char *path, int64_t at, unsigned type, struct slice data);
/* Its path, until the next call. */
const char *logs_manifest(void);
void logs_add_record(struct slice record); /* to the manifest, as are: */
/* a tag with bytes of numbers. */
void logs_tell(unsigned tag, const uint64_t *numbers, size_t n);
/* To a record. */
void logs_put_number(struct buf *b, uint64_t v);

#endif
