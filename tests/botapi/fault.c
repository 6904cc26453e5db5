/* See fault.h. */
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const names[FAULT_TYPES] = {
    [FAULT_NONE] = "none",
    [FAULT_STATUS] = "status",
    [FAULT_EMPTY] = "empty",
    [FAULT_RESET_BEFORE] = "reset_before",
    [FAULT_CLOSE_BEFORE] = "close_before",
    [FAULT_HANG] = "hang",
    [FAULT_DELAY] = "delay",
    [FAULT_LOST] = "lost",
    [FAULT_CUT] = "cut",
    [FAULT_RESET_AFTER] = "reset_after",
    [FAULT_HALF_OPEN] = "half_open",
    [FAULT_DRIP] = "drip",
    [FAULT_BAD_JSON] = "bad_json",
    [FAULT_BROKEN_UPDATE] = "broken_update",
};

static const char html_page[] = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
                                "<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n";

enum fault_type fault_type_find(struct slice name)
{
    for (int i = 1; i < FAULT_TYPES; i++) {
        if (slice_eq_str(name, names[i]))
            return (enum fault_type)i;
    }
    return FAULT_NONE;
}

const char *fault_type_name(enum fault_type t)
{
    return names[t];
}

bool fault_is_in_front(enum fault_type t)
{
    return t >= FAULT_STATUS && t <= FAULT_HANG;
}

void fault_free(struct fault *f)
{
    if (!f)
        return;
    list_del(&f->link);
    free(f->content_type);
    free(f->body);
    free(f);
}

struct fault *fault_take(struct list *faults, const char *method)
{
    list_each(faults, it) {
        struct fault *f = list_item(it, struct fault, link);
        if (f->method[0] && strcmp(f->method, method) != 0)
            continue;
        struct fault *copy = xmemdup(f, sizeof(*f));
        list_init(&copy->link);
        copy->left = 1;
        copy->content_type = f->content_type ? xstrdup(f->content_type) : NULL;
        copy->body = f->body ? xstrdup(f->body) : NULL;
        if (--f->left == 0)
            fault_free(f);
        return copy;
    }
    return NULL;
}

/* An error as the API words it, unless the fault brings a body of its own. */
static void make_status(struct reply *r, const struct fault *f)
{
    r->status = f->status ? f->status : 502;
    r->retry_after = f->retry_after;
    r->content_type = f->content_type;
    if (f->body) {
        buf_add_str(&r->body, f->body);
    } else if (r->status == 429) {
        buf_printf(&r->body,
                   "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests: retry after %d\","
                   "\"parameters\":{\"retry_after\":%d}}",
                   f->retry_after, f->retry_after);
    } else if (r->status >= 500) {
        r->content_type = f->content_type ? f->content_type : "text/html";
        buf_add_str(&r->body, html_page);
    } else {
        buf_printf(&r->body, "{\"ok\":false,\"error_code\":%d,\"description\":\"Error %d\"}", r->status,
                   r->status);
    }
}

/* Spoils the n-th update of the answer: its first colon becomes a brace. */
static void break_update(struct buf *body, int64_t n)
{
    static const char mark[] = "{\"update_id\":";
    char *p = body->p, *at = NULL;

    for (int64_t i = 0; i <= n && p; i++) {
        p = memmem(p, body->n - (size_t)(p - body->p), mark, sizeof(mark) - 1);
        at = p ? p : at;
        p = p ? p + 1 : NULL;
    }
    if (at)
        memcpy(strstr(at, "\n\"") ? strstr(at, "\n\"") : at, "{{", 2);
}

static void sleep_ms(int64_t ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Sends head and body a byte at a time. */
static int drip(struct conn *c, const struct buf *all, int64_t ms)
{
    for (size_t i = 0; i < all->n; i++) {
        if (conn_write(c, slice_make(all->p + i, 1)))
            return -1;
        sleep_ms(ms ? ms : 10);
    }
    return 0;
}

/* Sends the head for the whole body and only the first bytes of it. */
static int send_part(struct conn *c, const struct reply *r, const struct fault *f)
{
    struct buf all = BUF_EMPTY;
    int rc;

    conn_head(c, r, r->body.n, &all);
    if (f->type == FAULT_DRIP) {
        buf_add_slice(&all, buf_slice(&r->body));
        rc = drip(c, &all, f->ms);
    } else {
        size_t n = (size_t)f->at < r->body.n ? (size_t)f->at : r->body.n - 1;
        buf_add(&all, r->body.p, n);
        rc = conn_write(c, buf_slice(&all));
    }
    buf_free(&all);
    return rc;
}

int fault_reply(struct conn *c, struct reply *r, const struct fault *f)
{
    switch (f ? f->type : FAULT_NONE) {
    case FAULT_STATUS:
        make_status(r, f);
        break;
    case FAULT_EMPTY:
        r->status = 200;
        buf_add_str(&r->body, "{\"ok\":true,\"result\":[]}");
        break;
    case FAULT_HANG:
        conn_wait(c, -1, f->ms ? f->ms : 3600000);
        return -1;
    case FAULT_CLOSE_BEFORE:
        return -1;
    case FAULT_RESET_BEFORE:
    case FAULT_LOST:
        conn_reset(c);
        return 1;
    case FAULT_DELAY:
        sleep_ms(f->ms);
        break;
    case FAULT_CUT:
        send_part(c, r, f);
        return -1;
    case FAULT_RESET_AFTER:
        send_part(c, r, f);
        sleep_ms(50); /* a reset at once would take the head away from the reader too */
        conn_reset(c);
        return 1;
    case FAULT_HALF_OPEN:
        send_part(c, r, f);
        conn_wait(c, -1, f->ms ? f->ms : 3600000);
        return -1;
    case FAULT_DRIP:
        return send_part(c, r, f);
    case FAULT_BAD_JSON:
        buf_clear(&r->body);
        buf_add_str(&r->body, f->body ? f->body : "{\"ok\":true,\"result\":[{\"update_id\":,}]}");
        break;
    case FAULT_BROKEN_UPDATE:
        break_update(&r->body, f->at);
        break;
    default:
        break;
    }
    return conn_reply(c, r);
}
