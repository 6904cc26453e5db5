#include "rig.h"

static struct rig *the_rig;
static int64_t us;

static int64_t rig_now(void)
{
    return the_rig->w.now;
}

static int64_t rig_us(void)
{
    return us += the_rig->us_a_look;
}

static bool rig_pulled(void *arg, const char *bot)
{
    struct rig *r = arg;

    (void)bot;
    return r->pulled;
}

static bool rig_kill(void *arg, const char *bot, enum box box, uint64_t seq)
{
    struct rig *r = arg;

    (void)bot;
    assert_int_equal(box, BOX_IN);
    r->killed++;
    r->killed_seq = seq;
    return r->holds;
}

static void rig_intake(void *arg, const char *bot, struct json_out *j)
{
    (void)arg;
    json_object(j);
    json_kv_cstr(j, "mode", bot);
    json_object_end(j);
}

static bool rig_standing(void *arg, const char *bot, struct intake_standing *out)
{
    struct rig *r = arg;

    assert_string_equal(bot, "shop");
    *out = r->standing;
    return r->has_standing;
}

static int64_t rig_oldest_limit(void *arg)
{
    struct rig *r = arg;
    return r->oldest_limit;
}

static bool rig_disk(void *arg, int64_t *free_bytes, int64_t *db_bytes)
{
    (void)arg;
    *free_bytes = 123456789;
    *db_bytes = 4321;
    return true;
}

static void rig_happened(void *arg, const struct spool_happening *h)
{
    struct rig *r = arg;

    (void)h;
    r->happened++;
}

int rig_setup(void **state)
{
    struct rig *r = xcalloc(1, sizeof(*r));
    void *world = NULL;

    if (world_setup(&world) != 0)
        return -1;
    r->w = *(struct world *)world;
    free(world);
    /* the world's watcher pointed at the copy's original: the api takes its place */
    the_rig = r;
    us = 0;
    r->us_a_look = 1;
    r->pulled = true;
    r->oldest_limit = MINUTES(5);
    const struct api_hooks hooks = {.version = "1.2.3",
                                    .started_at = START,
                                    .now = rig_now,
                                    .us = rig_us,
                                    .intake_status = rig_intake,
                                    .intake_standing = rig_standing,
                                    .oldest_limit = rig_oldest_limit,
                                    .disk_numbers = rig_disk,
                                    .kill_event = rig_kill,
                                    .pulled = rig_pulled,
                                    .arg = r,
                                    .happened = rig_happened,
                                    .happened_arg = r};
    r->api = api_new(r->w.sp, &hooks);
    *state = r;
    return 0;
}

int rig_teardown(void **state)
{
    struct rig *r = *state;
    struct world *w = xmemdup(&r->w, sizeof(r->w));
    void *world = w;

    spool_commit(r->w.sp);
    api_free(r->api);
    free(r);
    return world_teardown(&world);
}

static void on_reply(void *arg, int status, const char *type, struct slice body, int64_t retry_after_s)
{
    struct reply *p = arg;

    assert_false(p->answered);
    p->answered = true;
    p->status = status;
    p->retry_after_s = retry_after_s;
    p->call = NULL;
    buf_add_slice(&p->body, body);
    snprintf(p->type, sizeof(p->type), "%s", type ? type : "");
    p->root = type ? NULL : json_parse(body, NULL);
    assert_true(type || p->root);
}

void rig_start(struct rig *r, struct reply *p, const char *method, const char *path, const char *body)
{
    const char *mark = strchr(path, '?');
    const struct api_request q = {.method = slice_str(method),
                                  .path = slice_make(path, mark ? (size_t)(mark - path) : strlen(path)),
                                  .query = slice_str(mark ? mark + 1 : NULL),
                                  .body = slice_str(body),
                                  .who = "tester",
                                  .on_socket = !r->only_bot,
                                  .only_bot = r->only_bot};

    *p = (struct reply){0};
    spool_begin(r->w.sp, r->w.now);
    struct api_call *call = api_handle(r->api, &q, on_reply, p);
    assert_int_equal(call == NULL, p->answered);
    p->call = call;
}

void rig_step(struct rig *r)
{
    spool_begin(r->w.sp, r->w.now);
    spool_work(r->w.sp);
    api_tick(r->api);
    spool_commit(r->w.sp);
}

void rig_ask(struct rig *r, struct reply *p, const char *method, const char *path, const char *body)
{
    rig_start(r, p, method, path, body);
    for (unsigned i = 0; i < 1000 && !p->answered; i++)
        rig_step(r);
    assert_true(p->answered);
}

void rig_expect(struct rig *r, struct reply *p, int status, const char *method, const char *path,
                const char *body)
{
    rig_ask(r, p, method, path, body);
    if (p->status != status)
        fail_msg("%s %s: %d %s", method, path, p->status, buf_str(&p->body));
}

void rig_refused(struct rig *r, int status, const char *code, const char *method, const char *path,
                 const char *body)
{
    struct reply p;

    rig_expect(r, &p, status, method, path, body);
    assert_slice(json_string(json_get(json_get(p.root, "error"), "code")), code);
    assert_true(json_string(json_get(json_get(p.root, "error"), "message")).n > 10);
    reply_clear(&p);
}

void reply_clear(struct reply *p)
{
    buf_free(&p->body);
    json_free(p->root);
    p->root = NULL;
}

int64_t reply_number(const struct json *o, const char *key)
{
    int64_t v;

    if (json_to_i64(json_get(o, key), &v) < 0)
        fail_msg("no number \"%s\"", key);
    return v;
}

const char *reply_text(const struct json *o, const char *key)
{
    static char texts[4][256];
    static unsigned at;
    struct slice s = json_string(json_get(o, key));
    char *out = texts[at++ % 4];

    if (!s.p || s.n >= sizeof(texts[0]))
        fail_msg("no text \"%s\"", key);
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return out;
}

const struct json *reply_event(const struct reply *p, size_t i)
{
    const struct json *v = json_item(json_get(p->root, "events"), i);

    assert_non_null(v);
    return v;
}

uint64_t rig_arrive(struct rig *r, int64_t update_id, int64_t chat)
{
    return world_arrive(&r->w, update_id, chat);
}
