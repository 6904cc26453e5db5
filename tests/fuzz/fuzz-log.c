/* RocksDB's logs and manifest as a crash leaves them, of any records and any bytes between. The input builds both files: a byte
 * says of which file (its highest bit) and what comes: 0 raw bytes, 127 zeros, else a piece of this type, with its checksum;
 * then their number, then they. Whatever is there, what is torn is cut off once, and then all is whole; else nothing is. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tree.h"
#include "fuzz.h"
#include "store/log_mark.h"
#include "store/log_piece.h"
#include "store/log_reader.h"
#include "store/log_tail.h"

#define ZEROS 127
#define UNIT 16             /* zeros come in so many at once: a sector is 512 */
#define ZEROS_MAX (1 << 20) /* of an input: two bytes of it would make 4080 else */

static char *dir;      /* in memory, if there is such a place: cuts are synced */
static char *paths[2]; /* the log, the manifest */

static void remove_dir(void)
{
    struct err e;

    (void)tree_remove(dir, &e);
    free(dir);
    free(paths[0]);
    free(paths[1]);
}

static void put_file(const char *path, struct slice content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK(fd >= 0 && write(fd, content.p, content.n) == (ssize_t)content.n);
    close(fd);
}

static int64_t size_of(const char *path)
{
    struct stat st;

    CHECK(stat(path, &st) == 0);
    return st.st_size;
}

static void make_dir(void)
{
    dir = xasprintf("%s/fuzz-log-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(dir) != NULL && atexit(remove_dir) == 0);
    paths[0] = xasprintf("%s/000002.log", dir);
    paths[1] = xasprintf("%s/MANIFEST-000001", dir);
    char *current = xasprintf("%s/CURRENT", dir);
    put_file(current, slice_str("MANIFEST-000001\n"));
    free(current);
    log_setup(LOG_ERROR, LOG_TEXT, false);
}

static void build(const uint8_t *data, size_t n, struct buf files[2])
{
    static const char zeros[UNIT];
    size_t left = ZEROS_MAX;

    while (n >= 2) {
        struct buf *out = &files[data[0] >> 7];
        unsigned what = data[0] & 127;
        size_t length = data[1];
        data += 2, n -= 2;
        if (what == ZEROS) {
            for (; length > 0 && left >= UNIT; length--, left -= UNIT)
                buf_add(out, zeros, UNIT);
            continue;
        }
        length = length < n ? length : n;
        if (what == 0)
            buf_add(out, data, length);
        else
            log_piece_put(out, what, (const char *)data, length);
        data += length, n -= length;
    }
}

static void read_log(int64_t size)
{
    struct log_reader r;
    struct log_batch b;
    uint64_t end = 0;

    CHECK(log_reader_open(&r, paths[0], LOG_BATCH_HEAD) == 0);
    while (log_reader_next(&r) > 0) {
        CHECK(r.begin >= end && r.end > r.begin && r.end <= (uint64_t)size && r.head.n <= LOG_BATCH_HEAD);
        end = r.end;
        (void)log_batch_read(buf_slice(&r.head), &b);
    }
    CHECK(r.end == (uint64_t)size);
    log_reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf files[2] = {BUF_EMPTY, BUF_EMPTY};
    struct err why = ERR_NONE, e = ERR_NONE;

    if (!paths[0])
        make_dir();
    build(data, n, files);
    for (int i = 0; i < 2; i++)
        put_file(paths[i], buf_slice(&files[i]));
    read_log((int64_t)files[0].n);
    enum log_state state = log_tail_look(dir, &why);
    CHECK(state == LOG_WHOLE || (why.text[0] && state != LOG_UNREADABLE));
    CHECK(log_tail_cut(dir, &e) == (state == LOG_TORN));
    if (state == LOG_TORN)
        CHECK(log_tail_look(dir, &why) == LOG_WHOLE && log_tail_cut(dir, &e) == 0);
    else
        CHECK(size_of(paths[0]) == (int64_t)files[0].n && size_of(paths[1]) == (int64_t)files[1].n);
    buf_free(&files[0]);
    buf_free(&files[1]);
    return 0;
}
