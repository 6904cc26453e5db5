/* Where yajl gets its memory: it checks nothing that it is given, and grows its stack of open containers by 128 bytes each
 * time, which of a text that only opens containers would make copies without end. */
#ifndef CORE_YAJL_MEMORY_H
#define CORE_YAJL_MEMORY_H

#include <yajl/yajl_common.h>

/* For yajl_alloc and yajl_gen_alloc. */
extern yajl_alloc_funcs yajl_memory;

#endif
