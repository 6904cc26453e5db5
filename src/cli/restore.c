/* tgspool restore: a backup becomes the spool, in an empty directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "cli/command.h"
#include "cli/reborn.h"
#include "cli/verify.h"
#include "daemon/configfile.h"
#include "spool/spool.h"
#include "store/backup.h"
#include "store/dir.h"
#include "store/swap.h"

static int must_be_empty(void *arg, const char *name, struct err *e)
{
    const char *dir = arg;

    if (store_dir_is_aside(name) || !strcmp(name, SWAP_PREPARING) || !strcmp(name, STORE_ALERTED))
        return 0;
    err_set(e, EX_CANTCREAT,
            "%s is not empty (it holds \"%s\"), and a backup is put back into an empty directory only: end "
            "the daemon, "
            "then run: mv %s %s.old",
            dir, name, dir, dir);
    return 1;
}

/* A copy that went bad since it was made is told now, not when the daemon meets the damage. */
static int read_back(const char *state, const char *to, struct err *e)
{
    struct verified v = {0};
    int rc = verify_dir(to, &v, e);

    if (rc == 0 && v.faults) {
        verify_tell(&v);
        rc = err_set(e, EX_DATAERR, "the backup has faults");
    }
    verified_free(&v);
    if (rc < 0 && e->exit_code == EX_DATAERR)
        err_prefix(
            e,
            "nothing was restored; take another backup, or, if there is none, copy %s to spool.dir and "
            "run: tgspool repair",
            state);
    return rc;
}

/* Copies the backup's state into `to` and makes a spool of it that may go on. */
static int fill(const struct config *c, const char *backup, const struct backup_info *info, char *to,
                struct reborn *r, struct err *e)
{
    char *state = backup_state_path(backup, info->number);
    int rc = backup_check_files(backup, e);

    if (rc == 0)
        rc = backup_copy_out(state, to, e);
    if (rc == 0)
        rc = read_back(state, to, e);
    if (rc == 0)
        rc = reborn_make(to, c->cache_bytes, info->taken_at, r, e);
    free(state);
    return rc;
}

/* completed: the restore of this backup had been cut short, and all that was missing were its last steps. */
static int restore(const struct config *c, const char *backup, const struct backup_info *info,
                   struct reborn *r, bool *completed, struct err *e)
{
    char *preparing = NULL;
    int rc = -1, lock = -1, went_on = -1;

    *completed = false;
    if (file_make_dir(c->dir, 0700, e) < 0)
        return -1;
    lock = store_dir_lock(c->dir, e);
    if (lock >= 0)
        went_on = swap_finish(c->dir, NULL, e);
    if (went_on == 1 && reborn_is(c->dir, c->cache_bytes, info->taken_at, r)) {
        *completed = true;
        rc = 0;
    } else if (went_on >= 0 && !dir_each(c->dir, must_be_empty, c->dir, e) &&
               (preparing = swap_prepare(c->dir, e)) != NULL) {
        rc = fill(c, backup, info, preparing, r, e);
    }
    if (rc == 0 && preparing)
        rc = swap_commit(c->dir, NULL, e);
    else if (preparing)
        tree_remove(preparing, NULL);
    free(preparing);
    if (lock >= 0)
        close(lock);
    return rc;
}

static void print_done(const struct cli *cli, const struct config *c, const struct backup_info *info,
                       const struct reborn *r, bool completed)
{
    char time[32], age[32];

    text_time(info->taken_at, time);
    if (cli->json) {
        cli_print(
            "{\"taken_at\":\"%s\",\"unfinished\":%llu,\"ended\":%llu,\"generation\":%llu,\"completed\":%s}\n",
            time, (unsigned long long)r->unfinished, (unsigned long long)r->ended,
            (unsigned long long)r->generation, completed ? "true" : "false");
        return;
    }
    if (completed)
        cli_print("the restore that was cut short before its last step was completed\n");
    cli_print("%s: restored as of %.19sZ, %s ago\n", c->dir, time,
              text_age(clock_wall_ms() - info->taken_at, age));
    cli_print("%llu ended events; %llu unfinished ones: those may have been handled since,\n"
              "and may be handled again\n",
              (unsigned long long)r->ended, (unsigned long long)r->unfinished);
    cli_print("updates that came after the backup and were confirmed are not in it; `tgspool\n"
              "status` tells how many, once the first new one came\n"
              "delivery is paused; intake is not. Look, then let each bot go on:\n");
    reborn_print_resume(r);
    cli_next(cli, "run");
}

static int run_restore(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct backup_info info;
    struct reborn r = {0};
    bool completed;
    struct config *c = configfile_read(cli->config_path, &e);

    (void)argc;
    if (!c)
        return cli_fail_err(&e);
    if (backup_read(argv[0], &info, &e) < 0 || restore(c, argv[0], &info, &r, &completed, &e) < 0) {
        cli_fail_err(&e);
    } else {
        print_done(cli, c, &info, &r, completed);
    }
    reborn_free(&r);
    config_free(c);
    return e.exit_code ? e.exit_code : cli_finish(EX_OK);
}

const struct command command_restore = {
    .name = "restore",
    .arguments = "BACKUP",
    .summary = "make a spool of a backup, in an empty directory",
    .usage = "Copies what `tgspool backup` made into the configuration's spool.dir, which must\n"
             "be empty, reads the copy whole, and makes it fit to go on: nothing is in\n"
             "processing, numbers go on far beyond what was given out since the backup, and\n"
             "delivery is paused, since what is unfinished in the backup may have been handled\n"
             "after it.\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_restore,
};
