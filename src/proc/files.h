/* The limit of open files: high for us, who may have thousands of connections; for children as it was, since some
 * programs break with descriptors beyond 1024 (select(2)). */
#ifndef PROC_FILES_H
#define PROC_FILES_H

/* Raises the soft limit to the hard one. Call once, before any child is started. */
void proc_files_raise(void);
/* In a child, before exec: back to what it was. Async-signal-safe. */
void proc_files_restore(void);

#endif
