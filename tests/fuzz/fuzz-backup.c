/* What the files that tell about a spool say, of any bytes: the marker with its schema, and the list of a backup. What is
 * accepted must be writable, and read the same again. */
#include "fuzz.h"

#include "store/backup_list.h"
#include "store/marker.h"

static void try_marker(struct slice text)
{
    char again[MARKER_MAX];
    int schema = 0, same = 0;

    if (!marker_read(text, &schema))
        return;
    CHECK(schema >= 1);
    CHECK(marker_read(slice_str(marker_text(schema, again)), &same) && same == schema);
}

static void check_same(const struct backup_list *a, const struct backup_list *b)
{
    CHECK(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        CHECK(!strcmp(a->files[i].name, b->files[i].name) && a->files[i].bytes == b->files[i].bytes);
        CHECK(a->files[i].mtime_ns == b->files[i].mtime_ns);
        CHECK(a->files[i].name[0] && a->files[i].name[0] != '/' && !strstr(a->files[i].name, ".."));
    }
}

static void try_list(struct slice text)
{
    struct backup_info info, info_again;
    struct backup_list files = {0}, files_again = {0};
    struct buf out = BUF_EMPTY;
    struct err e = ERR_NONE;

    if (backup_list_parse(text, "f", &info, &files, &e) < 0) {
        CHECK((e.exit_code == EX_DATAERR || e.exit_code == EX_CONFIG) && e.text[0]);
    } else {
        CHECK(info.number >= 1 && info.taken_at >= 1 && info.schema >= 1);
        backup_list_text(&out, &info, &files);
        CHECK(backup_list_parse(buf_slice(&out), "f", &info_again, &files_again, &e) == 0);
        check_same(&files, &files_again);
        CHECK(info.taken_at == info_again.taken_at && info.highest_seq == info_again.highest_seq);
        CHECK(!strcmp(info.version, info_again.version) && !strcmp(info.instance, info_again.instance));
    }
    backup_list_free(&files);
    backup_list_free(&files_again);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice text = slice_make(data, n);

    try_marker(text);
    try_list(text);
    return 0;
}
