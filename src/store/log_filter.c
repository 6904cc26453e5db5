#include "store/log_filter.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/tree.h"
#include "store/log_piece.h"

#define LOG_MAX (1u << 30)

/* ---- writing ------------------------------------------------------------------------------------ */

/* A record in as many pieces as the blocks ask for. type: of a record that is no batch, which is always one piece. */
static void put_record(struct buf *out, unsigned type, struct slice record)
{
    bool first = true;

    for (;;) {
        size_t room = LOG_BLOCK - out->n % LOG_BLOCK;
        if (room < LOG_HEADER) { /* no header fits: zeros up to the next block */
            buf_add(out, "\0\0\0\0\0\0", room);
            room = LOG_BLOCK;
        }
        size_t n = record.n < room - LOG_HEADER ? record.n : room - LOG_HEADER;
        bool last = n == record.n;
        log_piece_put(out,
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
    struct log_piece piece;

    for (; n >= LOG_HEADER; p += piece.size, n -= piece.size) {
        enum log_piece_state state = log_piece_read(p, n, &piece);
        if (state == LOG_PIECE_NOTHING)
            return;
        if (state == LOG_PIECE_BAD) {
            f->bad = true;
            f->inside = false;
            return;
        }
        take(f, piece.type, piece.data, piece.n);
    }
}

int log_filter(const char *path, unsigned *lost, struct err *e)
{
    struct buf in = BUF_EMPTY, out = BUF_EMPTY;
    struct filter f = {.out = &out};
    int rc = file_read(path, LOG_MAX, &in, e);

    for (size_t at = 0; rc == 0 && at < in.n; at += LOG_BLOCK)
        read_block(&f, (const unsigned char *)in.p + at, in.n - at < LOG_BLOCK ? in.n - at : LOG_BLOCK);
    *lost += f.lost;
    if (rc == 0)
        rc = file_replace(path, buf_slice(&out), e);
    buf_free(&f.record);
    buf_free(&in);
    buf_free(&out);
    return rc;
}
