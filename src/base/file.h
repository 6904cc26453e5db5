/* Small files, whole: secrets, configuration. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Reads a regular file of at most max bytes into out (appended). Directories, devices and larger files are
 * errors that say so. Returns 0, or -1 and e: EX_NOINPUT where there is no such file, EX_NOPERM, EX_CONFIG, and EX_IOERR for
 * one that is there and cannot be read. */
int file_read(const char *path, size_t max, struct buf *out, struct err *e);

/* As file_read, and refuses a file that others than its owner (and root) can read or write, or that is empty;
 * of a file of systemd's credentials the bits may be any. Trailing newlines and blanks are cut off. */
int file_read_secret(const char *path, struct buf *out, struct err *e);

/* Reads n bytes from where a descriptor stands, fewer only at the end of the file. Returns how many, or -1 and errno. */
ssize_t file_read_block(int fd, void *out, size_t n);

/* Writes a new file with O_EXCL and the given mode, and syncs it. What could not be written whole is removed. Returns 0, or -1
 * with EX_CANTCREAT, EX_NOPERM or EX_IOERR in e. */
int file_create(const char *path, struct slice content, mode_t mode, struct err *e);

/* The absolute path without symbolic links, "." and "..", as far as it is there; to be freed. */
char *file_resolve(const char *path);
/* Whether path is the directory dir, or lies in it, symbolic links followed; of what is not there yet, where it would be. */
bool file_is_in(const char *path, const char *dir);

/* What changes when a file is replaced or written anew, as a text; a file that is not there, or path NULL, has one of
 * its own. */
#define FILE_STAMP_MAX 100
void file_stamp(const char *path, char out[FILE_STAMP_MAX]);

/* Makes a directory and its missing parents, the last one with the given mode; one that is there already is
 * left as it is. Returns 0, or -1 with EX_CANTCREAT, EX_NOPERM or EX_IOERR in e. */
int file_make_dir(const char *path, mode_t mode, struct err *e);

#endif
