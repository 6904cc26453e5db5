/* Records of a manifest: tags, each with its value (RocksDB's version_edit.cc). */
#include "store/log_index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

/* What stands behind a tag: a letter each for numbers (n) and bytes (b, with their length in front); a dot: then tags of its
 * own with bytes, until FIELDS_END. */
#define FIELDS_END 1
static const struct shape {
    uint64_t tag;
    const char *values;
} shapes[] = {
    {1, "b"},          /* the name of the order of keys */
    {2, "n"},          /* TAG_FAMILY_LOG */
    {3, "n"},          /* TAG_NEXT_FILE */
    {4, "n"},          /* TAG_LAST_SEQUENCE */
    {5, "nb"},         /* where compaction goes on */
    {6, "nn"},         /* a table that is gone */
    {9, "n"},          /* earlier log */
    {10, "n"},         /* TAG_OLDEST_LOG */
    {103, "nnnbbnn."}, /* a new table */
    {200, "n"},        /* TAG_FAMILY */
    {201, "b"},        /* TAG_FAMILY_ADDED, its name */
    {202, ""},         /* TAG_FAMILY_GONE */
    {203, "n"},        /* the highest number of a family */
    {300, "n"},        /* so many records belong together */
};
enum tag {
    TAG_FAMILY_LOG = 2, /* of the family, what older logs hold is in tables */
    TAG_NEXT_FILE = 3,  /* the lowest number that was free; it grows */
    TAG_LAST_SEQUENCE = 4,
    TAG_OLDEST_LOG = 10,
    TAG_FAMILY = 200, /* that the record is about; none: number 0 */
    TAG_FAMILY_ADDED = 201,
    TAG_FAMILY_GONE = 202,
    TAG_LENGTH_TOLD = 1 << 13, /* of this bit: always bytes */
    TAG_LOG_ADDED = TAG_LENGTH_TOLD | 7,
    TAG_LOGS_GONE =
        TAG_LENGTH_TOLD | 8 /* what was told of logs with lower numbers is void; they may be needed yet */
};
#define RECORD_MAX (16u << 20)
#define ADDED_SYNCED 2 /* a tag within TAG_LOG_ADDED; the other one ends it */

/* Takes a varint off the front. Returns whether there was one. */
static bool take_number(struct slice *s, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && s->n; shift += 7) {
        unsigned char c = (unsigned char)*s->p;
        s->p++;
        s->n--;
        *out |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return true;
    }
    return false;
}

static bool take_bytes(struct slice *s, struct slice *out)
{
    uint64_t n;

    if (!take_number(s, &n) || n > s->n)
        return false;
    *out = slice_make(s->p, (size_t)n);
    s->p += n;
    s->n -= (size_t)n;
    return true;
}

/* Of a size told twice, the larger one counts: threads of RocksDB may tell them in any order. */
static void note_synced(struct log_index *x, uint64_t number, uint64_t size)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->synced[i].number == number) {
            if (size > x->synced[i].size)
                x->synced[i].size = size;
            return;
        }
    x->synced = xrealloc(x->synced, (x->n + 1) * sizeof(*x->synced));
    x->synced[x->n++] = (struct log_synced){number, size};
}

static void note_added(struct log_index *x, struct slice value)
{
    uint64_t number, tag, size;

    if (take_number(&value, &number))
        while (take_number(&value, &tag) && tag == ADDED_SYNCED && take_number(&value, &size))
            note_synced(x, number, size);
}

/* So few are left: what a manifest tells of years stays linear. */
static void forget_synced(struct log_index *x, uint64_t below)
{
    size_t n = 0;

    for (size_t i = 0; i < x->n; i++)
        if (x->synced[i].number >= below)
            x->synced[n++] = x->synced[i];
    x->n = n;
}

static void note_oldest(struct log_index *x, uint64_t number)
{
    if (number > x->oldest)
        x->oldest = number;
}

struct field {
    uint64_t tag, number; /* the first one behind the tag */
    struct slice bytes;   /* the last ones; borrows */
};

/* Takes a tag and what stands behind it off the front. Returns whether it is known here, and all there. */
static bool take_field(struct slice *s, struct field *out)
{
    const char *values = NULL;
    uint64_t ignored;
    bool first = true;

    if (!take_number(s, &out->tag))
        return false;
    if (out->tag & TAG_LENGTH_TOLD)
        values = "b";
    for (size_t i = 0; i < ARRAY_LEN(shapes) && !values; i++)
        if (shapes[i].tag == out->tag)
            values = shapes[i].values;
    for (; values && *values; values++, first = false) {
        if (*values == '.')
            while (take_number(s, &ignored) && ignored != FIELDS_END)
                if (!take_bytes(s, &out->bytes))
                    return false;
        if (*values == 'n' && !take_number(s, first ? &out->number : &ignored))
            return false;
        if (*values == 'b' && !take_bytes(s, &out->bytes))
            return false;
    }
    return values != NULL;
}

static void read_record(struct log_index *x, struct slice s)
{
    uint64_t number, family = 0, family_log = 0;
    struct field f = {.tag = 0};

    while (s.n) {
        if (!take_field(&s, &f)) {
            x->foreign = true;
            return;
        }
        if (f.tag == TAG_FAMILY_LOG)
            family_log = f.number;
        else if (f.tag == TAG_NEXT_FILE && f.number > x->next_file)
            x->next_file = f.number;
        else if (f.tag == TAG_LAST_SEQUENCE && f.number > x->last_sequence)
            x->last_sequence = f.number;
        else if (f.tag == TAG_FAMILY)
            family = f.number;
        else if (f.tag == TAG_OLDEST_LOG)
            note_oldest(x, f.number);
        else if (f.tag == TAG_LOG_ADDED)
            note_added(x, f.bytes);
        else if (f.tag == TAG_LOGS_GONE && take_number(&f.bytes, &number))
            forget_synced(x, number);
    }
    if (family < FAMILIES && family_log > x->family_oldest[family])
        x->family_oldest[family] = family_log;
}

/* Takes a record behind a gap. Returns its next file if it may be one of several which are synced together; else 0, also where
 * it is not all known here. RocksDB syncs a family that comes or goes alone. */
static uint64_t read_behind(struct log_index *x, struct slice s)
{
    struct field f = {.tag = 0};
    uint64_t next_file = 0;

    while (s.n) {
        if (!take_field(&s, &f) || f.tag == TAG_FAMILY_ADDED || f.tag == TAG_FAMILY_GONE)
            return 0;
        if (f.tag == TAG_NEXT_FILE)
            next_file = f.number;
        else if (f.tag == TAG_LAST_SEQUENCE && f.number > x->last_sequence_behind)
            x->last_sequence_behind = f.number;
    }
    return next_file;
}

/* A log is needed while some family needs it. */
static void note_families(struct log_index *x)
{
    uint64_t least = UINT64_MAX;

    for (int f = 0; f < FAMILIES; f++)
        if (x->family_oldest[f] < least)
            least = x->family_oldest[f];
    note_oldest(x, least);
}

char *log_index_path(const char *db_path, struct err *e)
{
    char *path = xasprintf("%s/CURRENT", db_path), *manifest = NULL;
    struct buf name = BUF_EMPTY;

    if (file_read(path, 256, &name, e) < 0)
        ;
    else if (strncmp(buf_str(&name), "MANIFEST-", 9) != 0)
        err_set(e, EX_DATAERR, "%s names no manifest", path);
    else
        manifest = xasprintf("%s/%.*s", db_path, (int)strcspn(buf_str(&name), "\n/"), buf_str(&name));
    buf_free(&name);
    free(path);
    return manifest;
}

/* What a record behind a gap, and what stands before it, show of the gap. RocksDB syncs the records that it writes at once
 * (of a flush two or more) together, with the same next file, or nearly always: a compaction may take a number meanwhile. So a
 * power cut may have left any of the last ones, but none that is followed by others. (ProcessManifestWrites in its
 * version_set.cc; what it calls an edit is a record.) */
static enum log_gap judge_gap(struct log_index *x, const struct log_reader *r, uint64_t *group)
{
    uint64_t earlier = *group;

    *group = read_behind(x, buf_slice(&r->head));
    if (r->before != LOG_GAP_NONE && r->before != LOG_GAP_UNWRITTEN)
        return LOG_GAP_BAD;
    return *group && (!earlier || *group == earlier) ? LOG_GAP_UNWRITTEN : LOG_GAP_BAD;
}

/* What a manifest begins with is synced before CURRENT names it. The last of these records is the first one whose next file is
 * behind the manifest itself. */
static bool begin_is_whole(const struct log_index *x)
{
    return x->next_file > strtoull(strrchr(x->path, '-') + 1, NULL, 10);
}

static int read_records(struct log_index *x, struct log_reader *r)
{
    uint64_t group = 0; /* of records behind the gap */
    int more;

    while ((more = log_reader_next(r)) > 0) {
        if (x->gap == LOG_GAP_NONE && r->before == LOG_GAP_NONE) {
            read_record(x, buf_slice(&r->head));
            x->good = r->end;
        } else if (x->gap != LOG_GAP_BAD) {
            x->gap = judge_gap(x, r, &group);
        }
    }
    x->size = r->end;
    x->foreign |= r->foreign;
    if (x->gap == LOG_GAP_NONE || r->before == LOG_GAP_BAD)
        x->gap = r->before;
    if ((x->good || x->gap != LOG_GAP_NONE) && !x->foreign && !begin_is_whole(x))
        x->gap = LOG_GAP_BAD;
    return more;
}

int log_index_read(const char *db_path, struct log_index *out, struct err *e)
{
    struct log_reader r;

    *out = (struct log_index){.path = log_index_path(db_path, e)};
    if (!out->path)
        return -1;
    int rc = log_reader_open(&r, out->path, RECORD_MAX);

    if (rc == 0)
        rc = read_records(out, &r);
    if (rc < 0)
        err_set(e, errno == ENOENT ? EX_NOINPUT : EX_IOERR, "cannot read %s: %s", out->path, strerror(errno));
    note_families(out);
    log_reader_close(&r);
    return rc < 0 ? -1 : 0;
}

void log_index_free(struct log_index *x)
{
    free(x->synced);
    free(x->path);
    *x = (struct log_index){.oldest = 0};
}
