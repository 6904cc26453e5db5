/* Bot API calls in the hands of a bot: what an answer to a webhook, a worker's answer or a program says shall be sent.
 * Only method and chat are looked for; the body is kept as it came. */
#ifndef WIRE_CALL_H
#define WIRE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/lane.h"

struct json;

#define CALL_MAX_BYTES (8u << 20)
#define CALL_METHOD_MAX 64

struct call {
    char method[CALL_METHOD_MAX + 1];
    struct lane lane; /* of its chat; LANE_EVENT: it belongs to none */
    bool has_chat;    /* chat is a number */
    int64_t chat;
    const char *refused; /* why it must not be sent; NULL: it may. A constant */
};

/* Looks into a body that names its method itself, as Telegram does with the answer to a webhook: JSON, urlencoded or
 * multipart, by its content type. Returns 1 if there is a call (which may be refused: a forbidden method, too large, or
 * a body of such a type that cannot be read), 0 if there is none: an empty body, another content type, or one that
 * names no method. */
int call_in_body(struct slice content_type, struct slice body, struct call *out);

/* Whether a content type is one of the three that may hold a call. */
bool call_is_type(struct slice content_type);

/* A call whose method is known (`POST /v1/bots/BOT/calls`): the chat is looked for in the body. */
void call_of_method(struct slice method, struct slice content_type, struct slice body, struct call *out);

/* The same of a JSON object with a member `method`. Returns 1 or 0. */
int call_in_json(const struct json *object, struct call *out);

/* Whether this can be a method: 1 to CALL_METHOD_MAX letters. */
bool call_is_method(struct slice method);
/* Whether a method may be sent on behalf of an answer: not get*, setWebhook, deleteWebhook, close, logOut. */
bool call_is_forbidden(struct slice method);

#endif
