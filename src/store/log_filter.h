/* RocksDB's write-ahead log without its damage. RocksDB itself ends at the first damaged record, or (7.8.3) does not open at
 * all where one of several pieces is gone. Format: its wiki, "Write Ahead Log File Format"; since LevelDB. */
#ifndef STORE_LOG_FILTER_H
#define STORE_LOG_FILTER_H

#include <stdint.h>

#include "base/err.h"

/* Writes the log anew, of the records that are whole. *lost grows by the places where something was left out; a torn tail is
 * none. Returns 0, or -1 and e. */
int log_filter(const char *path, unsigned *lost, struct err *e);

#endif
