/* Updates and answers to getUpdates, of any bytes: what is found in an update must be the same whether it is read alone or in
 * its answer, and must be borrowed from within the bytes. */
#include "fuzz.h"

#include "core/kinds.h"
#include "core/update.h"

static void check_update(const struct update *u, struct slice within)
{
    CHECK(u->bytes.p >= within.p && u->bytes.p + u->bytes.n <= within.p + within.n);
    CHECK(memchr(u->kind, '\0', sizeof(u->kind)));
    CHECK(!u->has_id || u->id >= 0);
    const struct kind *k = kind_find(slice_str(u->kind));
    CHECK(!k || !u->place.has_chat || k->chat);
    CHECK(!k || !u->place.has_user || k->user);
    CHECK(!u->place.has_poll || (k && k->poll));
}

static void check_same(const struct update *a, const struct update *b)
{
    CHECK(a->has_id == b->has_id && (!a->has_id || a->id == b->id));
    CHECK(strcmp(a->kind, b->kind) == 0);
    CHECK(a->place.has_chat == b->place.has_chat && a->place.chat == b->place.chat);
    CHECK(a->place.has_user == b->place.has_user && a->place.user == b->place.user);
    CHECK(a->place.has_thread == b->place.has_thread && a->place.thread == b->place.thread);
    CHECK(a->place.has_poll == b->place.has_poll && a->place.poll == b->place.poll);
}

static void try_answer(struct slice bytes)
{
    struct update_answer a;
    struct update alone;

    if (update_answer_parse(bytes, &a) < 0)
        return;
    CHECK(memchr(a.description, '\0', sizeof(a.description)));
    CHECK(a.retry_after >= -1 && a.error_code >= 0);
    for (size_t i = 0; i < a.n; i++) {
        check_update(&a.updates[i], bytes);
        CHECK(a.updates[i].bytes.n > 0);
        if (a.updates[i].bytes.p[0] != '{')
            CHECK(!a.updates[i].has_id);
        else {
            CHECK(update_parse(a.updates[i].bytes, &alone) == 0);
            check_same(&a.updates[i], &alone);
        }
    }
    update_answer_free(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice bytes = {(const char *)data, n};
    struct update u;
    int64_t id;

    if (update_parse(bytes, &u) == 0)
        check_update(&u, bytes);
    if (update_guess_id(bytes, &id) == 0)
        CHECK(id >= 0);
    try_answer(bytes);
    return 0;
}
