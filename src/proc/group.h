/* Whether a process group is gone. */
#ifndef PROC_GROUP_H
#define PROC_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether anything in the group can still run. Its leader must have been reaped (a zombie keeps its group).
 * Members that are zombies nobody collects, as under an init that does not, count as gone. */
bool group_alive(pid_t pgid);

#endif
