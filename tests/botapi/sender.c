/* See sender.h. A thread a connection: each takes the first update that may go out, sends it, and notes how that
 * went. The bot's lock guards everything but the connection itself. */
#include "sender.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "bot.h"
#include "link.h"

#define CONNECTIONS_DEFAULT 40
#define CONNECTIONS_MAX 100
#define GONE_AFTER_MS (23 * 3600000LL) /* of answers 410: the webhook is removed */

const struct sender_settings sender_defaults = {
    .timeout_ms = 60000, .retry_ms = 2000, .cap_ms = 60000, .idle_ms = 60000};

/* An update that is to be sent. */
struct item {
    int32_t id;
    char lane[48];
    unsigned failures;
    int64_t next_at; /* server_ms */
    bool in_flight;
};

struct sender {
    struct bot *bot;
    unsigned threads; /* the last one frees it */
    bool ended;
    struct link_target to;
    struct buf url, head; /* head: of a request, but for Content-Length */
    int max_connections;
    pthread_cond_t wake;
    struct item *items; /* by id */
    size_t n;
    int32_t seen; /* ids up to this one are in items, or were */
    unsigned in_flight, most_in_flight;
    int64_t sends, failures;
    int64_t gone_since;      /* queue_ms; 0: the last answer was no 410 */
    int64_t last_error_date; /* Unix seconds; 0: none */
    char last_error[128];
};

/* ---- lanes -------------------------------------------------------------------------------------- */

static long long id_at(yajl_val v, const char *a, const char *b)
{
    const char *path[] = {a, b, NULL};
    yajl_val id = yajl_tree_get(v, path, yajl_t_number);
    return YAJL_IS_INTEGER(id) ? YAJL_GET_INTEGER(id) : 0;
}

/* What an update is kept in order with (WebhookActor.cpp): its chat, its user, its poll, or nothing. */
static void find_lane(const struct queued *u, char lane[48])
{
    char *text = xstrndup(u->p, u->n);
    yajl_val root = yajl_tree_parse(text, NULL, 0);
    const char *kind = YAJL_IS_OBJECT(root) && root->u.object.len > 1 ? root->u.object.keys[1] : "";
    yajl_val v = *kind ? root->u.object.values[1] : NULL;

    snprintf(lane, 48, "update %d", (int)u->id);
    if (strstr(kind, "message") || strstr(kind, "channel_post") || strstr(kind, "member") ||
        strstr(kind, "boost") || strstr(kind, "join_request"))
        snprintf(lane, 48, "chat %lld", id_at(v, "chat", "id"));
    else if (strstr(kind, "query") || !strcmp(kind, "chosen_inline_result"))
        snprintf(lane, 48, "user %lld", id_at(v, "from", "id"));
    yajl_tree_free(root);
    free(text);
}

/* ---- what is to be sent ------------------------------------------------------------------------- */

static void drop_item(struct sender *s, size_t i)
{
    memmove(&s->items[i], &s->items[i + 1], (s->n - i - 1) * sizeof(*s->items));
    s->n--;
}

static const struct queued *find_queued(const struct queue *q, int32_t id)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->v[q->first + i].id == id)
            return &q->v[q->first + i];
    return NULL;
}

/* Takes over what is new in the queue, and forgets what is gone from it. */
static void follow_queue(struct sender *s)
{
    struct queue *q = &s->bot->queue;

    queue_apply_offset(q, 0, queue_ms());
    for (size_t i = s->n; i-- > 0;)
        if (!s->items[i].in_flight && !find_queued(q, s->items[i].id))
            drop_item(s, i);
    if (q->n == 0)
        s->seen = q->tail - 1; /* ids may have started anew */
    for (size_t i = 0; i < q->n; i++) {
        const struct queued *u = &q->v[q->first + i];
        if (u->id <= s->seen)
            continue;
        s->items = xrealloc(s->items, (s->n + 1) * sizeof(*s->items));
        s->items[s->n] = (struct item){.id = u->id};
        find_lane(u, s->items[s->n++].lane);
        s->seen = u->id;
    }
}

static bool behind_another(const struct sender *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(s->items[k].lane, s->items[i].lane))
            return true;
    return false;
}

/* The first that may go out now; NULL: none, and *next is when there may be one. */
static struct item *pick(struct sender *s, int64_t *next)
{
    int64_t now = server_ms();

    *next = now + 1000;
    follow_queue(s);
    for (size_t i = 0; i < s->n; i++) {
        struct item *it = &s->items[i];
        if (it->in_flight || behind_another(s, i))
            continue;
        if (it->next_at <= now)
            return it;
        if (it->next_at < *next)
            *next = it->next_at;
    }
    return NULL;
}

/* ---- how it went -------------------------------------------------------------------------------- */

static void remove_webhook(struct sender *s)
{
    struct bot *b = s->bot;

    if (b->sender != s)
        return;
    buf_clear(&b->webhook);
    b->sender = NULL;
    sender_end(s);
}

/* When a failed update goes out again: at once, then after 2, 4, 8 .. s. */
static int64_t wait_after(const struct sender *s, unsigned failures, int retry_after_s)
{
    const struct sender_settings *o = &s->bot->sending;
    int64_t cap = o->cap_ms + (int64_t)random_below((uint64_t)o->cap_ms + 1), wait = o->retry_ms;

    if (retry_after_s >= 0)
        return retry_after_s * INT64_C(1000);
    if (failures <= 1)
        return 0;
    for (unsigned i = 2; i < failures && wait < cap; i++)
        wait *= 2;
    return wait < cap ? wait : cap;
}

static void note(struct sender *s, const struct sent *sent)
{
    struct bot *b = s->bot;

    b->sent = xrealloc(b->sent, (b->n_sent + 1) * sizeof(*b->sent));
    b->sent[b->n_sent++] = *sent;
}

static void finish(struct sender *s, struct sent *sent, int retry_after_s)
{
    size_t i = 0;

    sent->ended_at = server_ms();
    s->in_flight--;
    note(s, sent);
    while (i < s->n && s->items[i].id != sent->id)
        i++;
    bool ok = !sent->error[0];
    if (ok)
        queue_remove(&s->bot->queue, sent->id);
    if (i < s->n) {
        struct item *it = &s->items[i];
        it->in_flight = false;
        if (ok) {
            drop_item(s, i);
        } else {
            it->failures++;
            it->next_at = server_ms() + wait_after(s, it->failures, retry_after_s);
        }
    }
    if (!ok) {
        s->failures++;
        s->last_error_date = clock_wall_ms() / 1000;
        snprintf(s->last_error, sizeof(s->last_error), "%s", sent->error);
    }
    if (sent->status != 410)
        s->gone_since = 0;
    else if (!s->gone_since)
        s->gone_since = queue_ms();
    else if (queue_ms() - s->gone_since >= GONE_AFTER_MS)
        remove_webhook(s);
    pthread_cond_broadcast(&s->wake);
}

/* ---- a thread ----------------------------------------------------------------------------------- */

static void release(struct sender *s)
{
    if (--s->threads > 0)
        return;
    link_target_free(&s->to);
    buf_free(&s->url);
    buf_free(&s->head);
    free(s->items);
    pthread_cond_destroy(&s->wake);
    free(s);
}

/* Sends one update; the lock is held, and let go meanwhile. */
static void send_one(struct sender *s, struct link *l, const struct item *it)
{
    const struct queued *u = find_queued(&s->bot->queue, it->id);
    const struct sender_settings o = s->bot->sending;
    struct sent sent = {.at = server_ms(), .id = it->id, .failures = it->failures};
    struct link_answer a = {.retry_after_s = -1};
    struct buf request = BUF_EMPTY;

    memcpy(sent.lane, it->lane, sizeof(sent.lane));
    bool lose = o.lose_every && ++s->sends % o.lose_every == 0;
    buf_add_slice(&request, buf_slice(&s->head));
    buf_printf(&request, "Content-Length: %zu\r\n\r\n", u->n);
    buf_add(&request, u->p, u->n);
    pthread_mutex_unlock(&s->bot->lock);
    link_exchange(l, &s->to, buf_slice(&request), lose ? o.lose_after_ms : o.timeout_ms, o.idle_ms, o.verify,
                  &a);
    if (lose)
        link_reset(l);
    buf_free(&request);
    pthread_mutex_lock(&s->bot->lock);
    sent.conn = l->number;
    sent.status = a.status;
    if (a.error)
        snprintf(sent.error, sizeof(sent.error), "%s", a.error);
    else if (lose)
        snprintf(sent.error, sizeof(sent.error), "Connection reset by peer");
    else if (a.status < 200 || a.status > 299)
        snprintf(sent.error, sizeof(sent.error), "Wrong response from the webhook: %d %s", a.status,
                 a.reason);
    finish(s, &sent, a.error ? -1 : a.retry_after_s);
}

static void *run(void *arg)
{
    struct sender *s = arg;
    struct bot *b = s->bot;
    struct link l = {.fd = -1};

    pthread_mutex_lock(&b->lock);
    while (!s->ended) {
        int64_t next;
        struct item *it = pick(s, &next);
        if (!it) {
            struct timespec t;
            clock_gettime(CLOCK_REALTIME, &t);
            int64_t ns = t.tv_nsec + (next - server_ms()) * 1000000;
            t.tv_sec += ns / 1000000000;
            t.tv_nsec = ns % 1000000000;
            pthread_cond_timedwait(&s->wake, &b->lock, &t);
            continue;
        }
        it->in_flight = true;
        if (++s->in_flight > s->most_in_flight)
            s->most_in_flight = s->in_flight;
        send_one(s, &l, it);
    }
    release(s);
    pthread_mutex_unlock(&b->lock);
    link_close(&l);
    return NULL;
}

/* ---- life --------------------------------------------------------------------------------------- */

static bool is_secret(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", s.p[i]) || !s.p[i])
            return false;
    return s.n <= 256;
}

static void make_head(struct sender *s, struct slice secret)
{
    buf_printf(&s->head, "POST %s HTTP/1.1\r\nHost: %s\r\n", s->to.path, s->to.host_header);
    if (s->to.authorization)
        buf_printf(&s->head, "Authorization: Basic %s\r\n", s->to.authorization);
    if (secret.n)
        buf_printf(&s->head, "X-Telegram-Bot-Api-Secret-Token: %.*s\r\n", (int)secret.n, secret.p);
    buf_add_str(&s->head, "Content-Type: application/json\r\nConnection: keep-alive\r\n"
                          "Accept-Encoding: gzip, deflate\r\n");
}

struct sender *sender_new(struct bot *b, const struct args *a, const char **wrong)
{
    struct slice url = args_text(a, "url"), secret = args_text(a, "secret_token");
    struct link_target to;
    pthread_attr_t detached;

    if (!is_secret(secret)) {
        *wrong = "Bad Request: secret token contains unallowed characters";
        return NULL;
    }
    if (link_target_parse(url, &to)) {
        *wrong = "Bad Request: bad webhook: An HTTPS URL must be provided for webhook";
        return NULL;
    }
    struct sender *s = xcalloc(1, sizeof(*s));
    s->bot = b;
    s->to = to;
    s->max_connections = (int)args_int(a, "max_connections", CONNECTIONS_DEFAULT, 1, CONNECTIONS_MAX);
    buf_add_slice(&s->url, url);
    make_head(s, secret);
    pthread_cond_init(&s->wake, NULL);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 512 << 10);
    s->threads = 1; /* until all are there */
    for (int i = 0; i < s->max_connections; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, run, s) == 0)
            s->threads++;
    }
    s->threads--;
    return s;
}

void sender_end(struct sender *s)
{
    if (!s)
        return;
    s->ended = true;
    pthread_cond_broadcast(&s->wake);
}

void sender_wake(struct sender *s)
{
    if (s)
        pthread_cond_broadcast(&s->wake);
}

void sender_add_info(const struct sender *s, struct buf *out)
{
    buf_printf(out, ",\"max_connections\":%d,\"ip_address\":\"127.0.0.1\"", s->max_connections);
    if (s->last_error_date) {
        buf_printf(out, ",\"last_error_date\":%lld,\"last_error_message\":", (long long)s->last_error_date);
        add_json_string(out, slice_str(s->last_error));
    }
}

void sender_add_state(const struct sender *s, struct buf *out)
{
    buf_printf(out, ",\"in_flight\":%u,\"most_in_flight\":%u,\"failures\":%lld", s ? s->in_flight : 0,
               s ? s->most_in_flight : 0, s ? (long long)s->failures : 0);
}
