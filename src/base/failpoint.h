/* Failpoints: named places at which a test makes the program die, fail or wait. Compiled in only with
 * --enable-failpoints; otherwise FAILPOINT() is the constant 0.
 *
 * The environment variable TGSPOOL_FAILPOINTS holds "name=action" items separated by ';'. An action is
 *   crash         _exit(42) at once, as kill -9 would
 *   errno:NUMBER  FAILPOINT() returns NUMBER (an errno)
 *   sleep:MS      waits that long, then goes on
 * with an optional "@N": only at the N-th pass (from 1), and "+" behind it: at every pass from there on.
 *
 * Those named break.* make the program wrong while they give an errno: tests show with them that they would see it. */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#ifdef ENABLE_FAILPOINTS
/* Returns 0, or the errno that the place shall pretend to have met. */
int failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) 0
#endif

#endif
