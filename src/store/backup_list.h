/* BACKUP, the list of what is in a backup: JSON, for people too. Only for store/backup.c. */
#ifndef STORE_BACKUP_LIST_H
#define STORE_BACKUP_LIST_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "store/backup.h"

struct backup_file {
    char *name; /* relative to the spool's directory */
    uint64_t bytes;
    int64_t mtime_ns; /* of the file that was copied */
};

struct backup_list {
    struct backup_file *files;
    size_t n, cap;
};

void backup_list_add(struct backup_list *l, const char *name, uint64_t bytes, int64_t mtime_ns);
const struct backup_file *backup_list_find(const struct backup_list *l, const char *name);
void backup_list_free(struct backup_list *l);
int64_t backup_mtime(const struct stat *st);

/* files may be NULL. Returns 0, or -1 and e as backup_read. */
int backup_list_read(const char *dir, struct backup_info *info, struct backup_list *files, struct err *e);
/* The same of its text; path is for e. On failure files may hold some, to be freed as ever. */
int backup_list_parse(struct slice text, const char *path, struct backup_info *info,
                      struct backup_list *files, struct err *e);
void backup_list_text(struct buf *out, const struct backup_info *info, const struct backup_list *files);
/* In one step, and durable. */
int backup_list_write(const char *dir, const struct backup_info *info, const struct backup_list *files,
                      struct err *e);

#endif
