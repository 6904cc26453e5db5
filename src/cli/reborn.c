#include "cli/reborn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/tree.h"
#include "cli/command.h"
#include "spool/spool.h"
#include "store/dir.h"

static void note_box(struct reborn *r, struct spool_box *b)
{
    struct spool_box_status st;

    spool_box_status(b, &st);
    r->unfinished += st.counts.pending + st.counts.processing;
    r->ended += st.counts.done + st.counts.dead;
    if (r->n_bots && !strcmp(r->bots[r->n_bots - 1], spool_box_bot(b)))
        return; /* boxes of one bot stand together */
    r->bots = xrealloc(r->bots, (r->n_bots + 1) * sizeof(*r->bots));
    r->bots[r->n_bots++] = xstrdup(spool_box_bot(b));
}

static void note_all(struct reborn *r, struct spool *sp)
{
    char instance[33];

    for (struct spool_box *b = spool_next_box(sp, NULL); b; b = spool_next_box(sp, b))
        note_box(r, b);
    spool_identity(sp, instance, &r->generation);
}

/* What an open spool puts beside its database, and what a migration left. */
static int remove_rest(void *arg, const char *name, struct err *e)
{
    if (!strcmp(name, STORE_MARKER) || !strcmp(name, "db"))
        return 0;
    char *path = xasprintf("%s/%s", (const char *)arg, name);
    int rc = tree_remove(path, e);
    free(path);
    return rc;
}

int reborn_make(char *dir, int64_t cache_bytes, int64_t taken_at, struct reborn *r, struct err *e)
{
    const struct spool_options o = {.dir = dir, .cache_bytes = cache_bytes, .sync = SYNC_ALWAYS};
    struct spool *sp = spool_open(&o, clock_wall_ms(), e);
    char who[48];

    *r = (struct reborn){0};
    if (!sp)
        return -1;
    snprintf(who, sizeof(who), "uid %ld (command)", (long)getuid());
    spool_begin(sp, clock_wall_ms());
    int rc = spool_restore(sp, taken_at, who, e);
    note_all(r, sp);
    spool_close(sp);
    return rc < 0 || dir_each(dir, remove_rest, dir, e) ? -1 : 0;
}

bool reborn_is(char *dir, int64_t cache_bytes, int64_t taken_at, struct reborn *r)
{
    const struct spool_options o = {.dir = dir, .cache_bytes = cache_bytes};
    struct err none = ERR_NONE;
    struct spool *sp = spool_look(&o, clock_wall_ms(), &none);
    bool is = false;

    *r = (struct reborn){0};
    if (!sp)
        return false;
    for (struct spool_box *b = spool_next_box(sp, NULL); b && !is; b = spool_next_box(sp, b)) {
        struct spool_restored restored;
        spool_restored(b, &restored);
        is = restored.at && restored.taken_at == taken_at && restored.missing == RESTORED_UNKNOWN;
    }
    if (is)
        note_all(r, sp);
    spool_close(sp);
    return is;
}

void reborn_free(struct reborn *r)
{
    for (size_t i = 0; i < r->n_bots; i++)
        free(r->bots[i]);
    free(r->bots);
    *r = (struct reborn){0};
}

void reborn_print_resume(const struct reborn *r)
{
    for (size_t i = 0; i < r->n_bots; i++) {
        char *command = xasprintf("tgspool resume %s deliver", r->bots[i]);
        struct buf line = BUF_EMPTY;
        cli_add_command(&line, command);
        cli_print("  %s\n", buf_str(&line));
        buf_free(&line);
        free(command);
    }
}
