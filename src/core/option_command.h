/* Commands: split as a POSIX shell quotes (2.2 "Quoting" of its language), and nothing else of a shell. */
#ifndef CORE_OPTION_COMMAND_H
#define CORE_OPTION_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"

/* Splits text into words: blanks part them; '...' is literal; "..." knows \" \\ \$ \` and backslash-newline;
 * elsewhere a backslash makes the next character literal. Returns argv, NULL-terminated (command_free), with
 * at least one word; or NULL with a sentence in *why and the offending byte's offset in *at. */
char **command_split(const char *text, const char **why, size_t *at);
void command_free(char **argv);
/* Appends argv so that command_split gives it back. */
void command_join(struct buf *out, char *const *argv);

#endif
