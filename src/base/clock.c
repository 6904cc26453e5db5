#include "base/clock.h"

#include <time.h>

#include "base/failpoint.h"

static int64_t read_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_boot_ms(void)
{
    return clock_boot_us() / 1000;
}

int64_t clock_now(void)
{
    static int64_t wall_at_boot_zero;

    if (FAILPOINT("break.wall_clock"))
        return clock_wall_ms();
    if (!wall_at_boot_zero)
        wall_at_boot_zero = clock_wall_ms() - clock_boot_ms();
    return wall_at_boot_zero + clock_boot_ms();
}
