/* Bot API calls: method and chat, found in JSON, urlencoded or multipart bodies. */
#include "wire/call.h"

#include <stdio.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "wire/json.h"
#include "wire/multipart.h"
#include "wire/url.h"

#define TYPE_JSON "application/json"
#define TYPE_FORM "application/x-www-form-urlencoded"
#define TYPE_MULTIPART "multipart/form-data"

static const char refused_unreadable[] = "the answer's body cannot be read as a call";
static const char refused_large[] = "the call is larger than 8 MiB";
static const char refused_forbidden[] = "this method is not taken from an answer";
static const char refused_name[] = "this is no name of a method";

bool call_is_forbidden(struct slice method)
{
    static const char *const names[] = {"setWebhook", "deleteWebhook", "close", "logOut"};

    if (method.n >= 3 && strncasecmp(method.p, "get", 3) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_eq_nocase(method, names[i]))
            return true;
    return false;
}

/* Letters only, as every method's name; an answer's method ends up in a path. */
bool call_is_method(struct slice s)
{
    if (s.n == 0 || s.n > CALL_METHOD_MAX)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z')))
            return false;
    return true;
}

static void set_method(struct call *c, struct slice method)
{
    if (!call_is_method(method)) {
        c->refused = refused_name;
        return;
    }
    memcpy(c->method, method.p, method.n);
    c->method[method.n] = '\0';
}

/* FNV-1a over the lower-case name; two of different seeds make the 128 bits of a lane's name. */
static int64_t name_hash(struct slice s, uint64_t seed)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i];
        seed = (seed ^ (unsigned char)c) * UINT64_C(1099511628211);
    }
    return (int64_t)seed;
}

/* chat_id is a number, also in quotes, or "@channel". */
static void set_chat(struct call *c, struct slice chat)
{
    if (chat.n == 0)
        return;
    if (text_to_i64(chat, INT64_MIN, INT64_MAX, &c->chat) == 0) {
        c->has_chat = true;
        c->lane = (struct lane){LANE_CHAT, c->chat, 0};
    } else {
        c->lane = (struct lane){LANE_NAME, name_hash(chat, UINT64_C(14695981039346656037)),
                                name_hash(chat, UINT64_C(1099511628211))};
    }
}

static struct slice text_or_number(const struct json *v)
{
    return json_type(v) == JSON_NUMBER ? json_number(v) : json_string(v);
}

/* One name and value of a form. */
static void take_field(struct call *c, struct slice name, struct slice value, bool *has_method)
{
    if (slice_eq_str(name, "method") && !*has_method) {
        *has_method = true;
        set_method(c, value);
    } else if (slice_eq_str(name, "chat_id") && c->lane.type == LANE_EVENT) {
        set_chat(c, value);
    }
}

/* Each reads one kind of body. Returns 1 if it names a method, 0 if not, -1 if it cannot be read. */
static int read_json(struct slice body, struct call *c)
{
    struct json *root = json_parse(body, NULL);
    int rc = root ? call_in_json(root, c) : -1;

    if (root && !rc && json_type(root) == JSON_OBJECT)
        set_chat(c, text_or_number(json_get(root, "chat_id")));
    json_free(root);
    return rc;
}

static int read_form(struct slice body, struct call *c)
{
    struct buf name = BUF_EMPTY, value = BUF_EMPTY;
    bool has_method = false;
    int rc;

    while ((rc = query_next(&body, &name, &value)) > 0)
        take_field(c, buf_slice(&name), buf_slice(&value), &has_method);
    buf_free(&name);
    buf_free(&value);
    return rc < 0 ? -1 : has_method;
}

static int read_multipart(struct slice content_type, struct slice body, struct call *c)
{
    struct multipart m;
    struct multipart_part part;
    bool has_method = false;
    int rc = multipart_start(&m, content_type, body);

    while (rc == 0 && (rc = multipart_next(&m, &part)) > 0) {
        if (!part.is_file)
            take_field(c, part.name, part.content, &has_method);
        rc = 0;
    }
    return rc < 0 ? -1 : has_method;
}

static int read_body(struct slice content_type, struct slice body, struct call *c)
{
    if (content_type_is(content_type, TYPE_JSON))
        return read_json(body, c);
    if (content_type_is(content_type, TYPE_FORM))
        return read_form(body, c);
    return read_multipart(content_type, body, c);
}

bool call_is_type(struct slice content_type)
{
    return content_type_is(content_type, TYPE_JSON) || content_type_is(content_type, TYPE_FORM) ||
           content_type_is(content_type, TYPE_MULTIPART);
}

int call_in_json(const struct json *object, struct call *out)
{
    const struct json *method = json_get(object, "method");

    *out = (struct call){.lane = {LANE_EVENT, 0, 0}};
    if (json_type(object) != JSON_OBJECT || !method)
        return 0;
    if (json_type(method) == JSON_STRING)
        set_method(out, json_string(method));
    else
        out->refused = refused_name;
    if (!out->refused && call_is_forbidden(json_string(method)))
        out->refused = refused_forbidden;
    set_chat(out, text_or_number(json_get(object, "chat_id")));
    return 1;
}

int call_in_body(struct slice content_type, struct slice body, struct call *out)
{
    *out = (struct call){.lane = {LANE_EVENT, 0, 0}};
    if (body.n == 0 || !call_is_type(content_type))
        return 0;
    if (body.n > CALL_MAX_BYTES) {
        out->refused = refused_large;
        return 1;
    }
    int rc = read_body(content_type, body, out);
    if (rc == -1) {
        *out = (struct call){.lane = {LANE_EVENT, 0, 0}, .refused = refused_unreadable};
        return 1;
    }
    if (rc == 1 && !out->refused && call_is_forbidden(slice_str(out->method)))
        out->refused = refused_forbidden;
    return rc == 1;
}

void call_of_method(struct slice method, struct slice content_type, struct slice body, struct call *out)
{
    *out = (struct call){.lane = {LANE_EVENT, 0, 0}};
    if (body.n > 0 && body.n <= CALL_MAX_BYTES && call_is_type(content_type))
        read_body(content_type, body, out); /* the chat; what cannot be read is Telegram's to refuse */
    out->refused = NULL;
    set_method(out, method);
    if (body.n > CALL_MAX_BYTES)
        out->refused = refused_large;
}
