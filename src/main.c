/* tgspool: main sets up the heap and hands over to the command line. */
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"

/* RocksDB and the C++ library abort where memory or threads run out, with a line that says little. */
static void on_abort(int number)
{
    static const char text[] =
        "tgspool: aborted, see the line above: memory, threads or the disk ran out, or there is a "
        "mistake in it; what is on disk is unharmed, and it can be started again\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)n;
    (void)number; /* it ends when this returns */
}

int main(int argc, char **argv)
{
    /* One arena, and large pieces straight from the system, given back when freed: a burst must not leave the
     * process large for ever. Before the first allocation, since threads of the store choose arenas early. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
    signal(SIGABRT, on_abort);
    umask(077); /* what commands write in the spool is as private as what the daemon does */
    return cli_main(argc, argv);
}
