/* A worker as a bot's author might write it, and write it wrongly. The update says what to do: {"do":"ok"}
 * and so on.
 *
 *   handler worker        answers each line as its update says
 *   handler quick         reads a line and dies
 *   handler deaf          reads nothing, dies after 0.3 s
 *   handler half          reads a few bytes of the line, dies
 *   handler mute          reads nothing, lives
 *   handler stubborn      as worker, but ignores SIGTERM
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void nap(int ms)
{
    struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

    nanosleep(&t, NULL);
}

/* The id member's text, which stands first in the line. */
static void find_id(const char *line, char id[128])
{
    const char *p = strstr(line, "\"id\":\"");

    snprintf(id, 128, "%.*s", p ? (int)strcspn(p + 6, "\"") : 0, p ? p + 6 : "");
}

/* A line in which each @ stands for the id. */
static void say(const char *line, const char *id)
{
    for (; *line; line++) {
        if (*line == '@')
            fputs(id, stdout);
        else
            putchar(*line);
    }
    putchar('\n');
    fflush(stdout);
}

static void flood(long bytes)
{
    while (bytes-- > 0)
        putchar('x');
    putchar('\n');
    fflush(stdout);
}

#define OK "{\"id\":\"@\",\"ok\":true}"
#define FAILED(more) "{\"id\":\"@\",\"ok\":false" more "}"

static void answer(const char *id, const char *what)
{
    static const struct {
        const char *what, *line;
    } plain[] = {
        {"ok", OK},
        {"fail", FAILED(",\"error\":\"no luck\",\"retry_after\":7")},
        {"fail-bare", FAILED("")},
        {"fail-text", FAILED(",\"retry_after\":\"5m\"")},
        {"fail-odd", FAILED(",\"error\":5,\"retry_after\":\"soon\",\"dead\":\"yes\"")},
        {"dead", FAILED(",\"error\":\"never\",\"dead\":true")},
        {"calls", "{\"id\":\"@\",\"ok\":true,\"calls\":[{\"method\":\"sendMessage\",\"chat_id\":5},7,"
                  "{\"method\":\"sendMessage\",\"once\":true},{\"method\":\"logOut\"}],"
                  "\"keys\":[\"k1\",\"\",3,\"k2\"],\"later\":{\"a\":[1]}}"},
        {"fail-calls",
         "{\"id\":\"@\",\"ok\":false,\"calls\":[{\"method\":\"sendMessage\"}],\"keys\":[\"k\"]}"},
        {"odd-calls", "{\"id\":\"@\",\"ok\":true,\"calls\":\"x\",\"keys\":7}"},
        {"crlf", OK "\r"},
        {"twice", OK "\n" OK},
        {"unknown", "{\"id\":\"shop/999\",\"ok\":true}\n" FAILED("")},
        {"garbage", "hello\n\n{\"id\":\n[1,2]\n{}\n{\"id\":\"@\"}\n{\"id\":\"@\",\"ok\":1}\n{\"id\":5,"
                    "\"ok\":true}\n"
                    "{\"id\":\"@\",\"extend\":\"often\"}\n{\"id\":\"@\",\"ok\":false}"},
    };

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (!strcmp(what, plain[i].what))
            say(plain[i].line, id);
    if (!strcmp(what, "big")) {
        flood(10 << 20);
        say(OK, id);
    } else if (!strcmp(what, "chatter")) { /* much, but in lines */
        for (int i = 0; i < 200; i++)
            flood(50000);
        say(OK, id);
    } else if (!strcmp(what, "die")) {
        fputs("boom\n", stderr);
        exit(3);
    } else if (!strcmp(what, "die-late")) {
        nap(1200);
        exit(3);
    } else if (!strcmp(what, "ok-die")) {
        say(OK, id);
        _exit(0);
    } else if (!strcmp(what, "ok-close")) {
        say(OK, id);
        close(1);
    } else if (!strcmp(what, "close")) {
        close(1);
        pause();
    } else if (!strcmp(what, "hang")) {
        for (;;)
            pause();
    } else if (!strcmp(what, "pid")) {
        char line[160];
        snprintf(line, sizeof(line), "{\"id\":\"%s\",\"ok\":false,\"error\":\"%d\"}", id, (int)getpid());
        puts(line);
        fflush(stdout);
    } else if (!strcmp(what, "extend")) {
        say("{\"id\":\"@\",\"extend\":\"3s\"}", id);
        nap(1500);
        say(OK, id);
    } else if (!strcmp(what, "extend-number")) {
        say("{\"id\":\"@\",\"extend\":1}", id);
        pause();
    }
}

static int work(void)
{
    char *line = NULL;
    size_t cap = 0;

    while (getline(&line, &cap, stdin) > 0) {
        char id[128], what[64] = "ok";
        find_id(line, id);
        const char *p = strstr(line, "\"do\":\"");
        if (p)
            snprintf(what, sizeof(what), "%.*s", (int)strcspn(p + 6, "\""), p + 6);
        if (!strcmp(what, "echo")) { /* the whole line as the error, so that the test sees it */
            char *text = strdup(line), out[2048];
            for (char *q = text; *q; q++)
                *q = *q == '"' ? '\'' : *q == '\n' ? '$' : *q;
            snprintf(out, sizeof(out), "{\"id\":\"%s\",\"ok\":false,\"error\":\"%s\"}", id, text);
            puts(out);
            fflush(stdout);
            free(text);
        } else {
            answer(id, what);
        }
    }
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    char bytes[4096];

    if (!strcmp(mode, "stubborn"))
        signal(SIGTERM, SIG_IGN);
    if (!strcmp(mode, "worker") || !strcmp(mode, "stubborn"))
        return work();
    if (!strcmp(mode, "quick"))
        return read(0, bytes, sizeof(bytes)) > 0 ? 4 : 5;
    if (!strcmp(mode, "half"))
        return read(0, bytes, 10) == 10 ? 4 : 5;
    if (!strcmp(mode, "deaf")) {
        nap(300);
        return 4;
    }
    for (;;)
        pause();
}
