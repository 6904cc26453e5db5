/* From /proc/self, getrlimit and a clock. */
#include "base/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The second number of statm: pages in memory (proc(5)). */
static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long pages = -1;

    if (!f)
        return -1;
    if (fscanf(f, "%*s %lld", &pages) != 1)
        pages = -1;
    fclose(f);
    return pages < 0 ? -1 : (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static int64_t open_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int64_t n = -1; /* the directory's own */

    if (!d)
        return -1;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

void process_usage(struct process_usage *out)
{
    struct rlimit fds;
    struct timespec cpu;

    out->resident_bytes = resident_bytes();
    out->open_fds = open_fds();
    out->max_fds = getrlimit(RLIMIT_NOFILE, &fds) || fds.rlim_cur > INT64_MAX ? -1 : (int64_t)fds.rlim_cur;
    out->cpu_ms = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu)
                      ? -1
                      : (int64_t)cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000;
}
