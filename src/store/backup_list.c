#include "store/backup_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "store/dir.h"
#include "wire/json.h"

#define FORMAT 1
#define SIZE_MAX_BYTES (64u << 20)

void backup_list_add(struct backup_list *l, const char *name, uint64_t bytes, int64_t mtime_ns)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->files = xrealloc(l->files, l->cap * sizeof(*l->files));
    }
    l->files[l->n++] = (struct backup_file){xstrdup(name), bytes, mtime_ns};
}

const struct backup_file *backup_list_find(const struct backup_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->files[i].name, name))
            return &l->files[i];
    return NULL;
}

void backup_list_free(struct backup_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->files[i].name);
    free(l->files);
    *l = (struct backup_list){0};
}

int64_t backup_mtime(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static bool get_number(const struct json *o, const char *key, int64_t min, int64_t max, int64_t *out)
{
    return json_to_i64(json_get(o, key), out) == 0 && *out >= min && *out <= max;
}

/* Nothing that is listed has other than printable ASCII in it. */
static bool get_text(const struct json *o, const char *key, char *out, size_t size)
{
    struct slice s = json_string(json_get(o, key));

    if (!s.n || s.n >= size)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < ' ' || s.p[i] > '~')
            return false;
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

static bool read_info(const struct json *root, struct backup_info *info)
{
    int64_t number, schema, generation, unfinished, ended, highest;

    if (!get_number(root, "number", 1, UINT32_MAX, &number) ||
        !get_number(root, "taken_at_ms", 1, INT64_MAX, &info->taken_at) ||
        !get_number(root, "schema", 1, INT32_MAX, &schema) ||
        !get_number(root, "generation", 0, INT64_MAX, &generation) ||
        !get_number(root, "unfinished", 0, INT64_MAX, &unfinished) ||
        !get_number(root, "ended", 0, INT64_MAX, &ended) ||
        !get_number(root, "highest_seq", 0, INT64_MAX, &highest) ||
        !get_text(root, "version", info->version, sizeof(info->version)) ||
        !get_text(root, "instance", info->instance, sizeof(info->instance)))
        return false;
    info->number = (unsigned)number;
    info->schema = (int)schema;
    info->generation = (uint64_t)generation;
    info->unfinished = (uint64_t)unfinished;
    info->ended = (uint64_t)ended;
    info->highest_seq = (uint64_t)highest;
    return true;
}

static bool read_files(const struct json *list, struct backup_list *files)
{
    for (size_t i = 0; i < json_length(list); i++) {
        const struct json *f = json_item(list, i);
        char name[256];
        int64_t bytes, mtime;
        if (!get_text(f, "name", name, sizeof(name)) || name[0] == '/' || strstr(name, "..") ||
            !get_number(f, "bytes", 0, INT64_MAX, &bytes) ||
            !get_number(f, "mtime_ns", INT64_MIN, INT64_MAX, &mtime))
            return false;
        backup_list_add(files, name, (uint64_t)bytes, mtime);
    }
    return json_type(list) == JSON_ARRAY;
}

static void damaged(const char *path, struct err *e)
{
    int n = (int)(strlen(path) - strlen(BACKUP_FILE));

    err_set(e, EX_DATAERR, "%s is damaged; the state beside it may be whole: tgspool verify %.*sstate-N",
            path, n, path);
}

int backup_list_parse(struct slice text, const char *path, struct backup_info *info,
                      struct backup_list *files, struct err *e)
{
    struct json *root = json_parse(text, NULL);
    int64_t format = 0;
    int rc = -1;

    memset(info, 0, sizeof(*info));
    if (!root || !get_number(root, "format", 1, INT32_MAX, &format))
        damaged(path, e);
    else if (format > FORMAT)
        err_set(e, EX_CONFIG, "%s was written by a newer tgspool (format %lld, this one knows %d)", path,
                (long long)format, FORMAT);
    else if (!read_info(root, info) || (files && !read_files(json_get(root, "files"), files)))
        damaged(path, e);
    else if (info->schema > STORE_SCHEMA)
        err_set(e, EX_CONFIG, "%s is of a spool of schema %d, this tgspool knows %d", path, info->schema,
                STORE_SCHEMA);
    else
        rc = 0;
    json_free(root);
    return rc;
}

int backup_list_read(const char *dir, struct backup_info *info, struct backup_list *files, struct err *e)
{
    char *path = xasprintf("%s/" BACKUP_FILE, dir);
    struct buf text = BUF_EMPTY;
    int rc = -1;

    memset(info, 0, sizeof(*info));
    if (access(path, F_OK) < 0 && errno == ENOENT)
        err_set(e, EX_NOINPUT, "%s is no backup: it holds no file " BACKUP_FILE, dir);
    else if (file_read(path, SIZE_MAX_BYTES, &text, e) == 0)
        rc = backup_list_parse(buf_slice(&text), path, info, files, e);
    buf_free(&text);
    free(path);
    return rc;
}

/* ---- writing ------------------------------------------------------------------------------------ */

void backup_list_text(struct buf *out, const struct backup_info *info, const struct backup_list *files)
{
    struct json_out j;
    char time[32];

    json_start(&j, out);
    json_object(&j);
    json_kv_int(&j, "format", FORMAT);
    json_kv_uint(&j, "number", info->number);
    json_kv_cstr(&j, "taken_at", text_time(info->taken_at, time));
    json_kv_int(&j, "taken_at_ms", info->taken_at);
    json_kv_cstr(&j, "version", info->version);
    json_kv_int(&j, "schema", info->schema);
    json_kv_cstr(&j, "instance", info->instance);
    json_kv_uint(&j, "generation", info->generation);
    json_kv_uint(&j, "unfinished", info->unfinished);
    json_kv_uint(&j, "ended", info->ended);
    json_kv_uint(&j, "highest_seq", info->highest_seq);
    json_key(&j, "files");
    json_array(&j);
    for (size_t i = 0; i < files->n; i++) {
        json_object(&j);
        json_kv_cstr(&j, "name", files->files[i].name);
        json_kv_uint(&j, "bytes", files->files[i].bytes);
        json_kv_int(&j, "mtime_ns", files->files[i].mtime_ns);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(out, '\n');
}

int backup_list_write(const char *dir, const struct backup_info *info, const struct backup_list *files,
                      struct err *e)
{
    char *path = xasprintf("%s/" BACKUP_FILE, dir);
    struct buf text = BUF_EMPTY;

    backup_list_text(&text, info, files);
    int rc = file_replace(path, buf_slice(&text), e);
    buf_free(&text);
    free(path);
    return rc;
}
