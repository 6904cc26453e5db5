/* A copy of a world's directory, to be damaged and opened. */
#ifndef TESTS_SPOOL_COPY_H
#define TESTS_SPOOL_COPY_H

#include "world.h"

extern char copy_dir[80]; /* "" while there is none */
extern char copy_db[84];  /* its database */

/* Makes it, in the place of an earlier one. */
void copy_make(const struct world *w);
/* Opens it. Returns NULL and e, which is made empty before. */
struct spool *copy_open(struct err *e);
/* As a cmocka fixture: of the copy, and of the world. */
int copy_teardown(void **state);

/* The paths of those files of a spool's database whose names end so, without empty ones, in the order of their names. */
#define COPY_PATH_MAX 300
size_t copy_files(const char *dir, const char *end, char paths[][COPY_PATH_MAX], size_t max);
int64_t copy_size_of(const char *path);
/* Where the record with this number begins in a log or manifest of less than one block, in which each is one piece. */
int64_t copy_piece_at(const char *path, unsigned number);
/* A shell's command with two more arguments, which may be patterns. */
void copy_run(const char *what, const char *a, const char *b);

#endif
