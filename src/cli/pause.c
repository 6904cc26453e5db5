/* tgspool pause, tgspool resume */
#include <stdlib.h>
#include <string.h>

#include "cli/show.h"

static int set_paused(struct cli *cli, char **argv, int argc, const char *path, const char *past)
{
    struct err e = ERR_NONE;
    struct answer a;
    struct buf body = BUF_EMPTY;
    struct json_out j;

    if (argc > 1 && strcmp(argv[1], "intake") != 0 && strcmp(argv[1], "deliver") != 0)
        return cli_fail(EX_USAGE, "%s what? intake or deliver; without a word, both", argv[1]);
    struct request *q = request_open(cli, NEED_SPOOL, &e);
    if (!q)
        return cli_fail_err(&e);
    json_start(&j, &body);
    json_object(&j);
    json_kv_cstr(&j, "bot", argv[0]);
    if (argc > 1)
        json_kv_cstr(&j, "what", argv[1]);
    json_object_end(&j);
    json_end(&j);
    int rc = request_send(q, "POST", path, buf_slice(&body), &a, &e);
    buf_free(&body);
    if (rc < 0)
        return show_failure(q, &e);
    if (cli->json)
        show_json(&a);
    else
        cli_print("%s: %s %s\n", argv[0], argc > 1 ? argv[1] : "intake and deliver", past);
    if (strcmp(past, "paused") == 0)
        cli_next(cli, "resume %s", argv[0]);
    answer_clear(&a);
    request_close(q);
    return cli_finish(EX_OK);
}

static int run_pause(struct cli *cli, int argc, char **argv)
{
    return set_paused(cli, argv, argc, "/v1/pause", "paused");
}

static int run_resume(struct cli *cli, int argc, char **argv)
{
    return set_paused(cli, argv, argc, "/v1/resume", "resumed");
}

const struct command command_pause = {
    .name = "pause",
    .arguments = "BOT [intake|deliver]",
    .summary = "stop asking Telegram, or handing out, or both",
    .usage = "Stops intake (updates wait at Telegram, for at most 24 hours), delivery (they\n"
             "wait in the spool), or both. What is being processed goes on. It lasts until\n"
             "`resume`, over restarts too.\n",
    .min_arguments = 1,
    .max_arguments = 2,
    .run = run_pause,
};

const struct command command_resume = {
    .name = "resume",
    .arguments = "BOT [intake|deliver]",
    .summary = "end a pause",
    .usage = "Ends a pause of intake, delivery, or both.\n",
    .min_arguments = 1,
    .max_arguments = 2,
    .run = run_resume,
};
