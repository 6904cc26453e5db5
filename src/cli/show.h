/* How answers of the api are shown: times, ages, numbers out of their JSON. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <stdint.h>

#include "cli/command.h"
#include "cli/request.h"
#include "wire/json.h"

/* A time of the api (Unix seconds with decimals) in milliseconds; 0 for null or absent. */
int64_t show_ms(const struct json *object, const char *key);
/* A whole number; 0 for null or absent. */
int64_t show_number(const struct json *object, const char *key);
/* A text, NULL-free and to be freed; "" for null or absent. */
char *show_text(const struct json *object, const char *key);
/* "5m" since then, "" for 0. Returns out. */
char *show_age(int64_t ms, int64_t now, char out[32]);

/* Warns of a breaker that is open, with what to do about it. object: has the member "breaker". */
void show_breaker(const struct json *object, const char *bot, int64_t now);

/* The answer of the api as it stands, with a newline: for --json. */
int show_json(const struct answer *a);

/* Ends a command whose request failed: tells e, with what to do next. Closes q. */
int show_failure(struct request *q, const struct err *e);

#endif
