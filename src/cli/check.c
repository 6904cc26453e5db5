/* tgspool check: whether a daemon with this config would work here, and what to do where it would not.
 * Nothing is taken from Telegram and nothing is changed. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "cli/ask.h"
#include "cli/show.h"
#include "cli/webhook.h"
#include "core/options.h"
#include "daemon/configfile.h"
#include "net/listen.h"
#include "store/db.h"
#include "store/dir.h"
#include "store/log_tail.h"
#include "wire/url.h"

#define SPACE_LOW (256LL << 20)

enum verdict { GOOD, DOUBTFUL, BAD };

struct check {
    struct cli *cli;
    const struct config *config;
    struct json_out j; /* with --json */
    struct buf json;
    int exit_code; /* of the first that is bad */
    unsigned doubtful;
    bool running; /* a daemon answers */
};

/* One line: "ok  what: text", and what to do if it is not good. */
static void tell(struct check *c, enum verdict v, int exit_code, const char *what, const char *next,
                 const char *fmt, ...) __attribute__((format(printf, 6, 7)));
static void tell(struct check *c, enum verdict v, int exit_code, const char *what, const char *next,
                 const char *fmt, ...)
{
    static const char *const words[] = {"ok", "warn", "BAD"};
    struct buf raw = BUF_EMPTY, text = BUF_EMPTY;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    text_add_clean(&text, buf_slice(&raw), 2000, false);
    if (v == BAD && c->exit_code == EX_OK)
        c->exit_code = exit_code;
    c->doubtful += v == DOUBTFUL;
    if (c->cli->json) {
        json_object(&c->j);
        json_kv_cstr(&c->j, "check", what);
        json_kv_cstr(&c->j, "result", v == GOOD ? "ok" : v == DOUBTFUL ? "warning" : "bad");
        json_kv_text(&c->j, "text", buf_slice(&text));
        json_kv_cstr(&c->j, "next", v == GOOD ? NULL : next);
        json_object_end(&c->j);
    } else {
        cli_print("%-4s %s: %s\n", words[v], what, buf_str(&text));
        if (v != GOOD && next) {
            struct buf command = BUF_EMPTY;
            cli_add_command(&command, next);
            cli_print("     next: %s\n", buf_str(&command));
            buf_free(&command);
        }
    }
    buf_free(&raw);
    buf_free(&text);
}

/* ---- this machine ------------------------------------------------------------------------------- */

static void check_space(struct check *c, const char *dir)
{
    struct statvfs fs;

    if (statvfs(dir, &fs) < 0)
        return;
    long long free_bytes = (long long)fs.f_bavail * (long long)fs.f_frsize;
    if (fs.f_files && fs.f_favail < 1000)
        tell(c, BAD, EX_OSERR, "space", "df -i (and remove what is not needed)",
             "only %lld inodes are free at %s", (long long)fs.f_favail, dir);
    else if (free_bytes < SPACE_LOW)
        tell(c, DOUBTFUL, 0, "space", "df -h (and remove what is not needed)",
             "only %lld MiB are free at %s; a backlog needs room", free_bytes >> 20, dir);
    else
        tell(c, GOOD, 0, "space", NULL, "%lld MiB free at %s", free_bytes >> 20, dir);
}

static bool is_read_only(const char *path)
{
    struct statvfs fs;
    return statvfs(path, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

/* The nearest directory above that is there. */
static char *existing_parent(const char *path)
{
    char *dir = xstrdup(path);
    struct stat st;

    for (;;) {
        char *slash = strrchr(dir, '/');
        if (!slash || slash == dir) {
            strcpy(dir, "/");
            return dir;
        }
        *slash = '\0';
        if (stat(dir, &st) == 0)
            return dir;
    }
}

/* In an archive: a day's file begins with its date. */
static int is_foreign(void *arg, const char *name, struct err *e)
{
    (void)arg;
    (void)e;
    return !strstr(name, ".jsonl.gz");
}

/* Whether nothing but tgspool's lies there: what another one needs is not to be closed to it. */
static bool is_for_us_alone(const struct check *c, const char *dir)
{
    struct err e = ERR_NONE;
    int schema;

    if (strcmp(dir, c->config->dir) == 0)
        return store_dir_look(dir, &schema, &e) == 0;
    return dir_each(dir, is_foreign, NULL, &e) == 0;
}

/* Returns whether the directory that an option names is there and can be used. */
static bool check_dir(struct check *c, const char *what, const char *option, const char *dir)
{
    char *mount_advice = xasprintf("mount it for writing, or set %s to another file system", option);
    struct stat st;

    if (stat(dir, &st) < 0) {
        char *parent = existing_parent(dir);
        if (errno != ENOENT)
            tell(c, BAD, EX_NOPERM, what, "run this as the daemon's user", "cannot look at %s: %s", dir,
                 strerror(errno));
        else if (is_read_only(parent))
            tell(c, BAD, EX_CANTCREAT, what, mount_advice, "%s is not there, and %s is read-only", dir,
                 parent);
        else if (access(parent, W_OK) < 0)
            tell(c, BAD, EX_NOPERM, what, "make it, and give it to the daemon's user, with mode 0700",
                 "%s is not there, and cannot be made by this user", dir);
        else
            tell(c, GOOD, 0, what, NULL, "%s is not there yet; `run` makes it", dir);
        check_space(c, parent);
        free(parent);
        free(mount_advice);
        return false;
    }
    char *chmod = xasprintf("chmod 0700 %s", dir), *set = xasprintf("set %s to a directory", option);
    if (!S_ISDIR(st.st_mode))
        tell(c, BAD, EX_CONFIG, what, set, "%s is not a directory", dir);
    else if (is_read_only(dir))
        tell(c, BAD, EX_IOERR, what, mount_advice, "%s is on a read-only file system", dir);
    else if (access(dir, R_OK | W_OK | X_OK) < 0)
        tell(c, BAD, EX_NOPERM, what, "run this as the daemon's user",
             "%s cannot be used by this user (uid %ld)", dir, (long)getuid());
    else if ((st.st_mode & 077) && is_for_us_alone(c, dir))
        tell(c, DOUBTFUL, 0, what, chmod, "others than its owner can look into %s (mode %04o)", dir,
             (unsigned)st.st_mode & 07777);
    else
        tell(c, GOOD, 0, what, NULL, "%s (mode %04o)", dir, (unsigned)st.st_mode & 07777);
    free(chmod);
    free(set);
    free(mount_advice);
    check_space(c, dir);
    return S_ISDIR(st.st_mode) && !is_read_only(dir) && access(dir, R_OK | W_OK | X_OK) == 0;
}

/* Opens the database without changing anything: what is damaged is told before the daemon meets it. */
static void check_database(struct check *c, int schema)
{
    char *path = xasprintf("%s/db", c->config->dir);
    struct err e = ERR_NONE;
    struct err none = ERR_NONE;
    struct db *db = db_open(path, DB_LOOK, c->config->cache_bytes, &e);

    if (!db && e.exit_code == EX_DATAERR && log_tail_look(path, &none) == LOG_TORN) {
        tell(c, GOOD, 0, "store", NULL,
             "a spool of schema %d, left by a power cut; its next opening mends the log", schema);
    } else if (db) {
        db_close(db);
        tell(c, GOOD, 0, "store", NULL, "a spool of schema %d that can be read; no daemon runs", schema);
    } else {
        tell(c, BAD, e.exit_code, "store",
             e.exit_code == EX_DATAERR ? "restore a backup, or run: tgspool repair"
                                       : "do what it says; nothing was changed",
             "%s", e.text);
    }
    free(path);
}

/* The daemon answers, or who else holds the spool, or what its marker says: opening the store would write. */
static void check_store(struct check *c, bool dir_usable)
{
    struct err e = ERR_NONE;
    struct answer a;
    struct request *q = request_open(c->cli, NEED_DAEMON, &e);

    if (q && request_send(q, "GET", "/v1/status", slice_make(NULL, 0), &a, &e) == 0) {
        char *trouble = show_text(a.root, "trouble"), *version = show_text(a.root, "version");
        c->running = true;
        if (json_true(json_get(a.root, "healthy")))
            tell(c, GOOD, 0, "store", NULL, "held by the daemon, which answers (%s)", version);
        else
            tell(c, BAD,
                 slice_eq_str(json_string(json_get(a.root, "health")), "corrupt") ? EX_DATAERR : EX_IOERR,
                 "store", "read the daemon's log", "the daemon cannot write: %s", trouble);
        free(trouble);
        free(version);
        answer_clear(&a);
        request_close(q);
        return;
    }
    bool asked = q != NULL;
    request_close(q);
    if (!dir_usable)
        return;
    long pid;
    int schema;
    if (store_dir_is_locked(c->config->dir, &pid)) {
        if (!asked && e.exit_code == EX_UNAVAILABLE)
            err_set(&e, EX_TEMPFAIL, "but no daemon listens on the config's socket");
        tell(c, BAD, e.exit_code, "store", "name its socket with --socket, or end that process",
             "process %ld uses it; %s", pid, e.text);
        return;
    }
    e = ERR_NONE;
    if (store_dir_look(c->config->dir, &schema, &e) < 0)
        tell(c, BAD, e.exit_code, "store", "correct spool.dir, or do what it says", "%s", e.text);
    else if (schema)
        check_database(c, schema);
    else
        tell(c, GOOD, 0, "store", NULL, "there is none yet; `run` makes it");
}

static void check_group(struct check *c)
{
    const char *group = c->config->socket_group;
    struct err e = ERR_NONE;

    if (!group || listen_find_group(group, NULL, &e) == 0)
        return;
    option_err_prefix(&e, c->config, NULL, "socket_group");
    tell(c, BAD, EX_CONFIG, "group", "make the group, or correct the config", "%s", e.text);
}

static void check_socket(struct check *c)
{
    const char *path = c->config->socket;
    char *parent = existing_parent(path);
    struct stat st;
    bool there = lstat(path, &st) == 0;
    char *dir = xasprintf("%.*s/", (int)(strrchr(path, '/') - path), path);

    if (there && !S_ISSOCK(st.st_mode))
        tell(c, BAD, EX_CANTCREAT, "socket", "remove it, or correct listen.socket",
             "%s is there already and is not a socket", path);
    else if (stat(dir, &st) < 0 && errno == ENOENT && !file_is_in(dir, c->config->dir))
        tell(c, BAD, EX_CANTCREAT, "socket",
             "make it for the daemon's user (systemd: RuntimeDirectory=tgspool), or correct listen.socket",
             "the directory of %s is not there", path);
    else if (!there && is_read_only(parent))
        tell(c, BAD, EX_CANTCREAT, "socket", "correct listen.socket", "%s is on a read-only file system",
             parent);
    else if (access(path, F_OK) == 0 && access(path, W_OK) == 0)
        tell(c, GOOD, 0, "socket", NULL, "%s", path);
    else if (access(path, F_OK) < 0 && access(parent, W_OK | X_OK) < 0)
        tell(c, BAD, EX_NOPERM, "socket",
             "run this as the daemon's user, or give it the directory (systemd: RuntimeDirectory=tgspool)",
             "%s cannot be made by this user in %s", path, parent);
    else if (access(path, F_OK) == 0)
        tell(c, DOUBTFUL, 0, "socket", "be of the group that listen.socket_group names",
             "this user may not use %s", path);
    else
        tell(c, GOOD, 0, "socket", NULL, "%s can be made", path);
    free(dir);
    free(parent);
}

/* Whether the daemon, which does not run, could listen there. */
static void check_listener(struct check *c, const char *what, const char *address)
{
    struct err e = ERR_NONE;
    uint16_t port;

    if (!address)
        return;
    int fd = listen_tcp(address, &port, &e);
    if (fd >= 0) {
        close(fd);
        tell(c, GOOD, 0, what, NULL, "%s is free", address);
    } else {
        bool other_user = e.exit_code == EX_NOPERM; /* the daemon's may have the right */
        tell(c, other_user ? DOUBTFUL : BAD, other_user ? 0 : e.exit_code, what, "do what it says", "%s",
             e.text);
    }
}

/* ---- the handlers ------------------------------------------------------------------------------- */

/* The file that execvp would run; NULL and errno: none. To be freed. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? xstrdup(name) : NULL;
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    while (*path) {
        size_t n = strcspn(path, ":");
        char *file = xasprintf("%.*s/%s", n ? (int)n : 1, n ? path : ".", name);
        if (access(file, X_OK) == 0)
            return file;
        free(file);
        path += n + (path[n] == ':');
    }
    errno = ENOENT;
    return NULL;
}

/* Whether the kernel can start what the first line of a script names; false: told. `env` is looked through. */
static bool check_script(struct check *c, const char *what, const char *file)
{
    char line[256], *save = NULL;
    FILE *f = fopen(file, "re");
    size_t n = f ? fread(line, 1, sizeof(line) - 1, f) : 0;

    if (f)
        fclose(f);
    line[n] = '\0';
    if (strncmp(line, "#!", 2) != 0)
        return true;
    line[strcspn(line, "\n")] = '\0';
    char *name = strtok_r(line + 2, " \t", &save), *word = strtok_r(NULL, " \t", &save);
    if (!name)
        return true;
    bool cr = strchr(name, '\r') || (word && strchr(word, '\r'));
    const char *base = strrchr(name, '/');
    if (access(name, X_OK) == 0 && base && strcmp(base, "/env") == 0 && word && word[0] != '-' &&
        !strchr(word, '='))
        name = word;
    char *program = find_program(name);
    int why = errno;
    if (!program)
        tell(c, BAD, EX_CONFIG, what,
             cr ? "end its lines with a line feed alone" : "correct its first line, or install that program",
             "the first line of %s names %s, which cannot be run: %s", file, name, strerror(why));
    free(program);
    return program != NULL;
}

static void check_program(struct check *c, const char *what, const char *program)
{
    char *file = find_program(program);
    char *next = xasprintf("chmod +x %s, or correct `command`", program);
    struct stat st;

    if (!file)
        tell(c, BAD, EX_CONFIG, what, errno == EACCES ? next : "correct `command` in the config",
             "%s cannot be run: %s", program, strerror(errno));
    else if (stat(file, &st) < 0 || !S_ISREG(st.st_mode))
        tell(c, BAD, EX_CONFIG, what, "correct `command` in the config", "%s is not a program", file);
    else if (check_script(c, what, file))
        tell(c, GOOD, 0, what, NULL, "%s can be run", file);
    free(next);
    free(file);
}

/* Nothing is sent: that is alert-test's business. */
static void check_alerts(struct check *c)
{
    const struct config *f = c->config;

    if (f->alert_command)
        check_program(c, "alerts command", f->alert_command[0]);
    if (f->alert_command || f->alert_url_file || f->alert_telegram)
        tell(c, GOOD, 0, "alerts", NULL, "go to%s%s%s; to try them, run: tgspool alert-test",
             f->alert_command ? " command" : "", f->alert_url_file ? " url_file" : "",
             f->alert_telegram ? " telegram" : "");
    else
        tell(c, GOOD, 0, "alerts", NULL,
             "are only in the log; the section alerts of the config names where else");
}

static void check_handler(struct check *c, const struct bot_config *bot)
{
    char *what = xasprintf("%s handler", bot->name);

    if (bot->deliver == DELIVER_PULL) {
        tell(c, GOOD, 0, what, NULL, "the bot claims its events at %s%s%s", c->config->socket,
             c->config->listen_http ? " and " : "", c->config->listen_http ? c->config->listen_http : "");
    } else if (bot->deliver == DELIVER_DROPIN) {
        tell(c, GOOD, 0, what, NULL, "the bot asks http%s://%s as its API root",
             c->config->tls_cert ? "s" : "", c->config->listen_dropin);
    } else if (bot->deliver == DELIVER_HTTP) {
        struct url u;
        struct buf host = BUF_EMPTY;
        if (url_parse(bot->url, &u, NULL) == 0) {
            url_add_host(&host, &u);
            url_free(&u);
        }
        tell(c, GOOD, 0, what, NULL, "posts to %s (not tried: that would be an update)", buf_str(&host));
        buf_free(&host);
    } else {
        check_program(c, what, bot->command[0]);
    }
    free(what);
}

/* ---- Telegram ----------------------------------------------------------------------------------- */

static void tell_webhook(struct check *c, const struct bot_config *bot, const char *what,
                         const struct webhook_info *i)
{
    static const enum verdict verdicts[] = {
        [WEBHOOK_GOOD] = GOOD, [WEBHOOK_DOUBTFUL] = DOUBTFUL, [WEBHOOK_BAD] = BAD};
    struct buf text = BUF_EMPTY, next = BUF_EMPTY;

    enum webhook_verdict v = webhook_judge(bot, i, clock_now(), &text, &next);
    tell(c, verdicts[v], EX_CONFIG, what, buf_str(&next), "%s", buf_str(&text));
    buf_free(&text);
    buf_free(&next);
}

static void check_telegram(struct check *c, const struct bot_config *bot, const struct bot_secrets *secrets)
{
    struct err e = ERR_NONE;
    struct webhook_info info = {0};
    char *what = xasprintf("%s Telegram", bot->name), *username = NULL;
    struct ask *ask = ask_open(bot, secrets, &e);
    int64_t id;

    if (!ask) {
        tell(c, BAD, e.exit_code, what, "correct the config", "%s", e.text);
    } else if (ask_me(ask, &username, &id, &e) < 0) {
        tell(c, BAD, EX_UNAVAILABLE, what, ask_advice(ask), "%s", e.text);
    } else {
        tell(c, GOOD, 0, what, NULL, "bot @%s, id %lld%s", username, (long long)id,
             secrets->proxy_url ? ", through the proxy" : "");
        if (ask_webhook_info(ask, &info, &e) < 0)
            tell(c, BAD, EX_UNAVAILABLE, what, ask_advice(ask), "%s", e.text);
        else
            tell_webhook(c, bot, what, &info);
    }
    webhook_info_free(&info);
    ask_close(ask);
    free(username);
    free(what);
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static void check_all(struct check *c)
{
    struct err e = ERR_NONE;
    struct setup *s = setup_load(c->cli->config_path, &e);

    if (!s) {
        tell(c, BAD, e.exit_code, "config", "correct it; `tgspool config --options` lists what there is",
             "%s", e.text);
        return;
    }
    c->config = s->config;
    tell(c, GOOD, 0, "config", NULL, "%s: %zu %s", c->cli->config_path, s->config->n_bots,
         s->config->n_bots == 1 ? "bot" : "bots");
    for (size_t i = 0; i < s->config->n_warnings; i++)
        tell(c, DOUBTFUL, 0, "config", "correct it in the config", "%s", s->config->warnings[i]);
    bool dir_usable = check_dir(c, "spool", "spool.dir", c->config->dir);
    if (c->config->archive_dir)
        check_dir(c, "archive", "spool.archive_dir", c->config->archive_dir);
    check_store(c, dir_usable);
    check_group(c);
    check_socket(c);
    if (!c->running) {
        check_listener(c, "listen.http", c->config->listen_http);
        check_listener(c, "listen.webhook", c->config->listen_webhook);
        check_listener(c, "listen.dropin", c->config->listen_dropin);
    }
    check_alerts(c);
    for (size_t i = 0; i < s->config->n_bots; i++) {
        check_handler(c, &s->config->bots[i]);
        if (!cli_flag(c->cli, "offline"))
            check_telegram(c, &s->config->bots[i], &s->secrets[i]);
    }
    setup_free(s);
}

static int run_check(struct cli *cli, int argc, char **argv)
{
    struct check c = {.cli = cli, .exit_code = EX_OK};

    (void)argc;
    (void)argv;
    if (cli->json) {
        json_start(&c.j, &c.json);
        json_object(&c.j);
        json_key(&c.j, "checks");
        json_array(&c.j);
    }
    check_all(&c);
    if (cli->json) {
        json_array_end(&c.j);
        json_kv_bool(&c.j, "ok", c.exit_code == EX_OK);
        json_object_end(&c.j);
        json_end(&c.j);
        cli_print("%s\n", buf_str(&c.json));
        buf_free(&c.json);
    } else if (c.exit_code == EX_OK) {
        cli_print("%s%s\n", c.doubtful ? "usable; see the warnings" : "all well",
                  c.running ? "; the daemon runs" : "");
        cli_next(cli, c.running ? "status" : "run");
    }
    return cli_finish(c.exit_code);
}

static const struct cli_option options[] = {{"offline", NULL, "do not ask Telegram"}, {NULL, NULL, NULL}};

const struct command command_check = {
    .name = "check",
    .arguments = "[--offline]",
    .summary = "whether the config, the store and Telegram are in order",
    .usage = "Looks at the config and its secrets, the spool, free space, ports, handlers, and\n"
             "asks Telegram (through the proxy, if there is one) for the bot's name, its\n"
             "webhook and how many updates wait there. Takes none of them, and changes\n"
             "nothing.\n",
    .options = options,
    .max_arguments = 0,
    .run = run_check,
};
