#include "core/yajl_memory.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"

/* In front of each piece: how long it is. */
union head {
    size_t n;
    max_align_t align;
};

static void *grow(void *ctx, void *p, size_t n)
{
    union head *h = p ? (union head *)p - 1 : NULL;

    (void)ctx;
    if (h && n <= h->n)
        return p;
    if (h && n < 2 * h->n)
        n = 2 * h->n;
    h = xrealloc(h, sizeof(*h) + n);
    h->n = n;
    return h + 1;
}

static void *take(void *ctx, size_t n)
{
    return grow(ctx, NULL, n);
}

static void give_back(void *ctx, void *p)
{
    (void)ctx;
    if (p)
        free((union head *)p - 1);
}

yajl_alloc_funcs yajl_memory = {take, grow, give_back, NULL};
