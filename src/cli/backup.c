/* tgspool backup: a copy of the spool in another directory, brought up to date by each run. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/still.h"
#include "cli/verify.h"
#include "core/options.h"
#include "daemon/configfile.h"
#include "store/backup.h"
#include "store/dir.h"
#include "wire/json.h"

/* Copies and reads back. A file of the last backup that was linked may have gone bad there: then once more without. */
static int copy_verified(struct backup *b, const char *from, struct backup_amount *amount, struct verified *v,
                         struct err *e)
{
    if (backup_copy(b, from, true, amount, e) < 0)
        return -1;
    int rc = verify_dir(backup_new_state(b), v, e);
    if ((rc < 0 || v->faults) && amount->reused) {
        cli_fail(0, "the copy has faults; trying once more without what the last backup has");
        verified_free(v);
        *e = ERR_NONE;
        if (backup_copy(b, from, false, amount, e) < 0)
            return -1;
        rc = verify_dir(backup_new_state(b), v, e);
    }
    if (rc < 0)
        return -1;
    if (!v->faults)
        return 0;
    verify_tell(v);
    return err_set(e, EX_DATAERR, "the spool has faults: no backup was made, an earlier one stays as it is");
}

static void print_done(const struct cli *cli, const char *dir, const struct backup_info *info,
                       const struct backup_amount *n)
{
    char time[32];

    if (cli->json) {
        struct buf out = BUF_EMPTY;
        struct json_out j;
        json_start(&j, &out);
        json_object(&j);
        json_kv_cstr(&j, "dir", dir);
        json_kv_cstr(&j, "taken_at", text_time(info->taken_at, time));
        json_kv_uint(&j, "unfinished", info->unfinished);
        json_kv_uint(&j, "ended", info->ended);
        json_kv_uint(&j, "copied_files", n->copied);
        json_kv_uint(&j, "copied_bytes", n->copied_bytes);
        json_kv_uint(&j, "kept_files", n->reused);
        json_kv_uint(&j, "kept_bytes", n->reused_bytes);
        json_object_end(&j);
        json_end(&j);
        buf_add_char(&out, '\n');
        cli_put(buf_slice(&out));
        buf_free(&out);
        return;
    }
    cli_print("%s: %llu unfinished and %llu ended events, read back and checked\n", dir,
              (unsigned long long)info->unfinished, (unsigned long long)info->ended);
    cli_print("%llu files copied (%.1f MB), %llu were there (%.1f MB)\n", (unsigned long long)n->copied,
              (double)n->copied_bytes / 1e6, (unsigned long long)n->reused, (double)n->reused_bytes / 1e6);
}

/* Says so in e. A config that cannot be read is told by who needs it. */
static bool lies_in_spool(const struct cli *cli, const char *dir, struct err *e)
{
    struct err none = ERR_NONE;
    struct config *c = configfile_read(cli->config_path, &none);
    bool inside = c && file_is_in(dir, c->dir);

    if (inside)
        err_set(e, EX_USAGE,
                "%s lies in the spool, %s, and would be lost with it; name a directory outside, better on "
                "another disk",
                dir, c->dir);
    config_free(c);
    return inside;
}

static int make(const struct cli *cli, const char *dir, struct err *e)
{
    struct backup_info info = {.schema = STORE_SCHEMA, .version = PACKAGE_VERSION};
    struct backup_amount amount;
    struct verified v = {0};
    int rc = -1;

    if (lies_in_spool(cli, dir, e))
        return -1;
    struct still *still = still_open(cli, e);
    if (!still)
        return -1;
    info.taken_at = clock_wall_ms();
    struct backup *b = backup_begin(dir, e);
    if (b)
        rc = copy_verified(b, still_dir(still), &amount, &v, e);
    still_close(still); /* nothing of it is needed any more */
    if (rc == 0) {
        snprintf(info.instance, sizeof(info.instance), "%s", v.instance);
        info.generation = v.generation;
        info.unfinished = v.unfinished;
        info.ended = v.ended;
        info.highest_seq = v.highest_seq;
        rc = backup_publish(b, &info, e);
    }
    backup_end(b);
    if (rc == 0)
        print_done(cli, dir, &info, &amount);
    verified_free(&v);
    return rc;
}

static int run_backup(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;

    (void)argc;
    if (make(cli, argv[0], &e) < 0) {
        cli_fail_err(&e);
        if (e.exit_code == EX_DATAERR)
            cli_next(cli, "verify");
        return e.exit_code;
    }
    return cli_finish(EX_OK);
}

const struct command command_backup = {
    .name = "backup",
    .arguments = "DIR",
    .summary = "bring the backup in a directory up to date",
    .usage = "Copies the spool into DIR, as it stands now; a running daemon goes on meanwhile.\n"
             "What DIR has from an earlier run is kept, so that only new files are copied. The\n"
             "copy is read whole and checked before it takes the place of the earlier one: a\n"
             "run that fails or is killed leaves that as it is. DIR should be on another disk.\n"
             "`tgspool restore DIR` puts it back.\n",
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_backup,
};
