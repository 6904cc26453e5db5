#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void random_bytes(void *p, size_t n)
{
    char *to = p;

    while (n > 0) {
        ssize_t got = getrandom(to, n, 0);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            abort(); /* a kernel without getrandom cannot hand out tokens */
        }
        to += got;
        n -= (size_t)got;
    }
}

uint64_t random_below(uint64_t below)
{
    uint64_t v;

    assert(below > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % below;
    do
        random_bytes(&v, sizeof(v));
    while (v >= limit);
    return v % below;
}
