/* What a crash or a power cut leaves at the end of RocksDB's logs, told from damage. What was not synced may be there in
 * part: any sectors of it, in any of several logs. It was acknowledged to nobody (but with sync: off), and is cut off from
 * the first thing that is missing on; RocksDB takes some of that for corruption, and passes other by, with what stood in it.
 * What is missing although it was synced is damage. Batches say what was synced before them (store/log_mark.h), and the
 * manifest does of logs that are complete; of the last batches, which nothing follows, nobody says it: there a sector of
 * zeros counts as not synced, a flipped bit as damage. */
#ifndef STORE_LOG_TAIL_H
#define STORE_LOG_TAIL_H

#include "base/err.h"

enum log_state {
    LOG_WHOLE,     /* as far as RocksDB will not tell itself: also where there is no database, or no manifest,
                  * or what they say is not all known here */
    LOG_TORN,      /* to be cut before RocksDB sees it */
    LOG_DAMAGED,   /* something is missing that was synced, or the manifest does not tell */
    LOG_UNREADABLE /* a file cannot be read: nothing is known */
};

/* Looks at the database's logs and its manifest, and changes nothing. why: of a state that is not LOG_WHOLE, a text,
 * and EX_DATAERR, or EX_IOERR of the last. */
enum log_state log_tail_look(const char *db_path, struct err *why);
/* If they are LOG_TORN, cuts off what is torn, with a warning. Returns whether it did; -1 and e: it could not. */
int log_tail_cut(const char *db_path, struct err *e);

#endif
