/* The reserve: a file of zeros in the spool's directory that takes room while there is some. On a full disk RocksDB
 * cannot even be opened, since recovery writes tables: the store then gives the reserve up and tries again. */
#ifndef STORE_RESERVE_H
#define STORE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define RESERVE_NAME "reserve"

/* Its size in bytes; 0: there is none. */
int64_t reserve_size(const char *dir);
/* Makes it so large, or smaller; 0 removes it. It takes the room at once and writes nothing. Returns 0, or -1 and e:
 * EX_UNAVAILABLE where the file system cannot allocate ahead, EX_IOERR otherwise (then it stands as it was). */
int reserve_set(const char *dir, int64_t bytes, struct err *e);
/* What is free to this process on the file system of dir, in bytes; INT64_MAX if nobody can tell. */
int64_t reserve_free(const char *dir);
/* Whether the file system of dir takes no new file, whatever room it has. */
bool reserve_no_inodes(const char *dir);
/* Gives the room back. Returns whether there was any. */
bool reserve_drop(const char *dir);

#endif
