/* A skip list (W. Pugh, 1990) whose entries live in an arena that is dropped as a whole. */
#include "store/overlay.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

#define LEVELS 12 /* at a quarter each: enough for millions */
#define CHUNK (32u << 10)

struct overlay_entry {
    char *key, *value;
    uint32_t n_key, n_value, cap_value;
    bool deleted;
    unsigned char levels;
    struct overlay_entry *next[]; /* `levels` of them */
};

struct chunk {
    struct chunk *before;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

struct overlay {
    struct overlay_entry *head[LEVELS];
    struct chunk *chunks; /* the newest is filled */
    uint64_t random;
    size_t count, bytes;
};

int key_compare(struct slice a, struct slice b)
{
    int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    if (order)
        return order;
    return a.n < b.n ? -1 : a.n > b.n;
}

/* ---- memory ------------------------------------------------------------------------------------- */

static struct chunk *chunk_new(size_t size, struct chunk *before)
{
    struct chunk *c = xmalloc(sizeof(*c) + size);

    c->before = before;
    c->used = 0;
    c->size = size;
    return c;
}

/* Large pieces get a chunk of their own, put behind the newest so that its rest is not lost. */
static void *arena_take(struct overlay *o, size_t n)
{
    n = (n + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (n > CHUNK / 4) {
        struct chunk *own = chunk_new(n, o->chunks->before);
        o->chunks->before = own;
        return own->bytes;
    }
    if (o->chunks->used + n > o->chunks->size)
        o->chunks = chunk_new(CHUNK, o->chunks);
    void *p = o->chunks->bytes + o->chunks->used;
    o->chunks->used += n;
    return p;
}

struct overlay *overlay_new(void)
{
    struct overlay *o = xcalloc(1, sizeof(*o));

    o->random = UINT64_C(0x9E3779B97F4A7C15);
    o->chunks = chunk_new(CHUNK, NULL);
    return o;
}

void overlay_clear(struct overlay *o)
{
    while (o->chunks->before) {
        struct chunk *before = o->chunks->before;
        free(o->chunks);
        o->chunks = before;
    }
    if (o->chunks->size != CHUNK) {
        free(o->chunks);
        o->chunks = chunk_new(CHUNK, NULL);
    }
    o->chunks->used = 0;
    memset(o->head, 0, sizeof(o->head));
    o->count = o->bytes = 0;
}

void overlay_free(struct overlay *o)
{
    overlay_clear(o);
    free(o->chunks);
    free(o);
}

/* ---- the list ----------------------------------------------------------------------------------- */

/* xorshift: only the shape of the list hangs on it. */
static unsigned random_levels(struct overlay *o)
{
    unsigned levels = 1;

    o->random ^= o->random << 13;
    o->random ^= o->random >> 7;
    o->random ^= o->random << 17;
    for (uint64_t r = o->random; levels < LEVELS && (r & 3) == 0; r >>= 2)
        levels++;
    return levels;
}

/* The first entry at or behind the key; `links` (may be NULL) gets, for each level, the link that leads there. */
static struct overlay_entry *search(const struct overlay *o, struct slice key, struct overlay_entry ***links)
{
    struct overlay_entry *const *level_links = o->head;

    for (int level = LEVELS - 1; level >= 0; level--) {
        while (level_links[level] && key_compare(overlay_key(level_links[level]), key) < 0)
            level_links = level_links[level]->next;
        if (links)
            links[level] = (struct overlay_entry **)(uintptr_t)&level_links[level];
    }
    return level_links[0];
}

/* The entry of a key, made if it is not there. */
static struct overlay_entry *entry_of(struct overlay *o, struct slice key)
{
    struct overlay_entry **links[LEVELS];
    struct overlay_entry *e = search(o, key, links);

    if (e && slice_eq(overlay_key(e), key))
        return e;
    unsigned levels = random_levels(o);
    e = arena_take(o, sizeof(*e) + levels * sizeof(e->next[0]));
    *e = (struct overlay_entry){.n_key = (uint32_t)key.n, .levels = (unsigned char)levels};
    e->key = arena_take(o, key.n);
    memcpy(e->key, key.p, key.n);
    for (unsigned i = 0; i < levels; i++) {
        e->next[i] = *links[i];
        *links[i] = e;
    }
    o->count++;
    o->bytes += key.n;
    return e;
}

void overlay_put(struct overlay *o, struct slice key, struct slice value)
{
    struct overlay_entry *e = entry_of(o, key);

    if (value.n > e->cap_value) {
        e->value = arena_take(o, value.n);
        e->cap_value = (uint32_t)value.n;
    }
    if (value.n)
        memcpy(e->value, value.p, value.n);
    o->bytes = o->bytes - e->n_value + value.n;
    e->n_value = (uint32_t)value.n;
    e->deleted = false;
}

void overlay_delete(struct overlay *o, struct slice key)
{
    struct overlay_entry *e = entry_of(o, key);

    o->bytes -= e->n_value;
    e->n_value = 0;
    e->deleted = true;
}

size_t overlay_count(const struct overlay *o)
{
    return o->count;
}

size_t overlay_bytes(const struct overlay *o)
{
    return o->bytes;
}

const struct overlay_entry *overlay_seek(const struct overlay *o, struct slice key)
{
    return search(o, key, NULL);
}

const struct overlay_entry *overlay_find(const struct overlay *o, struct slice key)
{
    const struct overlay_entry *e = search(o, key, NULL);
    return e && slice_eq(overlay_key(e), key) ? e : NULL;
}

const struct overlay_entry *overlay_next(const struct overlay_entry *e)
{
    return e->next[0];
}

const struct overlay_entry *overlay_before(const struct overlay *o, struct slice key)
{
    struct overlay_entry *const *links = o->head;
    const struct overlay_entry *last = NULL;

    for (int level = LEVELS - 1; level >= 0; level--)
        while (links[level] && key_compare(overlay_key(links[level]), key) < 0) {
            last = links[level];
            links = links[level]->next;
        }
    return last;
}

const struct overlay_entry *overlay_first(const struct overlay *o)
{
    return o->head[0];
}

struct slice overlay_key(const struct overlay_entry *e)
{
    return slice_make(e->key, e->n_key);
}

struct slice overlay_value(const struct overlay_entry *e)
{
    return slice_make(e->value ? e->value : "", e->n_value);
}

bool overlay_deleted(const struct overlay_entry *e)
{
    return e->deleted;
}
