/* Parameters of a request: of its query and of the JSON object in its body, by one set of names; and the
 * filters that are made of them. Pure but for memory: `now` is given. */
#ifndef SERVE_API_PARAMS_H
#define SERVE_API_PARAMS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "spool/spool.h"
#include "wire/json.h"

#define PARAMS_MAX 32

struct param_error {
    int status; /* 400: malformed or unknown; 422: well-formed, but a wrong value */
    char text[512];
};

struct param {
    struct slice name;
    struct slice text;       /* of a query, a JSON string, number or boolean ("true", "false") */
    const struct json *json; /* NULL for one of the query */
};

struct params {
    struct param list[PARAMS_MAX];
    size_t n;
    struct buf decoded; /* owned: what text and name of query parameters borrow from */
    struct json *root;  /* owned: the body's */
};

/* Reads query and body (empty: none). accepts is a NULL-terminated list of names. A JSON null counts as
 * absent. Returns 0, or -1 and e. params_free in both cases. */
int params_read(struct slice query, struct slice body, const char *const *accepts, struct params *out,
                struct param_error *e);
void params_free(struct params *p);
/* Checks that a JSON object has no other members than these. what names the object in the error: "an event".
 */
int params_check_object(const struct json *object, const char *const *accepts, const char *what,
                        struct param_error *e);

/* The members of an object that was checked, as parameters; they borrow from it. Nothing to free. */
void params_of_object(const struct json *object, struct params *out);

const struct param *params_get(const struct params *p, const char *name);
/* Each returns 0 (out untouched if the parameter is absent), or -1 and e. */
int params_i64(const struct params *p, const char *name, int64_t min, int64_t max, int64_t *out,
               struct param_error *e);
int params_ms(const struct params *p, const char *name, int64_t min_ms, int64_t max_ms, int64_t *out,
              struct param_error *e);
int params_bool(const struct params *p, const char *name, bool *out, struct param_error *e);
int param_fail(struct param_error *e, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A point in time: Unix seconds (with decimals), "2026-11-29", "2026-11-29T17:46:08Z" (or with .123), or an
 * age with a unit, such as "2h", that lies before now. Returns 0 and milliseconds, or -1. */
int param_time(struct slice text, int64_t now, int64_t *ms);

/* The names that filter_read understands, for the lists of accepted names. */
#define FILTER_NAMES "bot", "box", "state", "chat", "user", "kind", "since", "until", "error"
/* Makes a filter. any (may be NULL) tells whether a parameter narrowed it. bot in out borrows from p. */
struct filter_bot {
    char name[BOT_NAME_MAX + 1];
};
int filter_read(const struct params *p, int64_t now, struct spool_filter *out, struct filter_bot *bot,
                bool *any, struct param_error *e);

#endif
