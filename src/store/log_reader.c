#include "store/log_reader.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define SECTOR 512 /* what a disk writes at once, at least */

int log_reader_open(struct log_reader *r, const char *path, size_t keep)
{
    memset(r, 0, sizeof(*r));
    r->keep = keep;
    r->fd = open(path, O_RDONLY | O_CLOEXEC);
    return r->fd < 0 ? -1 : 0;
}

void log_reader_close(struct log_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    buf_free(&r->head);
}

static bool all_zero(const unsigned char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Whether a sector that begins before `to`, or what the block has of it from `from` on, is zeros. */
static bool has_unwritten_sector(const struct log_reader *r, size_t from, size_t to)
{
    for (size_t at = from; at < to;) {
        size_t end = (at / SECTOR + 1) * SECTOR;
        if (end > r->n)
            end = r->n;
        if (all_zero(r->block + at, end - at))
            return true;
        at = end;
    }
    return false;
}

/* Where behind a piece that is not whole, of whose length nothing is sure, the next whole one begins; else the end. */
static size_t next_whole(const struct log_reader *r)
{
    struct log_piece piece;

    for (size_t at = r->at + 1; at + LOG_HEADER <= r->n; at++)
        if (r->block[at + 6] >= PIECE_FULL && r->block[at + 6] <= PIECE_LAST &&
            log_piece_read(r->block + at, r->n - at, &piece) == LOG_PIECE_WHOLE)
            return at;
    return r->n;
}

static void met(struct log_reader *r, enum log_gap gap)
{
    if (r->gap == LOG_GAP_NONE)
        r->gap = gap;
}

/* Passes by what is no whole piece. */
static void pass(struct log_reader *r, enum log_piece_state state, const struct log_piece *piece)
{
    size_t next = next_whole(r), end = r->at + (piece->size ? piece->size : LOG_HEADER);
    bool cut = state == LOG_PIECE_BAD && !piece->size && r->n < LOG_BLOCK && next == r->n;

    if (!piece->size && state == LOG_PIECE_BAD)
        end = next; /* its length is wrong, or the file ends */
    /* what a power cut left of a head has one of our kinds, or none */
    if (r->block[r->at + 6] <= PIECE_LAST && has_unwritten_sector(r, r->at, end))
        met(r, LOG_GAP_UNWRITTEN);
    else
        met(r, cut ? LOG_GAP_SHORT : LOG_GAP_BAD);
    r->inside = false;
    r->at = next;
}

/* Takes a whole piece. Returns whether a record ends with it. */
static bool take(struct log_reader *r, const struct log_piece *piece)
{
    bool goes_on = piece->type == PIECE_MIDDLE || piece->type == PIECE_LAST;
    size_t room = r->keep - (goes_on ? r->head.n : 0);

    if (r->zeros)
        met(r, LOG_GAP_UNWRITTEN);
    if (r->inside != goes_on) { /* of a record, the beginning or the end is not there */
        met(r, LOG_GAP_BAD);
        r->inside = false;
    }
    if (!goes_on) {
        r->begun = r->block_from + r->at;
        buf_clear(&r->head);
    }
    r->at += piece->size;
    if (goes_on && !r->inside)
        return false;
    buf_add(&r->head, piece->data, piece->n < room ? piece->n : room);
    r->inside = piece->type == PIECE_FIRST || piece->type == PIECE_MIDDLE;
    return !r->inside;
}

/* Takes what is next in the block. Returns whether a record ends there. */
static bool step(struct log_reader *r)
{
    struct log_piece piece;
    enum log_piece_state state = log_piece_read(r->block + r->at, r->n - r->at, &piece);

    if (state == LOG_PIECE_WHOLE && (piece.type < PIECE_FULL || piece.type > PIECE_LAST)) {
        r->foreign |= !(piece.type & PIECE_IGNORABLE);
        r->at += piece.size;
        return false;
    }
    if (state == LOG_PIECE_WHOLE)
        return take(r, &piece);
    if (state == LOG_PIECE_BAD || !all_zero(r->block + r->at, r->n - r->at)) {
        pass(r, state, &piece);
        return false;
    }
    if (r->inside)
        met(r, LOG_GAP_UNWRITTEN); /* the rest of the record */
    r->inside = false;
    r->zeros = true;
    r->at = r->n;
    return false;
}

/* Returns 1 if there is one, 0, or -1 and errno. */
static int next_block(struct log_reader *r)
{
    ssize_t n = file_read_block(r->fd, r->block, LOG_BLOCK);

    r->block_from += r->n;
    r->n = n < 0 ? 0 : (size_t)n;
    r->at = 0;
    return n < 0 ? -1 : n > 0;
}

int log_reader_next(struct log_reader *r)
{
    int more;

    do {
        while (r->n - r->at >= LOG_HEADER)
            if (step(r)) {
                r->begin = r->begun;
                r->end = r->block_from + r->at;
                r->before = r->gap;
                r->gap = LOG_GAP_NONE;
                r->zeros = false;
                return 1;
            }
        if (r->n - r->at > 0 && r->n < LOG_BLOCK && !all_zero(r->block + r->at, r->n - r->at))
            met(r, LOG_GAP_SHORT); /* less than a head at the end of the file */
    } while ((more = next_block(r)) > 0);
    if (more < 0)
        return -1;
    if (r->inside)
        met(r, LOG_GAP_SHORT);
    r->inside = false;
    r->before = r->gap;
    r->begin = r->end = r->block_from;
    return 0;
}
