/* Updates and getUpdates answers, found in one pass of yajl.
 *
 * The scanner keeps, for each of the few outer levels of an update, under which member name it stands; a
 * number or string is of interest only if the names from the update down to it spell one of the known paths.
 * What is deeper, or inside an array, is passed over, so that reply_to_message.chat is never taken for the
 * chat. */
#include "core/update.h"

#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/kinds.h"
#include "core/yajl_memory.h"

#define LEVELS 4 /* update, payload, payload.message, payload.message.chat */

enum name {
    NAME_OTHER,
    NAME_UPDATE_ID,
    NAME_PAYLOAD,
    NAME_CHAT,
    NAME_MESSAGE,
    NAME_FROM,
    NAME_USER,
    NAME_ID,
    NAME_POLL_ID,
    NAME_USER_CHAT_ID,
    NAME_THREAD_ID,
};

static const struct {
    const char *text;
    enum name name;
} payload_names[] = {
    {"chat", NAME_CHAT},
    {"message", NAME_MESSAGE},
    {"from", NAME_FROM},
    {"user", NAME_USER},
    {"id", NAME_ID},
    {"poll_id", NAME_POLL_ID},
    {"user_chat_id", NAME_USER_CHAT_ID},
    {"message_thread_id", NAME_THREAD_ID},
};

/* Everything that may tell chat, user and poll; which of them counts is known when the kind is. */
struct found {
    bool has[PATH_POLL_ID + 1];
    int64_t id[PATH_POLL_ID + 1];
    bool has_thread, has_message_thread;
    int64_t thread, message_thread;
};

/* Members of the answer around the updates. */
enum answer_name {
    ANSWER_OTHER,
    ANSWER_OK,
    ANSWER_RESULT,
    ANSWER_CODE,
    ANSWER_DESCRIPTION,
    ANSWER_PARAMETERS,
    ANSWER_RETRY_AFTER,
    ANSWER_MIGRATE
};

struct scan {
    yajl_handle yajl;
    struct slice bytes;
    unsigned depth;              /* containers open */
    unsigned base;               /* depth at which an update stands: 0 alone, 2 in an answer */
    enum name names[LEVELS + 1]; /* by depth within the update, from 1 */
    struct update update;
    struct found found;
    size_t start; /* of the update under way */
    /* of an answer only */
    struct update_answer *answer;
    size_t cap;
    enum answer_name at;
    enum answer_name parameter;
    bool in_result, has_ok, has_result;
    size_t last_end; /* end of the last element of the result, or of its '[' */
};

static size_t consumed(const struct scan *s)
{
    return yajl_get_bytes_consumed(s->yajl);
}

static void update_begin(struct scan *s)
{
    memset(&s->update, 0, sizeof(s->update));
    memset(&s->found, 0, sizeof(s->found));
}

static void take(const struct found *f, enum id_path path, bool *has, int64_t *id)
{
    if (path != PATH_NONE && !*has && f->has[path]) {
        *has = true;
        *id = f->id[path];
    }
}

/* Turns what was found into a place, by the kind's row or, for unknown kinds, by the usual names. */
static void update_place(struct update *u, const struct found *f)
{
    const struct kind *k = kind_find(slice_str(u->kind));
    struct update_place *p = &u->place;

    if (k) {
        take(f, k->chat, &p->has_chat, &p->chat);
        take(f, k->user, &p->has_user, &p->user);
        take(f, k->poll, &p->has_poll, &p->poll);
    } else {
        take(f, PATH_CHAT, &p->has_chat, &p->chat);
        take(f, PATH_MESSAGE_CHAT, &p->has_chat, &p->chat);
        take(f, PATH_FROM, &p->has_user, &p->user);
        take(f, PATH_USER, &p->has_user, &p->user);
    }
    bool of_message = k ? k->chat == PATH_MESSAGE_CHAT : !f->has[PATH_CHAT];
    p->has_thread = of_message ? f->has_message_thread : f->has_thread;
    p->thread = of_message ? f->message_thread : f->thread;
}

/* An element of the result, or the only update, ends here. */
static void update_end(struct scan *s)
{
    struct update_answer *a = s->answer;

    s->update.bytes = slice_make(s->bytes.p + s->start, consumed(s) - s->start);
    update_place(&s->update, &s->found);
    if (!a)
        return;
    if (a->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        a->updates = xrealloc(a->updates, s->cap * sizeof(*a->updates));
    }
    a->updates[a->n++] = s->update;
    s->last_end = consumed(s);
}

/* Poll ids are numbers in quotes; should one ever not be, its hash (FNV-1a) serves as well to keep its lane.
 */
static int64_t id_or_hash(struct slice text)
{
    int64_t id;
    uint64_t hash = UINT64_C(14695981039346656037);

    if (text_to_i64(text, INT64_MIN, INT64_MAX, &id) == 0)
        return id;
    for (size_t i = 0; i < text.n; i++)
        hash = (hash ^ (unsigned char)text.p[i]) * UINT64_C(1099511628211);
    return (int64_t)hash;
}

static void found_id(struct found *f, enum id_path path, int64_t id)
{
    f->has[path] = true;
    f->id[path] = id;
}

/* The path of ids whose names lead to a number or string at this depth within the update. */
static enum id_path path_here(const enum name *n, unsigned depth)
{
    if (depth == 2)
        return n[2] == NAME_ID             ? PATH_ID
               : n[2] == NAME_POLL_ID      ? PATH_POLL_ID
               : n[2] == NAME_USER_CHAT_ID ? PATH_USER_CHAT
                                           : PATH_NONE;
    if (depth == 3 && n[3] == NAME_ID)
        return n[2] == NAME_CHAT   ? PATH_CHAT
               : n[2] == NAME_FROM ? PATH_FROM
               : n[2] == NAME_USER ? PATH_USER
                                   : PATH_NONE;
    if (depth == 4 && n[2] == NAME_MESSAGE && n[3] == NAME_CHAT && n[4] == NAME_ID)
        return PATH_MESSAGE_CHAT;
    return PATH_NONE;
}

static void update_scalar(struct scan *s, struct slice text, bool number)
{
    unsigned depth = s->depth - s->base;
    const enum name *n = s->names;
    int64_t id;

    if (depth == 1 && n[1] == NAME_UPDATE_ID) {
        s->update.has_id = number && text_to_i64(text, 0, INT64_MAX, &s->update.id) == 0;
        return;
    }
    if (depth < 2 || depth > LEVELS || n[1] != NAME_PAYLOAD)
        return;
    enum id_path path = path_here(n, depth);
    if (path == PATH_ID || path == PATH_POLL_ID) {
        found_id(&s->found, path, id_or_hash(text));
        return;
    }
    if (!number || text_to_i64(text, INT64_MIN, INT64_MAX, &id) < 0)
        return;
    if (path != PATH_NONE) {
        found_id(&s->found, path, id);
    } else if (depth == 2 && n[2] == NAME_THREAD_ID) {
        s->found.has_thread = true;
        s->found.thread = id;
    } else if (depth == 3 && n[2] == NAME_MESSAGE && n[3] == NAME_THREAD_ID) {
        s->found.has_message_thread = true;
        s->found.message_thread = id;
    }
}

static void answer_scalar(struct scan *s, struct slice text, bool number, bool is_true)
{
    struct update_answer *a = s->answer;
    int64_t v = 0;
    bool is_int = number && text_to_i64(text, INT64_MIN, INT64_MAX, &v) == 0;

    if (s->depth == 1 && s->at == ANSWER_OK) {
        a->ok = is_true;
        s->has_ok = true;
    } else if (s->depth == 1 && s->at == ANSWER_CODE && is_int && v >= 0 && v < 1000) {
        a->error_code = (int)v;
    } else if (s->depth == 1 && s->at == ANSWER_DESCRIPTION && !number) {
        struct buf clean = BUF_EMPTY;
        text_add_clean(&clean, text, sizeof(a->description) - 1, false);
        memcpy(a->description, buf_str(&clean), clean.n);
        a->description[clean.n] = '\0';
        buf_free(&clean);
    } else if (s->depth == 2 && s->at == ANSWER_PARAMETERS && is_int) {
        if (s->parameter == ANSWER_RETRY_AFTER && v >= 0)
            a->retry_after = v;
        else if (s->parameter == ANSWER_MIGRATE)
            a->migrate_to_chat_id = v;
    }
}

/* Any value that is no container. One that stands where an update should is an update without id. */
static int on_scalar(struct scan *s, struct slice text, bool number, bool is_true)
{
    bool in_answer = s->answer && !s->in_result;

    if (in_answer) {
        answer_scalar(s, text, number, is_true);
    } else if (s->depth > s->base) {
        update_scalar(s, text, number);
    } else {
        update_begin(s);
        s->start = s->last_end;
        while (s->start < s->bytes.n && (yajl_is_blank(s->bytes.p[s->start]) || s->bytes.p[s->start] == ','))
            s->start++;
        update_end(s);
    }
    return 1;
}

static int on_null(void *ctx)
{
    return on_scalar(ctx, slice_make("", 0), false, false);
}

static int on_boolean(void *ctx, int v)
{
    return on_scalar(ctx, slice_make("", 0), false, v != 0);
}

static int on_number(void *ctx, const char *p, size_t n)
{
    return on_scalar(ctx, slice_make(p, n), true, false);
}

static int on_string(void *ctx, const unsigned char *p, size_t n)
{
    return on_scalar(ctx, slice_make(p, n), false, false);
}

static void open_container(struct scan *s)
{
    if ((!s->answer || s->in_result) && s->depth == s->base) {
        update_begin(s);
        s->start = consumed(s) - 1;
    }
    s->depth++;
    if (s->depth > s->base && s->depth - s->base <= LEVELS)
        s->names[s->depth - s->base] = NAME_OTHER; /* stays so in an array */
}

static void close_container(struct scan *s)
{
    s->depth--;
    if (s->answer && s->in_result && s->depth == 1)
        s->in_result = false;
    else if ((!s->answer || s->in_result) && s->depth == s->base)
        update_end(s);
}

static int on_start_map(void *ctx)
{
    open_container(ctx);
    return 1;
}

static int on_start_array(void *ctx)
{
    struct scan *s = ctx;

    if (s->answer && s->depth == 1 && s->at == ANSWER_RESULT) {
        s->in_result = s->has_result = true;
        s->last_end = consumed(s);
        s->depth++;
        return 1;
    }
    open_container(s);
    return 1;
}

static int on_end(void *ctx)
{
    close_container(ctx);
    return 1;
}

static enum answer_name answer_name(struct slice key)
{
    static const char *const names[] = {NULL,          "ok",         "result",      "error_code",
                                        "description", "parameters", "retry_after", "migrate_to_chat_id"};

    for (size_t i = 1; i < ARRAY_LEN(names); i++)
        if (slice_eq_str(key, names[i]))
            return (enum answer_name)i;
    return ANSWER_OTHER;
}

static enum name update_name(struct scan *s, struct slice key)
{
    if (slice_eq_str(key, "update_id"))
        return NAME_UPDATE_ID;
    if (s->update.kind[0])
        return NAME_OTHER; /* there is one payload */
    struct buf kind = BUF_EMPTY;
    text_add_clean(&kind, key, UPDATE_KIND_MAX - 1, false);
    memcpy(s->update.kind, buf_str(&kind), kind.n);
    buf_free(&kind);
    return NAME_PAYLOAD;
}

static int on_key(void *ctx, const unsigned char *p, size_t n)
{
    struct scan *s = ctx;
    struct slice key = slice_make(p, n);

    if (s->answer && !s->in_result) {
        if (s->depth == 1)
            s->at = answer_name(key);
        else if (s->depth == 2)
            s->parameter = answer_name(key);
        return 1;
    }
    unsigned depth = s->depth - s->base;
    if (depth == 0 || depth > LEVELS)
        return 1;
    s->names[depth] = NAME_OTHER;
    if (depth == 1)
        s->names[1] = update_name(s, key);
    else
        for (size_t i = 0; i < ARRAY_LEN(payload_names); i++)
            if (slice_eq_str(key, payload_names[i].text))
                s->names[depth] = payload_names[i].name;
    return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end,
};

/* Runs yajl over the bytes. Returns 0 if they are one JSON text. */
static int scan_run(struct scan *s)
{
    s->yajl = yajl_alloc(&callbacks, &yajl_memory, s);
    yajl_config(s->yajl, yajl_dont_validate_strings, 1);
    yajl_status st = yajl_parse(s->yajl, (const unsigned char *)s->bytes.p, s->bytes.n);
    if (st == yajl_status_ok)
        st = yajl_complete_parse(s->yajl);
    yajl_free(s->yajl);
    return st == yajl_status_ok ? 0 : -1;
}

int update_parse(struct slice bytes, struct update *out)
{
    struct scan s = {.bytes = bytes};
    size_t first = 0;

    while (first < bytes.n && yajl_is_blank(bytes.p[first]))
        first++;
    if (first == bytes.n || bytes.p[first] != '{' || scan_run(&s) < 0)
        return -1;
    *out = s.update; /* its bytes from brace to brace: blanks around them shall not make it another update */
    return 0;
}

int update_answer_parse(struct slice bytes, struct update_answer *out)
{
    struct scan s = {.bytes = bytes, .base = 2, .answer = out};

    *out = (struct update_answer){.retry_after = -1};
    if (scan_run(&s) == 0 && s.has_ok && (!out->ok || s.has_result))
        return 0;
    update_answer_free(out);
    return -1;
}

void update_answer_free(struct update_answer *a)
{
    free(a->updates);
    a->updates = NULL;
    a->n = 0;
}

int update_guess_id(struct slice bytes, int64_t *id)
{
    static const char member[] = "\"update_id\"";
    const char *end = bytes.p + bytes.n;
    const char *p = bytes.n ? memmem(bytes.p, bytes.n, member, sizeof(member) - 1) : NULL;

    if (!p)
        return -1;
    p += sizeof(member) - 1;
    while (p < end && strchr(" \t\r\n:", *p))
        p++;
    size_t n = 0;
    while (p + n < end && p[n] >= '0' && p[n] <= '9')
        n++;
    return text_to_i64(slice_make(p, n), 0, INT64_MAX, id);
}
