/* What a power cut may leave at the end of RocksDB's logs: records of which some sectors were written and some were not.
 * RocksDB takes that for corruption, unless it is simply cut short. Nobody was told that they are safe: they were never
 * synced. */
#ifndef STORE_LOG_TAIL_H
#define STORE_LOG_TAIL_H

#include <stdbool.h>

#include "base/err.h"

/* Of the write-ahead log, at most so many bytes wait for a sync, and then the batch that brings it: a disk may write their
 * sectors in any order, so that behind a torn record there may be whole ones, as little safe as that one. */
#define LOG_UNSYNCED_MAX (256u << 10)

/* Looks at the end of the database's write-ahead log and of its manifest; with cut, cuts off what is torn, else only looks.
 * Torn is what begins with a record of which a whole sector is zeros, with no whole record that begins more than
 * LOG_UNSYNCED_MAX behind (in the manifest: none at all). All other damage, a flipped bit even in the last record, is
 * none of ours. Returns how many files are torn, or -1 and e. */
int log_tail_torn(const char *db_path, bool cut, struct err *e);

/* Whether some log of the database has zeros instead of a record, with more behind. RocksDB passes by what follows in that
 * block without a word. Returns 1, 0 (also where there is no database), or -1 and EX_IOERR: what cannot be read may have one. */
int log_has_hole(const char *db_path, struct err *e);

#endif
