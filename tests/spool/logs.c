#include "logs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/log_index.h"

char logs_paths[4][COPY_PATH_MAX];

void logs_write(const char *path, int64_t at, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, p, n, at), n);
    close(fd);
}

void logs_zero(const char *path, int64_t from, int64_t to)
{
    static const char zeros[LOG_BLOCK];

    assert_true(to - from <= LOG_BLOCK);
    if (to > from)
        logs_write(path, from, zeros, (size_t)(to - from));
}

int64_t logs_put_piece(const char *path, int64_t at, unsigned type, struct slice data)
{
    struct buf piece = BUF_EMPTY;

    assert_in_range(data.n, 0, 1000);
    log_piece_put(&piece, type, data.p, data.n);
    assert_in_range(at, 0, LOG_BLOCK - piece.n);
    logs_write(path, at, piece.p, piece.n);
    at += (int64_t)piece.n;
    buf_free(&piece);
    return at;
}

const char *logs_manifest(void)
{
    static char path[COPY_PATH_MAX];
    struct err e = ERR_NONE;
    char *found = log_index_path(copy_db, &e);

    assert_non_null(found);
    snprintf(path, sizeof(path), "%s", found);
    free(found);
    return path;
}

void logs_add_record(struct slice record)
{
    (void)logs_put_piece(logs_manifest(), copy_size_of(logs_manifest()), PIECE_FULL, record);
}

void logs_put_number(struct buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        buf_add(b, &(char){(char)(v | 128)}, 1);
    buf_add(b, &(char){(char)v}, 1);
}

void logs_tell(unsigned tag, const uint64_t *numbers, size_t n)
{
    struct buf record = BUF_EMPTY, value = BUF_EMPTY;

    for (size_t i = 0; i < n; i++)
        logs_put_number(&value, numbers[i]);
    logs_put_number(&record, 8192 | tag);
    logs_put_number(&record, value.n);
    buf_add_slice(&record, buf_slice(&value));
    logs_add_record(buf_slice(&record));
    buf_free(&value);
    buf_free(&record);
}

void logs_expect(enum log_state state, const char *what)
{
    struct err e = ERR_NONE;
    enum log_state found = log_tail_look(copy_db, &e);

    if (found != state)
        fail_msg("%s: %d, not %d: %s", what, (int)found, (int)state, e.text);
}

void logs_make(struct world *w)
{
    world_close(w);
    w->sync = SYNC_OFF;
    world_open(w);
    for (unsigned i = 1; i < 10; i++) {
        world_begin(w);
        world_accept(w, i, 1, "some text, so that it is of more than a few bytes");
        spool_commit(w->sp);
    }
}

const char *logs_torn(struct world *w)
{
    copy_make(w);
    assert_int_equal(copy_files(copy_dir, ".log", logs_paths, ARRAY_LEN(logs_paths)), 1);
    logs_zero(logs_paths[0], copy_piece_at(logs_paths[0], 3), copy_piece_at(logs_paths[0], 5));
    logs_expect(LOG_TORN, "a hole");
    return logs_paths[0];
}

void logs_two(struct world *w)
{
    static const struct slice key = {"key", 3};
    char text[60000] = "";
    struct err e = ERR_NONE;

    if (w->sp)
        world_close(w);
    struct db *db = world_db(w->dir, DB_OPEN);
    while (copy_files(w->dir, ".log", logs_paths, ARRAY_LEN(logs_paths)) < 2) {
        db_put(db, FAMILY_META, key, slice_make(text, sizeof(text))); /* more than its share of memory */
        db_put(db, FAMILY_EVENTS, key, key);
        assert_int_equal(db_write(db, false, &e), DB_WRITTEN);
    }
    for (int i = 0; i < 3; i++) {
        db_put(db, FAMILY_EVENTS, key, slice_make(text, 2000));
        assert_int_equal(db_write(db, false, &e), DB_WRITTEN);
    }
    while (db_flushing(db))
        usleep(1000);
    db_close(db);
    copy_make(w);
    assert_int_equal(copy_files(copy_dir, ".log", logs_paths, ARRAY_LEN(logs_paths)), 2);
}
