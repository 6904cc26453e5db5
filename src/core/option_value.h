/* Values of options: text of the file to a field of the config, and back. */
#ifndef CORE_OPTION_VALUE_H
#define CORE_OPTION_VALUE_H

#include "core/option_yaml.h"
#include "core/options.h"

struct option_reader {
    const char *path;
    struct err *e;
    struct config *config; /* takes the warnings */
};

/* Reads a node into the field of a row; base is the config or bot_config. Replaces (frees) what the field
 * holds. Returns 0, or -1 and the error with place. */
int option_set(const struct option_reader *r, const struct option *o, const struct node *n, void *base);
/* Releases what the field owns. */
void option_clear(const struct option *o, void *base);

/* Adds a sentence to the config's warnings, with place. */
void option_warn(const struct option_reader *r, struct config_mark at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The host of a URL that OPTION_URL took, without brackets, and its port, also if it is not spelled out; 0: the
 * URL has a port that is none. */
struct slice option_url_host(const char *url, int64_t *port);
/* localhost or an address of it; no name is looked up. */
bool option_host_is_loopback(struct slice host);

/* What the listeners and the options of bots that go with them need of each other. Returns 0, or -1 and the
 * error with place. */
int option_check_listeners(const struct option_reader *r);

/* That the section alerts names a bot that is there, and destinations for what it sets. The same. */
int option_check_alerts(const struct option_reader *r);

/* The name out of a list that looks most like a misspelt one; NULL if none comes near. */
const char *option_closest(const char *name, const char *best, const char *candidate);

#endif
