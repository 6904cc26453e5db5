/* Children's environment. What is hidden is kept in one list for the whole process, because a bot's handler
 * must not see the token of another bot either. */
#include "proc/env.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* Secrets, and what systemd tells this process and no other. */
static const char *const always_hidden[] = {"TGSPOOL_TOKEN", "TGSPOOL_FAILPOINTS", "CREDENTIALS_DIRECTORY",
                                            "NOTIFY_SOCKET", "WATCHDOG_PID",       "WATCHDOG_USEC",
                                            "LISTEN_FDS",    "LISTEN_PID",         "LISTEN_FDNAMES"};

static char **hidden;
static size_t n_hidden;

/* Whether var, which is NAME=value, is of this name. */
static bool is_named(const char *var, const char *name)
{
    size_t n = strlen(name);

    return !strncmp(var, name, n) && var[n] == '=';
}

static bool is_hidden(const char *var)
{
    for (size_t i = 0; i < ARRAY_LEN(always_hidden); i++)
        if (is_named(var, always_hidden[i]))
            return true;
    for (size_t i = 0; i < n_hidden; i++)
        if (is_named(var, hidden[i]))
            return true;
    return false;
}

void proc_env_hide(const char *name)
{
    if (!name || !*name)
        return;
    for (size_t i = 0; i < n_hidden; i++)
        if (!strcmp(hidden[i], name))
            return;
    hidden = xrealloc(hidden, (n_hidden + 1) * sizeof(*hidden));
    hidden[n_hidden++] = xstrdup(name);
}

/* Takes var. */
static void add(struct proc_env *env, char *var)
{
    if (env->n + 1 >= env->cap) {
        env->cap = env->cap ? env->cap * 2 : 64;
        env->vars = xrealloc(env->vars, env->cap * sizeof(*env->vars));
    }
    env->vars[env->n++] = var;
    env->vars[env->n] = NULL;
}

void proc_env_init(struct proc_env *env)
{
    *env = (struct proc_env){NULL, 0, 0};
    for (char **var = environ; var && *var; var++)
        if (!is_hidden(*var))
            add(env, xstrdup(*var));
}

/* Where a variable stands, or n. */
static size_t find(const struct proc_env *env, const char *name)
{
    size_t i = 0;

    while (i < env->n && !is_named(env->vars[i], name))
        i++;
    return i;
}

void proc_env_set(struct proc_env *env, const char *name, const char *value)
{
    char *var = xasprintf("%s=%s", name, value);
    size_t i = find(env, name);

    if (i == env->n) {
        add(env, var);
        return;
    }
    free(env->vars[i]);
    env->vars[i] = var;
}

void proc_env_unset(struct proc_env *env, const char *name)
{
    size_t i = find(env, name);

    if (i == env->n)
        return;
    free(env->vars[i]);
    env->vars[i] = env->vars[--env->n];
    env->vars[env->n] = NULL;
}

void proc_env_free(struct proc_env *env)
{
    for (size_t i = 0; i < env->n; i++)
        free(env->vars[i]);
    free(env->vars);
    *env = (struct proc_env){NULL, 0, 0};
}
