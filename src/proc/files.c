#include "proc/files.h"

#include <stdbool.h>
#include <sys/resource.h>

#include "base/log.h"

static struct rlimit before;
static bool raised;

void proc_files_raise(void)
{
    if (getrlimit(RLIMIT_NOFILE, &before) || before.rlim_cur == before.rlim_max)
        return;
    struct rlimit all = {before.rlim_max, before.rlim_max};
    raised = setrlimit(RLIMIT_NOFILE, &all) == 0;
    if (raised)
        log_debug(NULL, "The limit of open files was raised: from=%llu to=%llu",
                  (unsigned long long)before.rlim_cur, (unsigned long long)before.rlim_max);
}

void proc_files_restore(void)
{
    if (raised)
        setrlimit(RLIMIT_NOFILE, &before); /* a bare system call in Linux */
}
