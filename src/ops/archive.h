/* The archive: what retention removes is appended before, as lines of an export, to a file a day (UTC) in
 * spool.archive_dir: YYYY-MM-DD.jsonl.gz, mode 0600. Each slice of events is one gzip member, synced; so zcat reads the
 * file as a whole, and a member that a crash tore is found and cut off when the file is opened next.
 *
 * A file that is damaged elsewhere, or is none of ours, is left as it is: the archive goes on in YYYY-MM-DD.1.jsonl.gz, and
 * so on. After a crash a line may be there twice; lines carry bot, box and seq. */
#ifndef OPS_ARCHIVE_H
#define OPS_ARCHIVE_H

#include "spool/spool.h"

struct archive;

/* Makes the directory (0700) if it is missing, and sees that files can be made in it. Returns NULL and e, which names
 * the directory. */
struct archive *archive_new(const char *dir, struct err *e);
/* What was begun and not finished is not in the file. NULL: nothing. */
void archive_free(struct archive *a);

/* A spool_archive_fn; arg is the archive. Works for about 4 ms a call, beside the sync. */
enum archived archive_step(void *arg, struct slice lines, int64_t now, struct err *e);

#endif
