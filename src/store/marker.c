#include "store/marker.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define FRONT "tgspool spool; schema "

bool marker_read(struct slice text, int *schema)
{
    const size_t front = sizeof(FRONT) - 1;
    int64_t n;

    if (text.n <= front || memcmp(text.p, FRONT, front) != 0)
        return false;
    struct slice number = slice_make(text.p + front, text.n - front);
    const char *end = memchr(number.p, '\n', number.n);
    if (end)
        number.n = (size_t)(end - number.p);
    if (text_to_i64(number, 1, INT32_MAX, &n) < 0)
        return false;
    *schema = (int)n;
    return true;
}

const char *marker_text(int schema, char out[MARKER_MAX])
{
    snprintf(out, MARKER_MAX, FRONT "%d\n", schema);
    return out;
}
