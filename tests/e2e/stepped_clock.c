/* For LD_PRELOAD: the wall clock is off by as many milliseconds as the eight bytes of the file STEPPED_CLOCK say, which may
 * change at any time. Other clocks go on as they are. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WALL_FROM 500000000 /* seconds: what is less is no wall time */

static const volatile int64_t *shared;

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv("STEPPED_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *p = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    shared = p == MAP_FAILED ? NULL : p;
}

static void step(struct timespec *t, int sign)
{
    int64_t ms = shared ? sign * *shared : 0, ns = t->tv_nsec + ms % 1000 * 1000000;

    t->tv_sec += ms / 1000 + (ns < 0 ? -1 : ns >= 1000000000);
    t->tv_nsec = ns < 0 ? ns + 1000000000 : ns >= 1000000000 ? ns - 1000000000 : ns;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        step(t, 1);
    return rc;
}

int gettimeofday(struct timeval *restrict v, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *v = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

/* The kernel, which ends the wait, knows of no step. */
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec t = *until;

    if (!real) {
        void *f = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        if (!f)
            f = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
        *(void **)&real = f;
    }
    if (t.tv_sec > WALL_FROM)
        step(&t, -1);
    return real(cond, mutex, &t);
}
