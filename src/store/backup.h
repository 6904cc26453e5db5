/* A backup: a directory with one state of a spool, state-N/, which can be looked at as a spool can, and BACKUP, which says
 * which state that is and what is in it. A new state is made beside the old one and shares with it, by hard links, the table
 * files that both have: those never change. BACKUP is renamed in place when the new state is complete and was read whole; so
 * whatever happens meanwhile, there is a usable backup. */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define BACKUP_FILE "BACKUP"

/* What BACKUP says, beside the list of files. */
struct backup_info {
    unsigned number;  /* of the state; 0: none yet */
    int64_t taken_at; /* Unix ms */
    int schema;
    char version[32];  /* of the program */
    char instance[33]; /* of the spool */
    uint64_t generation, unfinished, ended, highest_seq;
};

/* Reads it. Returns 0, or -1 and e: EX_NOINPUT where there is none, EX_DATAERR, EX_CONFIG for a newer one. */
int backup_read(const char *dir, struct backup_info *out, struct err *e);
char *backup_state_path(const char *dir, unsigned number); /* to be freed */
/* Whether every file that BACKUP lists is there in its size. Returns 0, or -1 and e. */
int backup_check_files(const char *dir, struct err *e);

/* A new state in the making. */
struct backup;
struct backup_amount {
    uint64_t copied, reused; /* files */
    uint64_t copied_bytes, reused_bytes;
};
/* Makes the directory if it is missing; it must be empty or a backup. Locks it, and removes what an earlier run left.
 * Returns NULL and e. */
struct backup *backup_begin(const char *dir, struct err *e);
/* Copies a spool that stands still into a new state (instead of what an earlier call made). reuse: links what the last state
 * has already. Returns 0, or -1 and e. */
int backup_copy(struct backup *b, const char *spool_dir, bool reuse, struct backup_amount *amount,
                struct err *e);
const char *backup_new_state(const struct backup *b); /* its path */
/* Makes the new state the backup; info but number is the caller's. Removes the old one. Returns 0, or -1 and e: then the old
 * one is the backup. */
int backup_publish(struct backup *b, const struct backup_info *info, struct err *e);
/* Removes what was not published, and lets go the lock. */
void backup_end(struct backup *b); /* harmless with NULL */

/* Copies the files of a spool that are needed to open it, into a directory that is there. */
int backup_copy_out(const char *state, const char *to, struct err *e);

#endif
