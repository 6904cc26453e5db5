/* tgspool repair: a damaged spool, made whole or salvaged, on copies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/tree.h"
#include "cli/command.h"
#include "cli/reborn.h"
#include "cli/verify.h"
#include "daemon/configfile.h"
#include "spool/spool.h"
#include "store/dir.h"
#include "store/repair.h"
#include "store/swap.h"
#include "wire/json.h"

#define BOXES_TOLD 64

struct repair {
    const struct cli *cli;
    struct config *config;
    int lock_fd;
    char *tries; /* DIR/repair-tries: a copy for each way */
    struct repair_rows before, after;
    /* what was found */
    bool opens[REPAIR_WAYS];
    unsigned faults[REPAIR_WAYS], lost[REPAIR_WAYS];
    uint64_t events[REPAIR_WAYS]; /* that can be read */
    int best;                     /* way, -1: none */
    struct err unread;            /* by the disk's fault: nobody knows what a way would have saved */
    struct spool_salvaged boxes[BOXES_TOLD];
    size_t n_boxes;
    struct spool_salvaged_rest rest;
    struct reborn reborn;
    char *aside;
};

static char *try_path(const struct repair *r, int way)
{
    return xasprintf("%s/%d", r->tries, way);
}

/* ---- the ways ----------------------------------------------------------------------------------- */

static void try_way(struct repair *r, enum repair_way w, bool fresh)
{
    char *path = try_path(r, (int)w);
    struct verified v = {0};
    struct err e = ERR_NONE;

    r->opens[w] = file_make_dir(path, 0700, &e) == 0 &&
                  repair_try(r->config->dir, w, path, &r->lost[w], &e) == 0 &&
                  spool_salvageable(path, &r->events[w], &e) == 0;
    if (r->opens[w] && !fresh && verify_dir(path, &v, &e) == 0)
        r->faults[w] = v.faults;
    else
        r->faults[w] = 1;
    if (e.exit_code == EX_IOERR)
        r->unread = e;
    if (!r->cli->json && !r->opens[w])
        cli_print("%s: does not open (%s)\n", repair_way_text(w), e.text);
    else if (!r->cli->json)
        cli_print("%s: %llu events can be read%s\n", repair_way_text(w), (unsigned long long)r->events[w],
                  fresh          ? ""
                  : r->faults[w] ? ", with faults"
                                 : ", and all fits together");
    verified_free(&v);
    free(path);
}

/* The way that reads most; of two such, one without a fault. */
static int choose(const struct repair *r)
{
    int best = -1;

    for (int w = 0; w < REPAIR_WAYS; w++)
        if (r->opens[w] && (best < 0 || r->events[w] > r->events[best] ||
                            (r->events[w] == r->events[best] && r->faults[best] && !r->faults[w])))
            best = w;
    return best;
}

/* To choose by what can be read today would leave out what can be read tomorrow. */
static int disk_fails(struct err *e)
{
    struct err why = *e;

    return err_set(
        e, EX_IOERR,
        "nothing was repaired: %.700s. If that stays so, what can be read is put into a new spool by: "
        "tgspool repair --fresh",
        why.text);
}

static int try_ways(struct repair *r, bool fresh, struct err *e)
{
    r->tries = xasprintf("%s/repair-tries", r->config->dir);
    if (tree_remove(r->tries, e) < 0 || file_make_dir(r->tries, 0700, e) < 0)
        return -1;
    for (int w = 0; w < REPAIR_WAYS; w++)
        if (!r->opens[REPAIR_AS_IT_IS])
            try_way(r, (enum repair_way)w, fresh);
        else if (w == REPAIR_REBUILT && (fresh || r->faults[REPAIR_AS_IT_IS]))
            try_way(r, REPAIR_REBUILT,
                    fresh); /* where a table is gone; the log is whole, if it opens as it is */
    r->best = choose(r);
    if (r->unread.exit_code && (!fresh || r->best < 0)) {
        *e = r->unread;
        return disk_fails(e);
    }
    if (r->best < 0)
        return err_set(
            e, EX_DATAERR,
            "nothing of this spool can be read: move it away, then restore a backup: tgspool restore BACKUP");
    if (!fresh && r->faults[r->best])
        return err_set(e, EX_DATAERR,
                       "the copy that has most of it has faults: what can be read is put into a new spool "
                       "by: tgspool repair "
                       "--fresh");
    return 0;
}

/* ---- plain -------------------------------------------------------------------------------------- */

static int put_in_place(struct repair *r, struct err *e)
{
    char *from = try_path(r, r->best), *preparing = swap_prepare(r->config->dir, e);
    int rc = preparing ? 0 : -1;

    if (rc == 0 && file_rename(from, preparing) < 0)
        rc = err_set(e, EX_IOERR, "cannot rename %s", from);
    if (rc == 0)
        rc = reborn_make(preparing, r->config->cache_bytes, clock_wall_ms(), &r->reborn, e);
    if (rc == 0)
        rc = swap_commit(r->config->dir, &r->aside, e);
    free(preparing);
    free(from);
    return rc;
}

static int plain(struct repair *r, bool apply, struct err *e)
{
    char *best;

    if (try_ways(r, false, e) < 0)
        return -1;
    best = try_path(r, r->best);
    repair_count(best, &r->after);
    free(best);
    return apply ? put_in_place(r, e) : 0;
}

/* ---- fresh -------------------------------------------------------------------------------------- */

static void note_box(void *arg, const struct spool_salvaged *s)
{
    struct repair *r = arg;

    if (r->n_boxes < BOXES_TOLD)
        r->boxes[r->n_boxes++] = *s;
}

static int salvage(struct repair *r, const char *to, struct err *e)
{
    const struct spool_options o = {.dir = to, .cache_bytes = r->config->cache_bytes, .sync = SYNC_OFF};
    char *from = try_path(r, r->best);
    struct spool *sp = spool_open(&o, clock_wall_ms(), e);
    int rc = -1;

    if (sp) {
        spool_begin(sp, clock_wall_ms());
        rc = spool_salvage(sp, from, note_box, r, &r->rest, e);
        spool_close(sp);
    }
    free(from);
    return rc;
}

static int fresh(struct repair *r, struct err *e)
{
    char *preparing = NULL;
    int rc = -1;

    if (try_ways(r, true, e) == 0 && (preparing = swap_prepare(r->config->dir, e)) != NULL)
        rc = salvage(r, preparing, e);
    if (rc == 0)
        rc = reborn_make(preparing, r->config->cache_bytes, clock_wall_ms(), &r->reborn, e);
    if (rc == 0)
        rc = swap_commit(r->config->dir, &r->aside, e);
    else if (preparing)
        tree_remove(preparing, NULL);
    free(preparing);
    return rc;
}

/* ---- the account -------------------------------------------------------------------------------- */

static void json_rows(struct json_out *j, const char *name, const struct repair_rows *rows)
{
    json_key(j, name);
    json_object(j);
    for (int f = 0; rows->opens && f < FAMILIES; f++) {
        json_key(j, family_name((enum family)f));
        json_object(j);
        json_kv_uint(j, "rows", rows->n[f]);
        json_kv_bool(j, "whole", rows->whole[f]);
        json_object_end(j);
    }
    json_object_end(j);
}

static void json_rest(struct json_out *j, const struct spool_salvaged_rest *s)
{
    json_key(j, "faults");
    json_object(j);
    json_kv_uint(j, "keys", s->key_faults);
    json_kv_uint(j, "positions", s->position_faults);
    json_kv_uint(j, "notes", s->note_faults);
    json_kv_uint(j, "audit", s->audit_faults);
    json_object_end(j);
}

static void json_account(const struct repair *r, bool nothing)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &out);
    json_object(&j);
    json_kv_bool(&j, "needed", !nothing);
    json_kv_cstr(&j, "way", r->best >= 0 ? repair_way_text((enum repair_way)r->best) : NULL);
    json_kv_uint(&j, "log_lost", r->best >= 0 ? r->lost[r->best] : 0);
    json_rows(&j, "before", &r->before);
    json_rows(&j, "after", &r->after);
    json_key(&j, "boxes");
    json_array(&j);
    for (size_t i = 0; i < r->n_boxes; i++) {
        const struct spool_salvaged *s = &r->boxes[i];
        json_object(&j);
        json_kv_cstr(&j, "bot", s->bot);
        json_kv_cstr(&j, "box", box_name(s->box));
        json_kv_bool(&j, "record_known", s->record_known);
        json_kv_uint(&j, "counted", s->counted);
        json_kv_uint(&j, "waiting", s->waiting);
        json_kv_uint(&j, "ended", s->ended);
        json_kv_uint(&j, "unknown", s->unknown);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_rest(&j, &r->rest);
    json_kv_cstr(&j, "aside", r->aside);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(&out, '\n');
    cli_put(buf_slice(&out));
    buf_free(&out);
}

static void rows_cell(struct cli_table *t, const struct repair_rows *rows, int f)
{
    if (!rows->opens)
        cli_table_cell(t, "none");
    else
        cli_table_cell(t, "%llu%s", (unsigned long long)rows->n[f], rows->whole[f] ? "" : ", then damage");
}

static void print_rows(const struct repair *r)
{
    struct cli_table *t = cli_table_new("lrr", 80);
    struct buf out = BUF_EMPTY;

    cli_table_cell(t, "ROWS OF");
    cli_table_cell(t, "READ BEFORE");
    cli_table_cell(t, "REPAIRED");
    for (int f = 0; f < FAMILIES; f++) {
        cli_table_cell(t, "%s", f == FAMILY_META ? "meta" : family_name((enum family)f));
        rows_cell(t, &r->before, f);
        rows_cell(t, &r->after, f);
    }
    cli_table_print(t, &out);
    cli_put(buf_slice(&out));
    buf_free(&out);
}

static void print_box(const struct spool_salvaged *s)
{
    unsigned long long saved = s->waiting + s->ended;

    cli_print("%s, box %s: %llu events saved: %llu ended, %llu waiting", s->bot, box_name(s->box), saved,
              (unsigned long long)s->ended, (unsigned long long)s->waiting);
    if (s->unknown)
        cli_print(" (of %llu it is not known whether they had ended)", (unsigned long long)s->unknown);
    if (!s->record_known)
        cli_print("; how many there were is not known\n");
    else if (s->counted > saved)
        cli_print("; %llu are lost\n", (unsigned long long)s->counted - saved);
    else
        cli_print("; none of those it counted is lost\n");
}

static void print_faults(uint64_t places, const char *of, const char *so)
{
    if (places)
        cli_print("%s: some could not be read, in %llu %s%s\n", of, (unsigned long long)places,
                  places == 1 ? "place" : "places", so);
}

static void print_rest(const struct spool_salvaged_rest *s)
{
    print_faults(s->key_faults, "keys", "; what a handler did under those it may do again");
    print_faults(s->position_faults, "positions", "; those bots poll from where Telegram stands");
    print_faults(s->note_faults, "notes about bots", "");
    print_faults(s->audit_faults, "log of what people did", "");
}

static void print_in_place(const struct repair *r)
{
    if (r->aside)
        cli_print("the damaged one is in %s; remove it when you need it no more\n", r->aside);
    cli_print("%llu unfinished events; some may have been handled already. Delivery is paused.\n"
              "Look, then let each bot go on:\n",
              (unsigned long long)r->reborn.unfinished);
    reborn_print_resume(&r->reborn);
    cli_next(r->cli, "run");
}

/* Counters go back with a log that ends earlier: they do not know what stood behind. */
static void tell_of_the_log(const struct repair *r)
{
    if (r->best == REPAIR_TO_DAMAGE)
        cli_warn("tgspool status",
                 "what was written last is lost with the log; `status` tells how many updates are missing, "
                 "once a new one came");
    else if (r->lost[r->best])
        cli_print("what the log held in %u damaged %s is lost\n", r->lost[r->best],
                  r->lost[r->best] == 1 ? "place" : "places");
}

static void print_account(const struct repair *r, bool apply)
{
    if (r->cli->json) {
        json_account(r, false);
        return;
    }
    if (r->n_boxes)
        for (size_t i = 0; i < r->n_boxes; i++)
            print_box(&r->boxes[i]);
    else
        print_rows(r);
    print_rest(&r->rest);
    tell_of_the_log(r);
    if (apply) {
        print_in_place(r);
        return;
    }
    cli_print("nothing was changed; this was a copy, made %s. To take its place in use:\n",
              repair_way_text((enum repair_way)r->best));
    cli_next(r->cli, "repair --apply");
}

/* ---- the command -------------------------------------------------------------------------------- */

static int open_repair(struct repair *r, struct err *e)
{
    struct err none = ERR_NONE;
    int schema;

    r->config = configfile_read(r->cli->config_path, e);
    if (!r->config)
        return -1;
    if (access(r->config->dir, F_OK) < 0)
        return err_set(e, EX_NOINPUT, "there is no spool at %s", r->config->dir);
    r->lock_fd = store_dir_lock(r->config->dir, e);
    if (r->lock_fd < 0)
        return -1;
    if (swap_finish(r->config->dir, NULL, e) < 0)
        return -1;
    if (store_dir_look(r->config->dir, &schema, &none) < 0 && none.exit_code == EX_CONFIG) {
        *e = none;
        return -1;
    }
    return none.exit_code || schema ? 0 : err_set(e, EX_NOINPUT, "there is no spool at %s", r->config->dir);
}

static void close_repair(struct repair *r)
{
    struct err e = ERR_NONE;

    if (r->tries && tree_remove(r->tries, &e) < 0)
        cli_fail_err(&e);
    if (r->lock_fd >= 0)
        close(r->lock_fd);
    reborn_free(&r->reborn);
    config_free(r->config);
    free(r->tries);
    free(r->aside);
}

/* Whether the spool is well as it stands: 1, 0, or -1 and e where the disk does not let it be read. */
static int is_well(struct repair *r, struct err *e)
{
    struct verified v = {0};
    int rc = verify_dir(r->config->dir, &v, e) == 0 ? !v.faults : 0;

    verified_free(&v);
    return e->exit_code == EX_IOERR ? disk_fails(e) : rc;
}

static int run_repair(struct cli *cli, int argc, char **argv)
{
    struct repair r = {.cli = cli, .lock_fd = -1, .best = -1};
    struct err e = ERR_NONE;
    bool apply = cli_flag(cli, "apply"), from_new = cli_flag(cli, "fresh");
    int rc;

    (void)argc;
    (void)argv;
    if (apply && from_new)
        return cli_fail(EX_USAGE, "--apply takes a copy, and --fresh makes a new spool: give one of them");
    int well = open_repair(&r, &e) < 0 ? -1 : from_new ? 0 : is_well(&r, &e);
    if (well < 0) {
        rc = -1;
    } else if (well) {
        rc = 0;
        if (cli->json)
            json_account(&r, true);
        else
            cli_print("all well: there is nothing to repair\n");
    } else {
        e = ERR_NONE;
        repair_count(r.config->dir, &r.before);
        rc = from_new ? fresh(&r, &e) : plain(&r, apply, &e);
        if (rc == 0)
            print_account(&r, apply || from_new);
    }
    close_repair(&r);
    return rc < 0 ? cli_fail_err(&e) : cli_finish(EX_OK);
}

static const struct cli_option options[] = {
    {"apply", NULL, "put the repaired copy in the place of the spool"},
    {"fresh", NULL, "a new spool, with what can be read of the old one"},
    {NULL, NULL, NULL},
};

const struct command command_repair = {
    .name = "repair",
    .arguments = "[--apply | --fresh]",
    .summary = "mend a damaged spool, on a copy",
    .usage = "End the daemon first. Tries ways to open the spool, each on a copy, checks what\n"
             "comes of them, and tells what was and what was not saved. With --apply the best\n"
             "copy without faults takes the place of the spool. --fresh reads event by event\n"
             "around the damage and puts them into a new spool, which takes the place. The\n"
             "damaged one is kept in spool.dir, as damaged-TIME. Delivery is paused then. If\n"
             "you have a good backup, `tgspool restore` may save more.\n",
    .options = options,
    .max_arguments = 0,
    .run = run_repair,
};
