/* The environment of children: ours, without secrets and without what is meant for this process alone, and
 * with what is added. */
#ifndef PROC_ENV_H
#define PROC_ENV_H

#include <stddef.h>

struct proc_env {
    char **vars; /* NULL-terminated, for execve; owned */
    size_t n, cap;
};

/* From now on no child gets this variable (copied; NULL is ignored): what token_env names. Never forgotten.
 */
void proc_env_hide(const char *name);

/* A copy of our environment, cleaned. */
void proc_env_init(struct proc_env *env);
/* Adds NAME=value; one that is there already is replaced. */
void proc_env_set(struct proc_env *env, const char *name, const char *value);
void proc_env_unset(struct proc_env *env, const char *name);
void proc_env_free(struct proc_env *env);

#endif
