/* tgspool verify: reads every byte and checks every invariant of a spool or a backup, in this process. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/still.h"
#include "cli/verify.h"
#include "spool/spool.h"
#include "store/backup.h"
#include "store/dir.h"
#include "wire/json.h"

#define TOLD_MAX 20 /* faults, by name */
#define CACHE (16 << 20)

static void note(void *arg, const char *sentence)
{
    struct verified *v = arg;

    if (v->n_told < TOLD_MAX) {
        v->told = xrealloc(v->told, (v->n_told + 1) * sizeof(*v->told));
        v->told[v->n_told++] = xstrdup(sentence);
    }
}

int verify_dir(const char *dir, struct verified *v, struct err *e)
{
    const struct spool_options o = {.dir = dir, .cache_bytes = CACHE};
    struct spool *sp = spool_look(&o, clock_now(), e);

    *v = (struct verified){0};
    if (!sp)
        return -1;
    for (struct spool_box *b = spool_next_box(sp, NULL); b; b = spool_next_box(sp, b)) {
        struct spool_box_status st;
        spool_box_status(b, &st);
        v->unfinished += st.counts.pending + st.counts.processing;
        v->ended += st.counts.done + st.counts.dead;
        if (spool_box_next_seq(b) > v->highest_seq + 1)
            v->highest_seq = spool_box_next_seq(b) - 1;
    }
    spool_identity(sp, v->instance, &v->generation);
    int faults = spool_verify(sp, note, v, e);
    v->faults = faults < 0 ? 0 : (unsigned)faults;
    spool_close(sp);
    return faults < 0 ? -1 : 0;
}

void verified_free(struct verified *v)
{
    for (size_t i = 0; i < v->n_told; i++)
        free(v->told[i]);
    free(v->told);
    *v = (struct verified){0};
}

void verify_tell(const struct verified *v)
{
    for (size_t i = 0; i < v->n_told; i++)
        cli_fail(0, "%s", v->told[i]);
    if (v->faults > v->n_told)
        cli_fail(0, "and %u more", v->faults - (unsigned)v->n_told);
}

static void print_json(const char *dir, const struct verified *v)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &out);
    json_object(&j);
    json_kv_cstr(&j, "dir", dir);
    json_kv_cstr(&j, "instance", v->instance);
    json_kv_uint(&j, "generation", v->generation);
    json_kv_uint(&j, "unfinished", v->unfinished);
    json_kv_uint(&j, "ended", v->ended);
    json_kv_uint(&j, "faults", v->faults);
    json_key(&j, "told");
    json_array(&j);
    for (size_t i = 0; i < v->n_told; i++)
        json_cstr(&j, v->told[i]);
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(&out, '\n');
    cli_put(buf_slice(&out));
    buf_free(&out);
}

/* The directory with a marker that an argument means: the state of a backup, or the argument itself. NULL and e. */
static char *meant(const char *dir, struct err *e)
{
    struct backup_info info;
    struct err none = ERR_NONE;
    long pid;

    if (store_dir_is_locked(dir, &pid)) {
        err_set(e, EX_TEMPFAIL,
                "%s is in use by process %ld; the spool of a daemon is verified without naming it", dir, pid);
        return NULL;
    }
    if (backup_read(dir, &info, &none) == 0)
        return backup_check_files(dir, e) == 0 ? backup_state_path(dir, info.number) : NULL;
    if (none.exit_code == EX_NOINPUT)
        return xstrdup(dir);
    *e = none;
    return NULL;
}

static int run_verify(struct cli *cli, int argc, char **argv)
{
    struct err e = ERR_NONE;
    struct verified v = {0};
    struct still *still = argc ? NULL : still_open(cli, &e);

    char *dir = argc ? meant(argv[0], &e) : still ? xstrdup(still_dir(still)) : NULL;
    int rc = dir ? verify_dir(dir, &v, &e) : -1;
    still_close(still);
    if (rc < 0) {
        cli_fail_err(&e);
        if (e.exit_code == EX_DATAERR && !argc)
            cli_next(cli, "repair");
    } else if (cli->json) {
        print_json(dir, &v);
    } else {
        verify_tell(&v);
        cli_print("%llu unfinished and %llu ended events: %s\n", (unsigned long long)v.unfinished,
                  (unsigned long long)v.ended, v.faults ? "faults were found" : "all well");
        if (v.faults && !argc)
            cli_next(cli, "repair");
    }
    int code = rc < 0 ? e.exit_code : v.faults ? EX_DATAERR : EX_OK;
    verified_free(&v);
    free(dir);
    return cli_finish(code);
}

const struct command command_verify = {
    .name = "verify",
    .arguments = "[DIR]",
    .summary = "read all of a spool or backup and check it",
    .usage = "Reads every row of the spool, which checks every checksum, and whether all of\n"
             "them fit together. A running daemon goes on meanwhile: a checkpoint of its spool\n"
             "is read, in this process. DIR is a backup, or another directory that nobody\n"
             "changes. Nothing is repaired. Exit status 65: there are faults.\n",
    .max_arguments = 1,
    .run = run_verify,
};
