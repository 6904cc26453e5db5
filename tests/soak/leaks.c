/* For LD_PRELOAD: what soak.py has to notice goes wrong with a daemon. Environment: TGSPOOL_LEAKS=NAME=N,..., of fds,
 * descriptors kept of each connection accepted; keep_kb, KiB of touched memory; disk_kb, KiB added to the file
 * TGSPOOL_LEAKS_FILE at each sync; slow_ms, by which a sync takes longer with each second since the start. Children
 * are left alone. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 1024
#define SLOWER_FOR_S 40 /* then what waits can still be handled */

static long fds, keep_kb, disk_kb, slow_ms;
static const char *path;
static struct timespec begun;

static long number(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? atol(at + strlen(name)) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("TGSPOOL_LEAKS");

    unsetenv("LD_PRELOAD");
    if (!text)
        return;
    fds = number(text, "fds=");
    keep_kb = number(text, "keep_kb=");
    disk_kb = number(text, "disk_kb=");
    slow_ms = number(text, "slow_ms=");
    path = getenv("TGSPOOL_LEAKS_FILE");
    clock_gettime(CLOCK_MONOTONIC, &begun);
}

/* Not of malloc, which a sanitizer has a share in. */
static void keep_memory(void)
{
    void *p = mmap(NULL, (size_t)keep_kb * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p != MAP_FAILED)
        memset(p, 1, (size_t)keep_kb * BLOCK);
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict n, int flags)
{
    static int (*next)(int, __SOCKADDR_ARG, socklen_t *restrict, int);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "accept4");
    int got = next(fd, address, n, flags), error = errno;
    if (got >= 0 && keep_kb)
        keep_memory();
    for (long i = 0; got >= 0 && i < fds; i++)
        (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    errno = error;
    return got;
}

static void keep_disk(void)
{
    static const char zeros[BLOCK];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

    for (long i = 0; fd >= 0 && i < disk_kb; i++)
        (void)!write(fd, zeros, sizeof(zeros));
    if (fd >= 0)
        close(fd);
}

int fdatasync(int fd)
{
    static int (*next)(int);
    struct timespec now;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "fdatasync");
    if (disk_kb)
        keep_disk();
    clock_gettime(CLOCK_MONOTONIC, &now);
    long s = now.tv_sec - begun.tv_sec, ms = slow_ms * (s < SLOWER_FOR_S ? s : SLOWER_FOR_S);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    return next(fd);
}
