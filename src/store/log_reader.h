/* RocksDB's write-ahead log or manifest, record by record, a block of it in memory at a time; and what stands between whole
 * records, which RocksDB partly passes by without a word. */
#ifndef STORE_LOG_READER_H
#define STORE_LOG_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/log_piece.h"

/* What stands before a record instead of whole ones, or behind the last one. */
enum log_gap {
    LOG_GAP_NONE,      /* nothing, or zeros up to the end of the file */
    LOG_GAP_SHORT,     /* the file ends within a record that is right as far as it goes: RocksDB lets it be */
    LOG_GAP_UNWRITTEN, /* a record of which a sector is zeros, so as a power cut leaves it */
    LOG_GAP_BAD        /* anything else, as a flipped bit */
};

struct log_reader {
    int fd; /* owned */
    size_t keep;
    unsigned char block[LOG_BLOCK];
    size_t n, at;        /* bytes in the block; the next piece in it */
    uint64_t block_from; /* where in the file it begins */
    bool inside;         /* of a record whose beginning was whole */
    bool foreign;        /* there is a piece of a kind that is not known here: the rest may mean anything */
    bool zeros;          /* were met instead of a piece; nothing may follow them */
    enum log_gap gap;    /* of what was met since the last record, the first */
    uint64_t begun;      /* where the record that is being read begins */
    /* what log_reader_next found: */
    uint64_t begin, end; /* of the record */
    struct buf head;     /* its bytes, the first `keep` */
    enum log_gap before; /* it */
};

/* keep: of a record, that many bytes. Returns 0, or -1 and errno. To be closed in either case. */
int log_reader_open(struct log_reader *r, const char *path, size_t keep);
/* Goes to the next whole record. Returns 1 if there is one; 0 if not: `end` is then the size of the file, and `before` what
 * stands behind the last record; or -1 and errno: nothing is known of the rest. */
int log_reader_next(struct log_reader *r);
void log_reader_close(struct log_reader *r);

#endif
