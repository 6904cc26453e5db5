/* What killed processes leave running comes to this process, which ends it. */
#ifndef PROC_ORPHANS_H
#define PROC_ORPHANS_H

/* From now on, whoever loses its parent below this process becomes a child of this process. */
void orphans_adopt(void);
/* Kills all children of this process, and what becomes its child by that, and waits for their ends. What made a session of
 * its own wants to outlive its parent, and is left. The caller has no child that it would miss. */
void orphans_end(void);

#endif
