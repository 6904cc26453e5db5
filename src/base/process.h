/* What this process takes of the machine, as the kernel tells it. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdint.h>

struct process_usage {
    int64_t resident_bytes; /* of memory; -1: not known, as is each of the others */
    int64_t open_fds, max_fds;
    int64_t cpu_ms; /* of all threads */
};

/* Cheap: a few system calls. */
void process_usage(struct process_usage *out);

#endif
