/* The text of a config file as a tree of nodes that know where they stand. A strict subset of YAML: one
 * document of mappings, lists and scalars, without anchors, aliases, tags and directives, and with no name
 * twice in a mapping. All scalars are text; what they mean is for core/option_value to say. */
#ifndef CORE_OPTION_YAML_H
#define CORE_OPTION_YAML_H

#include "base/err.h"
#include "core/config.h"

#define NODE_DEPTH_MAX 6      /* the deepest that any option needs is 4 */
#define NODE_ENTRIES_MAX 1000 /* of one mapping or list */

enum node_type { NODE_TEXT, NODE_LIST, NODE_MAP };

struct node {
    enum node_type type;
    struct config_mark at;
    struct node *key;   /* owned; of a mapping's entry: its name, always NODE_TEXT */
    char *text;         /* owned; of NODE_TEXT, may hold zeros */
    size_t len;         /* of the text */
    bool plain;         /* the text stands without quotes */
    bool verbatim;      /* ... and on one line, so that a byte's column can be told */
    struct node *child; /* owned; entries of a list or mapping */
    size_t n_children;
};

/* Parses the text. Returns the root to be released, or NULL and an error with place. An empty document is an
 * empty text node. */
struct node *node_read(const char *path, struct slice text, struct err *e);
void node_free(struct node *root);

/* Whether nothing was written as value (`name:`). */
bool node_is_empty(const struct node *n);
const char *node_type_name(enum node_type t);

/* Sets "PATH:LINE:COLUMN: ..." with EX_CONFIG (without the place if its line is 0); whatever looks like a
 * token is taken out. Returns -1. */
int node_error(struct err *e, const char *path, struct config_mark at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Appends text as a scalar for a YAML file or flow list: plain where that is safe, else in double quotes. */
void node_add_scalar(struct buf *out, const char *text);

#endif
