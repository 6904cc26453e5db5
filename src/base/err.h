/* An error that a person will read: one sentence saying what was wrong, where, and what would be right. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <sysexits.h>

struct err {
    int exit_code; /* of sysexits.h; 0 while nothing was set */
    char text[1024];
};

#define ERR_NONE ((struct err){0, ""})

/* Sets the text (cut at its size) and the exit code. Always returns -1, so that `return err_set(...)` serves.
 * e may be NULL. */
int err_set(struct err *e, int exit_code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "prefix: " in front of the text. Returns -1. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
