/* The pieces of RocksDB's write-ahead log and of its manifest. Format: its wiki, "Write Ahead Log File Format"; since LevelDB:
 * blocks of 32 KiB, in each of them pieces, of which one or more make a record. */
#ifndef STORE_LOG_PIECE_H
#define STORE_LOG_PIECE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LOG_BLOCK 32768
#define LOG_HEADER 7 /* checksum 4, length 2, both little-endian; type 1 */

enum piece { PIECE_NONE = 0, PIECE_FULL = 1, PIECE_FIRST = 2, PIECE_MIDDLE = 3, PIECE_LAST = 4 };
#define PIECE_IGNORABLE 128 /* with this bit: no record, and who does not know it may pass it by */

struct log_piece {
    unsigned type;
    const char *data; /* borrows */
    size_t n;
    size_t size; /* with its header */
};

enum log_piece_state {
    LOG_PIECE_WHOLE,
    LOG_PIECE_NOTHING, /* zeros: nothing was written in the rest of the block */
    LOG_PIECE_BAD      /* out->size is 0 where it cannot be right */
};
/* Reads the piece at p; n: what its block has from there on, at least LOG_HEADER. */
enum log_piece_state log_piece_read(const unsigned char *p, size_t n, struct log_piece *out);

/* Adds a piece; n: at most 65535. */
void log_piece_put(struct buf *out, unsigned type, const char *data, size_t n);

#endif
