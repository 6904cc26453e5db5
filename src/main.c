/* tgspool: main sets up the heap and hands over to the command line. */
#include <malloc.h>
#include <sys/stat.h>

#include "cli/command.h"

int main(int argc, char **argv)
{
    /* One arena, and large pieces straight from the system, given back when freed: a burst must not leave the
     * process large for ever. Before the first allocation, since threads of the store choose arenas early. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
    umask(077); /* what commands write in the spool is as private as what the daemon does */
    return cli_main(argc, argv);
}
