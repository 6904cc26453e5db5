/* The control interface of the test server, on its own port under /control/. A request is a POST with a JSON
 * object; "bot" in it is the bot's id (default: the first). An answer is a JSON object; a mistake is 400 with
 * {"error":TEXT}.
 *
 * generate {"count","chats","kinds","size","text"}
 *     Makes updates with serial numbers that go on from call to call; the text of each holds "n=SERIAL".
 * kinds: a list of kinds that are taken in turn, or "varied" (the default is messages only). chats: over how
 * many chats they go round (1). size: padded to about so many bytes. text: put into each.
 *     -> {"first_id","last_id","first_serial","made"}; made counts those that the rules let in.
 * inject {"updates":[ITEM...]}
 *     ITEM: {"kind","members"}: an update made of members, e.g. "\"message\":{...}"; the server adds
 * update_id. Or {"raw"} or {"raw_base64"}: an entry served as it is, broken or not, "@ID@" in it becoming its
 * id.
 *     -> {"ids":[...]}, -1 for what the rules dropped.
 * next_id {"id"}
 *     The id that the next update gets (Telegram's new start after a quiet week). Only while the queue is
 * empty. fault {"type","method","count","status","body","content_type","retry_after","at","ms"} For the next
 * count (1) requests of the method (getUpdates; "" for any), first come first served: before the bot sees the
 * request, so that nothing is confirmed by it: status        status (502), with body, content_type,
 * retry_after; without a body: the API's error, for 429 with parameters.retry_after and the header, for 5xx
 * an HTML page empty         an empty result at once reset_before  a reset before any byte of the answer;
 * close_before: an end of file there hang          no answer, and no end of the connection for ms (1 h) after
 * it, the offset having been obeyed: delay         ms lost          a reset in place of the answer cut only
 * the first at bytes of the body, then an end of file; reset_after: then a reset; half_open: then silence for
 * ms (1 h) drip          a byte every ms (10) bad_json      body (some broken JSON), complete by its length
 *       broken_update the at-th update of the answer broken, the answer complete by its length
 * clear_faults {}
 * end_poll {"how"}
 *     Ends the connection of the poll that waits: "eof" or "reset". -> {"ended":BOOL}
 * advance {"ms"}
 *     Puts the clock of the queues forward, so that unfetched updates die of age.
 * state {}
 *     -> {"head","tail","queued","made","confirmed","expired","overflowed","not_allowed","deleted","waiting",
 *     "faults","conflicts","asked","webhook","now","in_flight","most_in_flight","failures"} (the last three of
 *     the webhook sender)
 * webhook {"timeout_ms","retry_ms","cap_ms","idle_ms","lose_every","lose_after_ms","verify"}
 *     Bends the webhook sender (sender.h), from the next update on; what is not given stays.
 * sent {"after"}
 *     -> {"sent":[...]}: what the webhook sender sent, from number after (0) on: {"at","ended_at","id","lane",
 *     "conn","failures" (of that update before),"status" (0: no answer),"error" (null: it was taken)}
 * log {"after"}
 *     -> {"log":[...]}: what was asked, from number after (0) on: {"at","ended_at" (-1: still waits),"conn",
 *     "method","args","offset" (null: absent),"limit","timeout","allowed_updates" (null: absent),"status"
 *     (0: no answer sent),"n","first","last","fault"}; times in milliseconds since the server's start.
 */
#include "control.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "args.h"
#include "base/clock.h"
#include "base/mem.h"
#include "bot.h"
#include "make_update.h"

/* A command: the bot's lock is held. Fills out, or returns a sentence about what was wrong. */
typedef const char *command_fn(struct bot *b, const struct args *a, struct buf *out);

/* Fills kinds with what is to be taken in turn. Returns how many; 0: varied; -1: a name is unknown. */
static int parse_kinds(const struct args *a, int kinds[64])
{
    struct slice text = args_text(a, "kinds");
    int n = 0;

    kinds[0] = update_kind_find(slice_str("message"));
    if (!text.n)
        return 1;
    if (slice_eq_str(text, "varied"))
        return 0;
    yajl_val list = yajl_tree_parse(text.p, NULL, 0);
    for (size_t i = 0; YAJL_IS_ARRAY(list) && i < list->u.array.len && n < 64; i++) {
        const char *name = YAJL_GET_STRING(list->u.array.values[i]);
        int kind = name ? update_kind_find(slice_str(name)) : -1;
        if (kind < 0) {
            n = 0;
            break;
        }
        kinds[n++] = kind;
    }
    yajl_tree_free(list);
    return n ? n : -1;
}

/* Makes one update and queues it. */
static int32_t generate_one(struct bot *b, int kind, unsigned chats, size_t size, const char *text)
{
    struct buf members = BUF_EMPTY;
    struct make_spec spec = {b->serial, kind, chats, size, clock_wall_ms() / 1000, text};

    if (kind < 0)
        spec.kind = make_varied_kind(b->serial);
    b->serial++;
    make_update(&members, &spec);
    int32_t id = queue_add(&b->queue, spec.kind, buf_slice(&members), queue_ms());
    buf_free(&members);
    return id;
}

static const char *generate(struct bot *b, const struct args *a, struct buf *out)
{
    int kinds[64], n = parse_kinds(a, kinds);
    int64_t count = args_int(a, "count", 1, 0, 10000000);
    unsigned chats = (unsigned)args_int(a, "chats", 1, 1, 1000000), first_serial = b->serial;
    size_t size = (size_t)args_int(a, "size", 0, 0, UPDATE_MAX_BYTES);
    const struct arg *text = args_find(a, "text");
    int32_t first = -1, last = -1;
    int64_t made = 0;

    if (n < 0)
        return "kinds must be a list of kinds, or \"varied\"";
    for (int64_t i = 0; i < count; i++) {
        int32_t id = generate_one(b, n ? kinds[i % n] : -1, chats, size, text ? buf_str(&text->value) : NULL);
        if (id < 0)
            continue;
        first = made++ ? first : id;
        last = id;
    }
    bot_wake(b, POLL_WAITS);
    buf_printf(out, "{\"first_id\":%d,\"last_id\":%d,\"first_serial\":%u,\"made\":%lld}", (int)first,
               (int)last, first_serial, (long long)made);
    return NULL;
}

static const char *member(yajl_val object, const char *name)
{
    const char *path[] = {name, NULL};
    return YAJL_GET_STRING(yajl_tree_get(object, path, yajl_t_string));
}

/* Queues one ITEM. Returns its id, -1 if it was dropped, -2 if it is none. */
static int32_t inject_item(struct bot *b, yajl_val item)
{
    const char *kind = member(item, "kind"), *members = member(item, "members"), *raw = member(item, "raw"),
               *base64 = member(item, "raw_base64");
    struct buf bytes = BUF_EMPTY;
    int32_t id = -2;

    if (members && strlen(members) <= UPDATE_MAX_BYTES)
        id = queue_add(&b->queue, kind ? update_kind_find(slice_str(kind)) : -1, slice_str(members),
                       queue_ms());
    else if (raw)
        id = queue_add_raw(&b->queue, slice_str(raw), queue_ms());
    else if (base64 && decode_base64(slice_str(base64), &bytes) == 0)
        id = queue_add_raw(&b->queue, buf_slice(&bytes), queue_ms());
    buf_free(&bytes);
    return id;
}

static const char *inject(struct bot *b, const struct args *a, struct buf *out)
{
    const struct arg *updates = args_find(a, "updates");
    yajl_val list = updates ? yajl_tree_parse(buf_str(&updates->value), NULL, 0) : NULL;
    const char *wrong = YAJL_IS_ARRAY(list) ? NULL : "updates must be a list";

    buf_add_str(out, "{\"ids\":[");
    for (size_t i = 0; !wrong && i < list->u.array.len; i++) {
        int32_t id = inject_item(b, list->u.array.values[i]);
        if (id == -2)
            wrong = "an update needs members, raw or raw_base64, and at most 512 KiB";
        buf_printf(out, "%s%d", i ? "," : "", (int)id);
    }
    buf_add_str(out, "]}");
    yajl_tree_free(list);
    bot_wake(b, POLL_WAITS);
    return wrong;
}

static const char *next_id(struct bot *b, const struct args *a, struct buf *out)
{
    int64_t id = args_int(a, "id", 0, 0, UPDATE_ID_END);
    if (id <= 0 || id >= UPDATE_ID_END)
        return "id must be 1..1999999999";
    if (b->queue.n)
        return "the queue is not empty";
    b->queue.tail = (int32_t)id;
    buf_add_str(out, "{}");
    return NULL;
}

static char *copy_text(const struct args *a, const char *name)
{
    const struct arg *arg = args_find(a, name);
    return arg ? xstrdup(buf_str(&arg->value)) : NULL;
}

static const char *fault(struct bot *b, const struct args *a, struct buf *out)
{
    const struct arg *method = args_find(a, "method");
    enum fault_type type = fault_type_find(args_text(a, "type"));

    if (type == FAULT_NONE)
        return "no such type of fault";
    struct fault *f = xcalloc(1, sizeof(*f));
    f->type = type;
    f->left = (int)args_int(a, "count", 1, 1, 1000000000);
    f->status = (int)args_int(a, "status", type == FAULT_STATUS ? 502 : 0, 0, 999);
    f->retry_after = (int)args_int(a, "retry_after", 0, 0, 1000000);
    f->at = args_int(a, "at", 0, 0, INT32_MAX);
    f->ms = args_int(a, "ms", 0, 0, INT32_MAX);
    f->content_type = copy_text(a, "content_type");
    f->body = copy_text(a, "body");
    snprintf(f->method, sizeof(f->method), "%s", method ? buf_str(&method->value) : "getupdates");
    for (char *p = f->method; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
    list_add_tail(&b->faults, &f->link);
    buf_add_str(out, "{}");
    return NULL;
}

static const char *clear_faults(struct bot *b, const struct args *a, struct buf *out)
{
    (void)a;
    list_each(&b->faults, it)
        fault_free(list_item(it, struct fault, link));
    buf_add_str(out, "{}");
    return NULL;
}

static const char *end_poll(struct bot *b, const struct args *a, struct buf *out)
{
    buf_printf(out, "{\"ended\":%s}", b->waiter ? "true" : "false");
    bot_wake(b, slice_eq_str(args_text(a, "how"), "eof") ? POLL_EOF : POLL_RESET);
    return NULL;
}

static const char *advance(struct bot *b, const struct args *a, struct buf *out)
{
    (void)b;
    queue_advance(args_int(a, "ms", 0, 0, INT64_C(1) << 40));
    buf_add_str(out, "{}");
    return NULL;
}

static const char *state(struct bot *b, const struct args *a, struct buf *out)
{
    const struct queue *q = &b->queue;
    int faults = 0;

    (void)a;
    queue_apply_offset(&b->queue, 0, queue_ms());
    list_each(&b->faults, it)
        faults += list_item(it, struct fault, link)->left;
    buf_printf(out, "{\"head\":%d,\"tail\":%d,\"queued\":%zu", (int)queue_head(q), (int)q->tail, q->n);
    const struct {
        const char *name;
        uint64_t n;
    } counts[] = {{"made", q->made},
                  {"confirmed", q->confirmed},
                  {"expired", q->expired},
                  {"deleted", q->deleted},
                  {"overflowed", q->overflowed},
                  {"not_allowed", q->not_allowed},
                  {"asked", b->n_asked},
                  {"conflicts", b->conflicts},
                  {"faults", (uint64_t)faults},
                  {"now", (uint64_t)server_ms()}};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        buf_printf(out, ",\"%s\":%llu", counts[i].name, (unsigned long long)counts[i].n);
    buf_printf(out, ",\"waiting\":%s,\"webhook\":", b->waiter ? "true" : "false");
    add_json_string(out, buf_slice(&b->webhook));
    sender_add_state(b->sender, out);
    buf_add_char(out, '}');
    return NULL;
}

/* `"name":"text"`, or null. */
static void add_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, ",\"%s\":", name);
    if (text)
        add_json_string(out, slice_str(text));
    else
        buf_add_str(out, "null");
}

static void add_asked(struct buf *out, const struct asked *q)
{
    char offset[24] = "null";
    if (q->has_offset)
        snprintf(offset, sizeof(offset), "%lld", (long long)q->offset);
    buf_printf(out,
               "{\"at\":%lld,\"ended_at\":%lld,\"conn\":%u,\"offset\":%s,\"limit\":%lld,\"timeout\":%lld,"
               "\"status\":%d,\"n\":%d,\"first\":%d,\"last\":%d,\"args\":%s",
               (long long)q->at, (long long)q->ended_at, q->conn, offset, (long long)q->limit,
               (long long)q->timeout, q->status, q->n, (int)q->first, (int)q->last, q->args);
    add_text(out, "method", q->method);
    add_text(out, "allowed_updates", q->allowed_updates);
    add_text(out, "fault", q->fault);
    buf_add_char(out, '}');
}

static const char *show_log(struct bot *b, const struct args *a, struct buf *out)
{
    size_t from = (size_t)args_int(a, "after", 0, 0, INT32_MAX);
    buf_add_str(out, "{\"log\":[");
    for (size_t i = from; i < b->n_asked; i++) {
        buf_add_str(out, i > from ? ",\n" : "");
        add_asked(out, b->asked[i]);
    }
    buf_add_str(out, "]}");
    return NULL;
}

static const char *bend_sender(struct bot *b, const struct args *a, struct buf *out)
{
    struct sender_settings *o = &b->sending;
    const struct {
        const char *name;
        int64_t *value;
    } numbers[] = {{"timeout_ms", &o->timeout_ms}, {"retry_ms", &o->retry_ms},
                   {"cap_ms", &o->cap_ms},         {"idle_ms", &o->idle_ms},
                   {"lose_every", &o->lose_every}, {"lose_after_ms", &o->lose_after_ms}};

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        *numbers[i].value = args_int(a, numbers[i].name, *numbers[i].value, 0, INT32_MAX);
    if (args_find(a, "verify"))
        o->verify = args_true(a, "verify");
    sender_wake(b->sender);
    buf_add_str(out, "{}");
    return NULL;
}

static const char *show_sent(struct bot *b, const struct args *a, struct buf *out)
{
    size_t from = (size_t)args_int(a, "after", 0, 0, INT32_MAX);

    buf_add_str(out, "{\"sent\":[");
    for (size_t i = from; i < b->n_sent; i++) {
        const struct sent *s = &b->sent[i];
        buf_printf(out, "%s{\"at\":%lld,\"ended_at\":%lld,\"id\":%d,\"conn\":%u,\"failures\":%u,\"status\":%d",
                   i > from ? ",\n" : "", (long long)s->at, (long long)s->ended_at, (int)s->id, s->conn,
                   s->failures, s->status);
        add_text(out, "lane", s->lane);
        add_text(out, "error", s->error[0] ? s->error : NULL);
        buf_add_char(out, '}');
    }
    buf_add_str(out, "]}");
    return NULL;
}

static const struct {
    const char *name;
    command_fn *fn;
} commands[] = {{"generate", generate},
                {"inject", inject},
                {"next_id", next_id},
                {"fault", fault},
                {"clear_faults", clear_faults},
                {"end_poll", end_poll},
                {"advance", advance},
                {"state", state},
                {"log", show_log},
                {"webhook", bend_sender},
                {"sent", show_sent}};

int control_serve(struct conn *c, struct slice path)
{
    struct args a = {NULL, 0};
    struct reply r = {.status = 200};
    const char *wrong = "no such command";

    args_add_body(&a, "application/json", buf_slice(&c->body));
    struct bot *b = bot_by_id(args_int(&a, "bot", 0, 0, INT64_MAX));
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (!slice_eq_str(path, commands[i].name))
            continue;
        wrong = "no such bot";
        if (!b)
            break;
        pthread_mutex_lock(&b->lock);
        wrong = commands[i].fn(b, &a, &r.body);
        pthread_mutex_unlock(&b->lock);
    }
    if (wrong) {
        r.status = 400;
        buf_clear(&r.body);
        buf_add_str(&r.body, "{\"error\":");
        add_json_string(&r.body, slice_str(wrong));
        buf_add_char(&r.body, '}');
    }
    int rc = conn_reply(c, &r);
    buf_free(&r.body);
    args_free(&a);
    return rc;
}

void control_generate_varied(unsigned count, unsigned chats)
{
    struct bot *b = bot_by_id(0);
    pthread_mutex_lock(&b->lock);
    for (unsigned i = 0; i < count; i++)
        generate_one(b, -1, chats, 0, NULL);
    bot_wake(b, POLL_WAITS);
    pthread_mutex_unlock(&b->lock);
}
