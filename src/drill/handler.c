/* What the scratch config runs as the bot's command, as a process of its own: the built-in handler, or one that runs
 * the user's and looks on. It writes down what happens, and holds back the good news while the check wants that. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "deliver/answer.h"
#include "drill/inside.h"
#include "wire/json.h"

#define LOOK_US 20000
#define KEY_MAX 200

struct given {
    int64_t update_id, attempt, chat;
    char key[KEY_MAX + 1];
};

struct handler {
    const char *dir;
    char *record;
    char **own; /* NULL: built-in */
};

/* ---- the check's wishes ------------------------------------------------------------------------- */

static bool is_there(const struct handler *h, const char *name)
{
    char *path = xasprintf("%s/%s", h->dir, name);
    bool there = access(path, F_OK) == 0;

    free(path);
    return there;
}

static bool hold_is(const struct handler *h, const char *word)
{
    char *path = xasprintf("%s/" FILE_HOLD, h->dir), text[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    free(path);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    return n > 0 && strcmp(text, word) == 0;
}

static void note(const struct handler *h, enum deed_kind kind, const struct given *g, int64_t detail)
{
    record_write(h->record, kind, g->update_id, g->attempt, detail);
}

/* A first try hangs here for good, if the check wanted that when it began. */
static void begin(const struct handler *h, const struct given *g)
{
    bool hangs = g->attempt == 1 && hold_is(h, HOLD_FIRST_WORD);

    note(h, DEED_START, g, 0);
    while (hangs)
        pause();
}

/* All is done. */
static void end(const struct handler *h, const struct given *g)
{
    note(h, DEED_ACTED, g, 0);
    while (hold_is(h, HOLD_END_WORD))
        usleep(LOOK_US);
    note(h, DEED_END, g, 0);
}

/* ---- the built-in handler ----------------------------------------------------------------------- */

/* Has its effect once for a key, as a handler should. */
static void have_effect(const struct handler *h, const struct given *g)
{
    char *path = xasprintf("%s/" DIR_EFFECTS "/%s", h->dir, g->key);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    free(path);
    if (fd < 0)
        return;
    close(fd);
    note(h, DEED_EFFECT, g, 0);
}

void drill_add_call(struct buf *out, int64_t update_id, int64_t chat)
{
    buf_printf(out, "{\"method\":\"sendMessage\",\"chat_id\":%lld,\"text\":\"drill %lld\"}", (long long)chat,
               (long long)update_id);
}

static void read_all(struct buf *out)
{
    ssize_t n;

    while ((n = read(STDIN_FILENO, buf_reserve(out, 65536), 65536)) > 0)
        buf_added(out, (size_t)n);
}

static int64_t chat_of(const struct json *update)
{
    int64_t chat = 0;

    (void)json_to_i64(json_get(json_get(json_get(update, "message"), "chat"), "id"), &chat);
    return chat;
}

static int exec_builtin(const struct handler *h, struct given *g)
{
    struct buf update = BUF_EMPTY, call = BUF_EMPTY;

    read_all(&update);
    begin(h, g);
    have_effect(h, g);
    if (is_there(h, FILE_CALLS)) {
        struct json *root = json_parse(buf_slice(&update), NULL);
        drill_add_call(&call, g->update_id, chat_of(root));
        json_free(root);
        printf("%s\n", buf_str(&call));
        fflush(stdout);
    }
    end(h, g);
    buf_free(&update);
    buf_free(&call);
    return 0;
}

/* ---- the user's --------------------------------------------------------------------------------- */

/* In the child. It dies with us, as we die with the daemon: a killed daemon leaves no handler. */
static _Noreturn void run_own(const struct handler *h, pid_t parent)
{
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    execvp(h->own[0], h->own);
    int why = errno;
    fprintf(stderr, "%s cannot be run: %s\n", h->own[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
}

/* Waits for a child's end. Returns its exit code as a shell tells it. */
static int end_of(pid_t pid, int *status)
{
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

/* It has our standard input, output and error, and our process group. */
static int exec_own(const struct handler *h, struct given *g)
{
    pid_t us = getpid(), pid;
    int status;

    begin(h, g);
    signal(SIGTERM, SIG_IGN); /* the group gets it, and the handler has its time to end */
    pid = fork();
    if (pid == 0)
        run_own(h, us);
    if (pid < 0)
        return EX_UNAVAILABLE;
    int code = end_of(pid, &status);
    if (code == 0)
        end(h, g);
    else
        note(h, DEED_FAILED, g, code);
    return code;
}

static int run_exec(const struct handler *h)
{
    struct given g = {0, 1, 0, ""};
    const char *id = getenv("TGSPOOL_UPDATE_ID"), *attempt = getenv("TGSPOOL_ATTEMPT");
    const char *key = getenv("TGSPOOL_KEY");

    (void)text_to_i64(slice_str(id), 0, INT64_MAX, &g.update_id);
    (void)text_to_i64(slice_str(attempt), 0, INT64_MAX, &g.attempt);
    snprintf(g.key, sizeof(g.key), "%s", key ? key : "");
    return h->own ? exec_own(h, &g) : exec_builtin(h, &g);
}

/* ---- workers ------------------------------------------------------------------------------------ */

/* Reads a line that the daemon gives to a worker. */
static void read_given(struct slice line, struct given *g, char id[KEY_MAX + 1])
{
    struct json *root = json_parse(line, NULL);
    struct slice key = json_string(json_get(root, "key")), name = json_string(json_get(root, "id"));

    *g = (struct given){0, 1, chat_of(json_get(root, "update")), ""};
    (void)json_to_i64(json_get(root, "update_id"), &g->update_id);
    (void)json_to_i64(json_get(root, "attempt"), &g->attempt);
    snprintf(g->key, sizeof(g->key), "%.*s", (int)key.n, key.n ? key.p : "");
    snprintf(id, KEY_MAX + 1, "%.*s", (int)name.n, name.n ? name.p : "");
    json_free(root);
}

static void answer(const struct handler *h, const struct given *g, const char *id)
{
    struct buf call = BUF_EMPTY;

    drill_add_call(&call, g->update_id, g->chat);
    if (is_there(h, FILE_CALLS))
        printf("{\"id\":\"%s\",\"ok\":true,\"calls\":[%s]}\n", id, buf_str(&call));
    else
        printf("{\"id\":\"%s\",\"ok\":true}\n", id);
    fflush(stdout);
    buf_free(&call);
}

/* The user's worker: both its pipes. */
struct own_worker {
    FILE *in, *out;
    pid_t pid;
};

static bool start_own(const struct handler *h, struct own_worker *w)
{
    int in[2], out[2];
    pid_t us = getpid();

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return false;
    w->pid = fork();
    if (w->pid == 0) {
        if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
            run_own(h, us);
        _exit(126);
    }
    close(in[0]);
    close(out[1]);
    w->in = fdopen(in[1], "w");
    w->out = fdopen(out[0], "r");
    return w->pid > 0 && w->in && w->out;
}

/* Waits for the end of the user's worker; this process ends as it did, for the daemon to see. */
static int end_as_own(struct own_worker *w)
{
    int status = 0;

    fclose(w->in);
    int code = end_of(w->pid, &status);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return code;
}

/* Whether a line is what the daemon takes for the end of this event's try; writes down how it ended. */
static bool note_answer(const struct handler *h, struct slice line, const struct given *g, const char *id)
{
    struct answer a;

    if (answer_parse(line, &a))
        return false;
    bool answered = a.kind != ANSWER_EXTEND && slice_eq_str(a.id, id);
    if (answered && a.kind == ANSWER_DONE)
        end(h, g);
    else if (answered)
        note(h, DEED_FAILED, g, -1);
    answer_free(&a);
    return answered;
}

/* Passes on what the user's worker says until it has answered. Returns false when it closed its output. */
static bool pass_answer(const struct handler *h, const struct own_worker *w, const struct given *g,
                        const char *id, char **line, size_t *size)
{
    ssize_t n;

    while ((n = getline(line, size, w->out)) > 0) {
        bool answered = note_answer(h, slice_make(*line, (size_t)n), g, id);
        fwrite(*line, 1, (size_t)n, stdout);
        fflush(stdout);
        if (answered)
            return true;
    }
    return false;
}

static int run_worker(const struct handler *h)
{
    struct own_worker own = {NULL, NULL, 0};
    int code = 0;
    char *line = NULL, *said = NULL;
    size_t size = 0, said_size = 0;
    ssize_t n;

    if (h->own && !start_own(h, &own))
        return EX_UNAVAILABLE;
    while ((n = getline(&line, &size, stdin)) > 0) {
        struct given g;
        char id[KEY_MAX + 1];
        read_given(slice_make(line, (size_t)n), &g, id);
        begin(h, &g);
        if (!h->own) {
            have_effect(h, &g);
            end(h, &g);
            answer(h, &g, id);
            continue;
        }
        fwrite(line, 1, (size_t)n, own.in);
        fflush(own.in);
        if (!pass_answer(h, &own, &g, id, &said, &said_size))
            break;
    }
    if (h->own)
        code = end_as_own(&own);
    free(line);
    free(said);
    return code;
}

int drill_handler(const char *kind, const char *dir, char **own)
{
    char *record = xasprintf("%s/" FILE_RECORD, dir);
    const struct handler h = {.dir = dir, .record = record, .own = own};

    if (h.own)
        signal(SIGPIPE, SIG_IGN); /* the user's worker may end when it likes */
    int code = strcmp(kind, "worker") == 0 ? run_worker(&h) : run_exec(&h);
    free(record);
    return code;
}
