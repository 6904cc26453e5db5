/* See queue.h. The rules are those of the official Bot API server: an offset confirms when the request
 * arrives; one that is far off serves from the head and confirms nothing; updates die with their kind's time.
 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define DAY_S (24 * 3600)

const struct update_kind update_kinds[] = {
    {"message", true, DAY_S},
    {"edited_message", true, DAY_S},
    {"channel_post", true, DAY_S},
    {"edited_channel_post", true, DAY_S},
    {"inline_query", true, 30},
    {"chosen_inline_result", true, 600},
    {"callback_query", true, 150},
    {"shipping_query", true, 150},
    {"pre_checkout_query", true, 150},
    {"poll", true, DAY_S},
    {"poll_answer", true, DAY_S},
    {"my_chat_member", true, DAY_S},
    {"chat_member", false, DAY_S},
    {"chat_join_request", true, DAY_S},
    {"chat_boost", true, DAY_S},
    {"removed_chat_boost", true, DAY_S},
    {"message_reaction", false, DAY_S},
    {"message_reaction_count", false, DAY_S},
    {"business_connection", true, DAY_S},
    {"business_message", true, DAY_S},
    {"edited_business_message", true, DAY_S},
    {"deleted_business_messages", true, DAY_S},
    {"purchased_paid_media", true, DAY_S},
    {"guest_message", true, DAY_S},
};
const int n_update_kinds = (int)ARRAY_LEN(update_kinds);

int update_kind_find(struct slice name)
{
    for (int i = 0; i < n_update_kinds; i++) {
        if (slice_eq_str(name, update_kinds[i].name))
            return i;
    }
    return -1;
}

uint32_t queue_default_kinds(void)
{
    uint32_t set = 0;
    for (int i = 0; i < n_update_kinds; i++)
        set |= update_kinds[i].by_default ? UINT32_C(1) << i : 0;
    return set;
}

void queue_init(struct queue *q, int32_t first_id)
{
    memset(q, 0, sizeof(*q));
    q->tail = first_id;
    q->allowed = queue_default_kinds();
    q->expire_next = INT64_MAX;
}

/* Takes the oldest n away. */
static void drop_first(struct queue *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        q->bytes -= q->v[q->first + i].n;
        free(q->v[q->first + i].p);
    }
    q->first += n;
    q->n -= n;
    if (q->n == 0)
        q->first = 0;
}

void queue_free(struct queue *q)
{
    drop_first(q, q->n);
    free(q->v);
    q->v = NULL;
}

int32_t queue_head(const struct queue *q)
{
    return q->n ? q->v[q->first].id : q->tail;
}

/* Room for one more at the end of v. */
static void make_room(struct queue *q)
{
    if (q->first + q->n < q->cap)
        return;
    if (q->first > q->cap / 2) {
        memmove(q->v, q->v + q->first, q->n * sizeof(*q->v));
        q->first = 0;
        return;
    }
    q->cap = q->cap ? q->cap * 2 : 256;
    q->v = xrealloc(q->v, q->cap * sizeof(*q->v));
}

/* Takes the entry's bytes; the queue is not full. */
static int32_t append(struct queue *q, struct buf *entry, int64_t expires_at)
{
    make_room(q);
    struct queued *u = &q->v[q->first + q->n++];
    u->id = q->tail++;
    u->expires_at = expires_at;
    u->n = entry->n;
    u->p = buf_steal(entry);
    q->bytes += u->n;
    q->made++;
    if (expires_at < q->expire_next)
        q->expire_next = expires_at;
    return u->id;
}

static bool is_full(struct queue *q, size_t more)
{
    if (q->n < QUEUE_MAX_UPDATES && q->bytes + more <= QUEUE_MAX_BYTES)
        return false;
    q->overflowed++;
    return true;
}

int32_t queue_add(struct queue *q, int kind, struct slice members, int64_t now)
{
    if (kind >= 0 && !(q->allowed & UINT32_C(1) << kind)) {
        q->not_allowed++;
        return -1;
    }
    if (is_full(q, members.n))
        return -1;
    struct buf entry = BUF_EMPTY;
    buf_printf(&entry, "{\"update_id\":%d,\n", (int)q->tail);
    buf_add_slice(&entry, members);
    buf_add_char(&entry, '}');
    int keeps_s = kind >= 0 ? update_kinds[kind].keeps_s : DAY_S;
    return append(q, &entry, now + keeps_s * INT64_C(1000));
}

int32_t queue_add_raw(struct queue *q, struct slice entry, int64_t now)
{
    static const char mark[] = "@ID@";
    const size_t n = sizeof(mark) - 1;

    if (is_full(q, entry.n))
        return -1;
    struct buf b = BUF_EMPTY;
    while (entry.n) {
        if (entry.n >= n && !memcmp(entry.p, mark, n)) {
            buf_printf(&b, "%d", (int)q->tail);
            entry = slice_make(entry.p + n, entry.n - n);
        } else {
            buf_add_char(&b, *entry.p);
            entry = slice_make(entry.p + 1, entry.n - 1);
        }
    }
    return append(q, &b, now + DAY_S * INT64_C(1000));
}

/* Drops what nobody fetched in time, wherever it stands. */
static void expire(struct queue *q, int64_t now)
{
    if (now < q->expire_next)
        return;
    struct queued *v = q->v + q->first;
    size_t kept = 0;
    q->expire_next = INT64_MAX;
    for (size_t i = 0; i < q->n; i++) {
        if (v[i].expires_at <= now) {
            q->expired++;
            q->bytes -= v[i].n;
            free(v[i].p);
            continue;
        }
        if (v[i].expires_at < q->expire_next)
            q->expire_next = v[i].expires_at;
        v[kept++] = v[i];
    }
    q->n = kept;
}

/* How many updates have an id below this one. */
static size_t count_below(const struct queue *q, int64_t id)
{
    size_t low = 0, high = q->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (q->v[q->first + mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void queue_apply_offset(struct queue *q, int64_t offset, int64_t now)
{
    expire(q, now);
    if (offset < 0) {
        uint64_t keep = (uint64_t)-offset;
        if (q->n > keep) {
            q->deleted += q->n - keep;
            drop_first(q, q->n - (size_t)keep);
        }
        return;
    }
    bool future = offset > (int64_t)q->tail + 10 || offset >= UPDATE_ID_END;
    bool past = offset < (int64_t)queue_head(q) - QUEUE_MAX_UPDATES;
    if (offset == 0 || future || past)
        return;
    size_t below = count_below(q, offset);
    q->confirmed += below;
    drop_first(q, below);
}

void queue_remove(struct queue *q, int32_t id)
{
    size_t at = count_below(q, id);
    struct queued *u = &q->v[q->first + at];

    if (at == q->n || u->id != id)
        return;
    q->confirmed++;
    q->bytes -= u->n;
    free(u->p);
    memmove(u, u + 1, (q->n - at - 1) * sizeof(*u));
    q->n--;
}

int queue_answer(const struct queue *q, int limit, struct buf *out, int32_t *first, int32_t *last)
{
    size_t bytes = 0;
    int n = 0;

    for (size_t i = 0; i < q->n && n < limit; i++) {
        const struct queued *u = &q->v[q->first + i];
        if (n && bytes + u->n > ANSWER_MAX_BYTES)
            break;
        if (n++)
            buf_add_char(out, ',');
        else
            *first = u->id;
        *last = u->id;
        buf_add(out, u->p, u->n);
        bytes += u->n;
    }
    return n;
}
