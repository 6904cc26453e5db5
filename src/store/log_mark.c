/* A batch, as RocksDB's write_batch.cc tells: sequence number 8, rows 4, both little-endian, then the entries. Of those, a
 * mark comes first: type 3 ("log data"), its length, its bytes. */
#include "store/log_mark.h"

#define LOG_DATA 3
#define VERSION 1

void log_mark_make(uint64_t synced, uint64_t unsynced, char out[LOG_MARK_SIZE])
{
    out[0] = 'S'; /* another program's are not ours */
    out[1] = VERSION;
    put_be64(out + 2, synced);
    put_be32(out + 10, unsynced < UINT32_MAX ? (uint32_t)unsynced : UINT32_MAX);
}

static uint64_t get_le(const char *p, unsigned n)
{
    uint64_t v = 0;

    while (n--)
        v = v << 8 | (unsigned char)p[n];
    return v;
}

int log_batch_read(struct slice record, struct log_batch *out)
{
    if (record.n < 12)
        return -1;
    const char *entry = record.p + 12;

    *out = (struct log_batch){.first = get_le(record.p, 8)};
    out->next = out->first + get_le(record.p + 8, 4);
    if (record.n < LOG_BATCH_HEAD || entry[0] != LOG_DATA || entry[1] != LOG_MARK_SIZE || entry[2] != 'S' ||
        entry[3] != VERSION)
        return 0;
    out->marked = true;
    out->mark.synced = get_be64(entry + 4);
    out->mark.unsynced = get_be32(entry + 12);
    return 0;
}
