/* Directories as a whole: copied file by file, synced, removed. */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include "base/bytes.h"
#include "base/err.h"

/* Copies a regular file to a new one of mode 0600 with the same time of change, and syncs it. Returns 0, or -1 and e
 * (EX_NOINPUT where there is no such file). */
int file_copy(const char *from, const char *to, struct err *e);

/* Syncs a directory: names made and removed in it last through a power cut. Returns 0 or -1. */
int dir_sync(const char *path, struct err *e);

/* rename(2) and link(2). Return 0, or -1 and errno. */
int file_rename(const char *from, const char *to);
int file_link(const char *from, const char *to);

/* Puts a file in the place of another in one step, durably: by way of PATH.new. Mode 0600. Returns 0, or -1 and e. */
int file_replace(const char *path, struct slice content, struct err *e);

/* Removes a directory with all that is in it, or a file; what is not there is no error. Symbolic links are removed, not
 * followed. Returns 0 or -1. */
int tree_remove(const char *path, struct err *e);

/* Calls each with the name of every entry but "." and ".." until one returns not 0. Returns that, or -1 and e: also where the
 * rest of the names cannot be read. */
int dir_each(const char *path, int (*each)(void *arg, const char *name, struct err *e), void *arg,
             struct err *e);

#endif
