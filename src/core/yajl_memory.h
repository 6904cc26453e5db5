/* Where yajl gets its memory, and what it passes over. It checks nothing that it is given, and grows its stack of open
 * containers by 128 bytes each time, which of a text that only opens containers would make copies without end. */
#ifndef CORE_YAJL_MEMORY_H
#define CORE_YAJL_MEMORY_H

#include <stdbool.h>
#include <yajl/yajl_common.h>

/* For yajl_alloc and yajl_gen_alloc. */
extern yajl_alloc_funcs yajl_memory;

/* Between the parts of a text: JSON's blanks, and two more. */
static inline bool yajl_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
