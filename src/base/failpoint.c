#include "base/failpoint.h"

#ifdef ENABLE_FAILPOINTS

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

struct point {
    char name[64];
    enum { POINT_CRASH, POINT_ERRNO, POINT_SLEEP } action;
    int arg;
    long at;     /* the pass that counts, 0: every one */
    int from_on; /* also every later pass */
    long passes;
};

static struct point points[64];
static size_t n_points;
static int loaded;

/* ---- counting passes ---------------------------------------------------------------------------- */

static struct passed {
    char name[64];
    unsigned long times;
} passed[256];
static char *passes_file;

static void write_passes(void)
{
    FILE *f = fopen(passes_file, "we");

    if (!f)
        abort();
    for (const struct passed *p = passed; p->times; p++)
        fprintf(f, "%s %lu\n", p->name, p->times);
    fclose(f);
}

static void count_pass(const char *name)
{
    struct passed *p = passed;

    while (p->times && strcmp(p->name, name))
        p++;
    if (p == &passed[ARRAY_LEN(passed) - 1])
        abort();
    strncpy(p->name, name, sizeof(p->name) - 1);
    p->times++;
}

/* ---- what was asked for ------------------------------------------------------------------------- */

static void parse_item(char *item)
{
    char *eq = strchr(item, '=');
    if (!eq || n_points == ARRAY_LEN(points))
        abort(); /* a test with a wrong spelling must not pass */
    *eq = '\0';
    struct point *p = &points[n_points++];
    strncpy(p->name, item, sizeof(p->name) - 1);
    char *action = eq + 1, *at = strchr(action, '@');
    if (!strncmp(action, "passes:", 7)) {
        passes_file = xstrdup(action + 7);
        atexit(write_passes);
        n_points--;
        return;
    }
    if (at) {
        *at++ = '\0';
        p->at = strtol(at, &at, 10);
        p->from_on = *at == '+';
    }
    if (!strcmp(action, "crash"))
        p->action = POINT_CRASH;
    else if (!strncmp(action, "errno:", 6))
        p->action = POINT_ERRNO, p->arg = atoi(action + 6);
    else if (!strncmp(action, "sleep:", 6))
        p->action = POINT_SLEEP, p->arg = atoi(action + 6);
    else
        abort();
}

void failpoints_set(const char *items)
{
    char *copy = xstrdup(items), *save = NULL;

    memset(points, 0, sizeof(points));
    n_points = 0;
    for (char *item = strtok_r(copy, ";", &save); item; item = strtok_r(NULL, ";", &save))
        parse_item(item);
    free(copy);
    loaded = 1;
}

int failpoint_hit(const char *name)
{
    int pretended = 0;

    if (!loaded) {
        const char *items = getenv("TGSPOOL_FAILPOINTS");
        failpoints_set(items ? items : "");
    }
    if (passes_file)
        count_pass(name);
    for (size_t i = 0; i < n_points; i++) { /* each counts its passes, whatever the others do */
        struct point *p = &points[i];
        if (strcmp(p->name, name))
            continue;
        p->passes++;
        if (p->at && p->passes != p->at && !(p->from_on && p->passes > p->at))
            continue;
        if (p->action == POINT_CRASH)
            _exit(42);
        if (p->action == POINT_ERRNO) {
            pretended = p->arg;
            continue;
        }
        struct timespec t = {p->arg / 1000, p->arg % 1000 * 1000000L};
        nanosleep(&t, NULL);
    }
    return pretended;
}

int failpoint_hit_each(const char *prefix, const char *word)
{
    char name[64];

    snprintf(name, sizeof(name), "%s%s", prefix, word);
    for (char *p = name; *p; p++)
        if (*p == ' ')
            *p = '_';
    return failpoint_hit(name);
}

#else
typedef int failpoint_is_not_empty;
#endif
