/* Failpoints: named places at which a test makes the program die, fail or wait. Compiled in only with
 * --enable-failpoints; otherwise FAILPOINT() is the constant 0.
 *
 * The environment variable TGSPOOL_FAILPOINTS holds "name=action" items separated by ';'. An action is
 *   crash         _exit(42) at once, as kill -9 would
 *   errno:NUMBER  FAILPOINT() returns NUMBER (an errno)
 *   sleep:MS      waits that long, then goes on
 * with an optional "@N": only at the N-th pass (from 1), and "+" behind it: at every pass from there on.
 *
 * The item "*=passes:FILE" writes into FILE, at a normal end, how often each was passed ("NAME TIMES" a line).
 *
 * A place has a name for the moment before and one for the moment after: ROOM.before_WHAT and ROOM.after_WHAT, or, for calls
 * of the store, of names of files and of processes, the verb and its past: store.sync, store.synced. tests/lint checks that no
 * such call goes without, and tests/matrix crashes at each.
 *
 * Those named break.* make the program wrong while they give an errno: tests show with them that they would see it. */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#ifdef ENABLE_FAILPOINTS
/* Returns 0, or the errno that the place shall pretend to have met. */
int failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
/* The same of a name that ends with a word (blanks in it are underscores): one for each row of a table. */
int failpoint_hit_each(const char *prefix, const char *word);
#define FAILPOINT_EACH(prefix, word) failpoint_hit_each(prefix, word)
/* For tests within a process: these items from now on, instead of those there were; passes are counted anew. */
void failpoints_set(const char *items);
#else
#define FAILPOINT(name) 0
#define FAILPOINT_EACH(prefix, word) 0
#endif

#endif
