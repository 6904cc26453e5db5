/* The open batch: what a tick has put and deleted so far, in order of keys, so that reads of the same tick can look
 * through it. It becomes one write of the database; a key that was changed several times is written once.
 * Measured against RocksDB's WriteBatchWithIndex: see doc/architecture.md, "The tick". */
#ifndef STORE_OVERLAY_H
#define STORE_OVERLAY_H

#include <stdbool.h>

#include "base/bytes.h"

struct overlay;
struct overlay_entry; /* valid until the next put, delete or clear */

struct overlay *overlay_new(void);
void overlay_free(struct overlay *o);
void overlay_clear(struct overlay *o); /* gives back all memory but a little */

/* Key and value are copied. */
void overlay_put(struct overlay *o, struct slice key, struct slice value);
void overlay_delete(struct overlay *o, struct slice key);

size_t overlay_count(const struct overlay *o); /* keys in it */
size_t overlay_bytes(const struct overlay *o); /* of keys and values, as far as they are still of use */

/* The entry of a key, or NULL. */
const struct overlay_entry *overlay_find(const struct overlay *o, struct slice key);
/* The first entry at or behind a key, and the one behind an entry; NULL: none. */
const struct overlay_entry *overlay_seek(const struct overlay *o, struct slice key);
const struct overlay_entry *overlay_next(const struct overlay_entry *e);
/* The last entry before a key; NULL: none. */
const struct overlay_entry *overlay_before(const struct overlay *o, struct slice key);
const struct overlay_entry *overlay_first(const struct overlay *o);

struct slice overlay_key(const struct overlay_entry *e);
struct slice overlay_value(const struct overlay_entry *e);
bool overlay_deleted(const struct overlay_entry *e);

/* Order of keys, as RocksDB's: bytes, then length. */
int key_compare(struct slice a, struct slice b);

#endif
