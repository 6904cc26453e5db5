/* The spool's directory: who may use it, whether it is one of ours, and which schema it holds. Its content:
 *   lock     held while a process uses the directory; holds its pid
 *   SPOOL    the marker: written last when a spool is made, so that a half-made one is told from a damaged one
 *   reserve  room for hard times: store/reserve.h
 *   db/      RocksDB's
 *   checkpoints/   see store/checkpoint.h
 *   before-schema-N/   the same, made before the schema went on from N: see spool/migrate.c
 *   preparing/, incoming/, damaged-TIME/   see store/swap.h */
#ifndef STORE_DIR_H
#define STORE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define STORE_SCHEMA 2 /* 1: tgspool 0.1.0 */
#define STORE_MARKER "SPOOL"
#define STORE_ALERTED "alerted" /* an empty file: that it could not be opened was told */

struct store_dir {
    char *path, *db_path;
    int lock_fd;
    bool fresh; /* nothing in it yet: the database is to be made */
    int schema; /* that the marker tells */
};

/* Makes the directory if it is missing (0700), locks it and looks at its marker. Returns 0, or -1 and e:
 * EX_TEMPFAIL when another process holds it, EX_CONFIG for a directory with other things in it or a newer
 * schema. */
int store_dir_open(const char *path, struct store_dir *out, struct err *e);
/* Writes the marker: the database is complete. Returns 0 or -1. */
int store_dir_ready(struct store_dir *d, struct err *e);
/* The same of any directory that holds a database of ours, of this schema. */
int store_dir_mark(const char *path, int schema, struct err *e);
/* The schema that the marker of a directory tells, 0 if it has none. Returns 0, or -1 and e. */
int store_dir_schema(const char *path, int *out, struct err *e);
/* For looking at a spool that exists: nothing is made or locked. Returns 0, or -1 and e. */
int store_dir_borrow(const char *path, struct store_dir *out, struct err *e);
/* Takes the lock of a directory, which must exist, and nothing else: for who works on the files. Returns the descriptor
 * to close, or -1 and e (EX_TEMPFAIL when another process holds it). */
int store_dir_lock(const char *path, struct err *e);
/* Cuts off what a power cut left of the database's logs, as every opening of it does: for who looks at a directory that it
 * has locked. Returns 0, or -1 and e. */
int store_dir_end_cut(const char *dir, struct err *e);
/* Unlocks and releases. */
void store_dir_close(struct store_dir *d);

/* Looks at the marker only: makes, locks and changes nothing. Returns 0 and the schema, which is 0 where there is no
 * spool yet; or -1 and e as store_dir_open. */
int store_dir_look(const char *path, int *schema, struct err *e);
/* Whether a name in the directory is of a file that is no part of the spool, and makes a directory no less empty. */
bool store_dir_is_aside(const char *name);
/* What the files of a directory, spool.dir's db/, hold together. */
int64_t store_dir_bytes(const char *path);
/* Whether some process holds the directory's lock; false also where there is no such directory. */
bool store_dir_is_locked(const char *path, long *pid);

#endif
