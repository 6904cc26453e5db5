/* The clocks. Durations and deadlines go by boot time, which no one can set and which counts a suspended
 * machine's sleep; wall time is only shown. Pure rooms never call these: they are given `now`. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define SECONDS(n) ((int64_t)(n)*1000)
#define MINUTES(n) SECONDS((n)*60)
#define HOURS(n) MINUTES((n)*60)
#define TIME_NEVER INT64_MAX

int64_t clock_wall_ms(void); /* milliseconds since 1970 */
int64_t clock_boot_ms(void); /* milliseconds of CLOCK_BOOTTIME */
int64_t clock_boot_us(void); /* the same in microseconds, for measuring */

/* The daemon's time: the wall clock as it stood at the first call, plus the boot time passed since.
 * Milliseconds since 1970; never steps. */
int64_t clock_now(void);

#endif
