/* See flood.h. */
#include "flood.h"

#include <string.h>

#include "args.h"
#include "base/clock.h"
#include "base/mem.h"
#include "make_update.h"
#include "queue.h"

#define FIRST_ID 100000000 /* every id has nine digits */
#define CHATS 1000
#define IDLE_MS 1000 /* how long a poll waits when the flood is over */

static struct {
    unsigned n, batch;
    struct buf text; /* `{"ok":true,"result":[`, then the entries, each but the first with a comma in front */
    size_t *id_at;   /* where the id of each entry stands */
    size_t *ends;    /* where each entry ends */
} flood;

bool flood_is_on(void)
{
    return flood.batch > 0;
}

void flood_setup(unsigned n, unsigned size, unsigned batch)
{
    flood.n = n;
    flood.batch = batch;
    flood.id_at = xcalloc(batch, sizeof(*flood.id_at));
    flood.ends = xcalloc(batch, sizeof(*flood.ends));
    buf_add_str(&flood.text, "{\"ok\":true,\"result\":[");
    for (unsigned i = 0; i < batch; i++) {
        const size_t around = sizeof("{\"update_id\":123456789,\n}") - 1;
        struct make_spec spec = {i,
                                 update_kind_find(slice_str("message")),
                                 CHATS,
                                 size > around ? size - around : 0,
                                 clock_wall_ms() / 1000,
                                 NULL};
        buf_add_str(&flood.text, i ? ",{\"update_id\":" : "{\"update_id\":");
        flood.id_at[i] = flood.text.n;
        buf_add_str(&flood.text, "123456789,\n");
        make_update(&flood.text, &spec);
        buf_add_char(&flood.text, '}');
        flood.ends[i] = flood.text.n;
    }
}

/* Nine digits in place. */
static void put_id(char *p, unsigned id)
{
    for (int i = 8; i >= 0; i--, id /= 10)
        p[i] = (char)('0' + id % 10);
}

int flood_serve(struct conn *c, struct slice query)
{
    struct args a = {NULL, 0};
    struct reply r = {.status = 200};

    args_add_urlencoded(&a, query);
    args_add_body(&a, c->content_type, buf_slice(&c->body));
    unsigned from = (unsigned)args_int(&a, "offset", 0, FIRST_ID, FIRST_ID + (int64_t)flood.n) - FIRST_ID;
    unsigned limit = (unsigned)args_int(&a, "limit", 100, 1, 100);
    bool waits = args_int(&a, "timeout", 0, 0, 50) > 0;
    args_free(&a);

    unsigned count = flood.n - from;
    count = count > limit ? limit : count;
    count = count > flood.batch ? flood.batch : count;
    if (count == 0 && waits)
        conn_wait(c, -1, IDLE_MS);
    buf_add(&r.body, flood.text.p,
            count ? flood.ends[count - 1] : flood.id_at[0] - strlen("{\"update_id\":"));
    for (unsigned i = 0; i < count; i++)
        put_id(r.body.p + flood.id_at[i], FIRST_ID + from + i);
    buf_add_str(&r.body, "]}");
    int rc = conn_reply(c, &r);
    buf_free(&r.body);
    return rc;
}
