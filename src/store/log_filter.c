#include "store/log_filter.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/tree.h"

#define BLOCK 32768
#define HEADER 7 /* checksum 4, length 2, both little-endian; type 1 */
#define LOG_MAX (1u << 30)

enum piece { PIECE_NONE = 0, PIECE_FULL = 1, PIECE_FIRST = 2, PIECE_MIDDLE = 3, PIECE_LAST = 4 };

/* ---- checksum: CRC-32C (RFC 3720, B.4), turned and shifted as RocksDB stores it ------------------ */

static uint32_t crc_of(const unsigned char *p, size_t n)
{
    static uint32_t table[256];
    uint32_t crc = UINT32_MAX;

    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = (c >> 1) ^ (c & 1 ? UINT32_C(0x82f63b78) : 0);
            table[i] = c;
        }
    while (n--)
        crc = (crc >> 8) ^ table[(crc ^ *p++) & 255];
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static uint32_t get_le32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void put_piece(struct buf *out, unsigned type, const char *data, size_t n)
{
    unsigned char *h = (unsigned char *)buf_reserve(out, HEADER + n);

    h[4] = (unsigned char)n;
    h[5] = (unsigned char)(n >> 8);
    h[6] = (unsigned char)type;
    if (n)
        memcpy(h + HEADER, data, n);
    uint32_t crc = crc_of(h + 6, n + 1);
    for (int i = 0; i < 4; i++)
        h[i] = (unsigned char)(crc >> 8 * i);
    buf_added(out, HEADER + n);
}

/* A record in as many pieces as the blocks ask for. type: of a record that is no batch, which is always one piece. */
static void put_record(struct buf *out, unsigned type, struct slice record)
{
    bool first = true;

    for (;;) {
        size_t room = BLOCK - out->n % BLOCK;
        if (room < HEADER) { /* no header fits: zeros up to the next block */
            buf_add(out, "\0\0\0\0\0\0", room);
            room = BLOCK;
        }
        size_t n = record.n < room - HEADER ? record.n : room - HEADER;
        bool last = n == record.n;
        put_piece(out,
                  type != PIECE_FULL ? type
                  : first && last    ? PIECE_FULL
                  : first            ? PIECE_FIRST
                  : last             ? PIECE_LAST
                                     : PIECE_MIDDLE,
                  record.p, n);
        if (last)
            return;
        record = slice_make(record.p + n, record.n - n);
        first = false;
    }
}

/* ---- reading ------------------------------------------------------------------------------------ */

struct filter {
    struct buf *out;
    struct buf record; /* pieces so far */
    bool inside;       /* of a record */
    bool bad;          /* since the last whole record, something was left out */
    unsigned lost;
};

static void whole(struct filter *f, unsigned type, struct slice record)
{
    f->lost += f->bad; /* counted when something follows: what is torn at the end is no damage */
    f->bad = false;
    put_record(f->out, type, record);
}

static void take(struct filter *f, unsigned type, const char *data, size_t n)
{
    if (type == PIECE_MIDDLE || type == PIECE_LAST) {
        if (!f->inside) {
            f->bad = true; /* its beginning is gone */
            return;
        }
        buf_add(&f->record, data, n);
        if (type == PIECE_LAST) {
            f->inside = false;
            whole(f, PIECE_FULL, buf_slice(&f->record));
        }
        return;
    }
    f->bad |= f->inside;
    f->inside = false;
    if (type == PIECE_FIRST) {
        buf_clear(&f->record);
        buf_add(&f->record, data, n);
        f->inside = true;
    } else {
        whole(f, type, slice_make(data, n));
    }
}

/* One block. A piece whose checksum is wrong costs the rest of its block: its length may be wrong, too. */
static void read_block(struct filter *f, const unsigned char *p, size_t n)
{
    while (n >= HEADER) {
        size_t length = p[4] | (size_t)p[5] << 8;
        if (p[6] == PIECE_NONE && length == 0)
            return; /* zeros: nothing was written here */
        if (length > n - HEADER || crc_of(p + 6, length + 1) != get_le32(p)) {
            f->bad = true;
            f->inside = false;
            return;
        }
        take(f, p[6], (const char *)p + HEADER, length);
        p += HEADER + length;
        n -= HEADER + length;
    }
}

int log_filter(const char *path, unsigned *lost, struct err *e)
{
    struct buf in = BUF_EMPTY, out = BUF_EMPTY;
    struct filter f = {.out = &out};
    int rc = file_read(path, LOG_MAX, &in, e);

    for (size_t at = 0; rc == 0 && at < in.n; at += BLOCK)
        read_block(&f, (const unsigned char *)in.p + at, in.n - at < BLOCK ? in.n - at : BLOCK);
    *lost += f.lost;
    if (rc == 0)
        rc = file_replace(path, buf_slice(&out), e);
    buf_free(&f.record);
    buf_free(&in);
    buf_free(&out);
    return rc;
}
