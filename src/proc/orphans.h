/* What killed processes leave running comes to this process, which ends it. */
#ifndef PROC_ORPHANS_H
#define PROC_ORPHANS_H

/* From now on, whoever loses its parent below this process becomes a child of this process. Called once, before it starts one:
 * those that are there already are of the program that this one took the place of, as of a script that ends with exec. */
void orphans_adopt(void);
/* Kills all children that came since then, and what becomes one by that, and waits for their ends. What made a session of
 * its own wants to outlive its parent, and is left. The caller has no child that it would miss. */
void orphans_end(void);

#endif
