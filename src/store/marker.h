/* The text of the marker, which tells the schema. Pure; store/dir.c reads and writes the file. */
#ifndef STORE_MARKER_H
#define STORE_MARKER_H

#include <stdbool.h>

#include "base/bytes.h"

#define MARKER_MAX 64

/* The schema, from 1 on; false if it is no marker. */
bool marker_read(struct slice text, int *schema);
/* Returns out. */
const char *marker_text(int schema, char out[MARKER_MAX]);

#endif
