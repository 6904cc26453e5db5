/* Made-up updates of many kinds. */
#ifndef BOTAPI_MAKE_UPDATE_H
#define BOTAPI_MAKE_UPDATE_H

#include <stdint.h>

#include "base/buf.h"

struct make_spec {
    unsigned n;       /* the serial number: stands in the text as "n=N" */
    int kind;         /* a row of update_kinds */
    unsigned chats;   /* N goes round over so many chats; every third is a group */
    size_t size;      /* the members are padded to about so many bytes */
    int64_t date;     /* Unix seconds */
    const char *text; /* put into the text; NULL: none */
};

/* Appends the members of an update but for update_id: `"message":{...}`. */
void make_update(struct buf *out, const struct make_spec *spec);
/* The kind that the n-th of a varied lot has: mostly messages. */
int make_varied_kind(unsigned n);

#endif
