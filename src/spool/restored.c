/* A spool that was put back from an older copy: what happened since the copy is not known. So nothing is handed over until a
 * person says so, nothing that was given out since is given out under the same number again, and what is missing is told. */
#include "base/log.h"
#include "base/text.h"
#include "spool/internal.h"
#include "wire/json.h"

#define JUMP 1000000          /* more than a spool gives out between two backups */
#define NOTE "restored"       /* see write_note */
#define LOOK_BACK 10000       /* seqs: in which the newest update is looked for */
#define MISSING_MAX 100000000 /* a gap beyond is a new start of Telegram's numbers */

/* ---- restoring ---------------------------------------------------------------------------------- */

static void release_everything(struct spool_box *b)
{
    b->unserve_from = 0;
    b->unserving = b->rec.serving;
    while (b->unserving && spool_usable(b->sp)) {
        unserve(b);
        commit_and_wait(b->sp);
    }
    while (spool_usable(b->sp) && release_any(b))
        commit_and_wait(b->sp);
}

/* The id of the newest update, -1: none. Ids start anew, so the newest is the one that came last. */
static int64_t newest_update_id(struct spool_box *b)
{
    uint64_t next = b->rec.next_seq, from = next > LOOK_BACK ? next - LOOK_BACK : 0;
    struct key lower = key_event(b->bot_id, b->which, from);
    struct key upper = key_after_prefix(key_event(b->bot_id, b->which, UINT64_MAX));
    int64_t newest = -1;
    struct err e = ERR_NONE;
    struct event ev;

    struct db_iter *it =
        db_iter_new(store_db(b->sp->store), FAMILY_EVENTS, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it)) {
        memset(&ev, 0, sizeof(ev));
        if (record_event_decode(db_iter_value(it), &ev) == 0 && ev.has_update_id && !ev.replay_of)
            newest = ev.update_id;
    }
    if (db_iter_free(it, &e) < 0)
        spool_break(b->sp, &e);
    return newest;
}

static void write_note(struct spool_box *b, const struct spool_restored *r)
{
    struct buf text = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &text);
    json_object(&j);
    json_kv_int(&j, "at_ms", r->at);
    json_kv_int(&j, "taken_at_ms", r->taken_at);
    json_kv_int(&j, "newest", r->newest);
    json_kv_int(&j, "missing", r->missing);
    json_object_end(&j);
    json_end(&j);
    spool_set_note(b, NOTE, buf_slice(&text));
    buf_free(&text);
    b->restored = *r;
    b->restored_known = true;
}

static void restore_box(struct spool_box *b, int64_t taken_at, const char *who)
{
    struct poll_position p;
    struct spool_restored r = {
        .at = b->sp->now, .taken_at = taken_at, .newest = -1, .missing = RESTORED_UNKNOWN};

    release_everything(b);
    if (!spool_usable(b->sp))
        return;
    if (b->which == BOX_IN) {
        spool_get_position(b, &p);
        r.newest = p.offset ? p.offset - 1 : newest_update_id(b);
        write_note(b, &r);
    }
    if (b->rec.last_served_id || b->policy.serve) {
        if (r.newest > b->rec.last_served_id)
            b->rec.last_served_id = r.newest; /* it may have been served since */
        b->rec.last_served_id += JUMP;
    }
    b->rec.next_seq += JUMP;
    b->rec.paused_deliver = true;
    b->dirty = true;
    spool_audit(b, "restore", who, 0);
}

int spool_restore(struct spool *sp, int64_t taken_at, const char *who, struct err *e)
{
    char why[256];

    list_each(&sp->boxes, it) {
        restore_box(list_item(it, struct spool_box, link), taken_at, who);
        commit_and_wait(sp);
    }
    if (spool_usable(sp))
        identity_renew(sp);
    commit_and_wait(sp);
    return spool_healthy(sp, why) ? 0 : err_set(e, EX_IOERR, "%s", why);
}

/* ---- afterwards --------------------------------------------------------------------------------- */

static void load(struct spool_box *b)
{
    struct buf text = BUF_EMPTY;

    b->restored_known = true;
    b->restored = (struct spool_restored){.at = 0};
    if (!spool_get_note(b, NOTE, &text))
        return;
    struct json *root = json_parse(buf_slice(&text), NULL);
    struct spool_restored r = {0};
    if (json_to_i64(json_get(root, "at_ms"), &r.at) == 0 &&
        json_to_i64(json_get(root, "taken_at_ms"), &r.taken_at) == 0 &&
        json_to_i64(json_get(root, "newest"), &r.newest) == 0 &&
        json_to_i64(json_get(root, "missing"), &r.missing) == 0)
        b->restored = r;
    json_free(root);
    buf_free(&text);
}

void spool_restored(struct spool_box *b, struct spool_restored *out)
{
    if (!b->restored_known && b->which == BOX_IN && spool_usable(b->sp))
        load(b);
    *out = b->restored;
}

void restored_saw(struct spool_box *b, int64_t update_id)
{
    struct spool_restored r;
    char time[32];

    spool_restored(b, &r);
    if (!r.at || r.missing != RESTORED_UNKNOWN)
        return;
    int64_t missing = r.newest < 0 ? RESTORED_NEVER : update_id - r.newest - 1;
    if (missing < 0 || missing > MISSING_MAX)
        missing = RESTORED_NEVER;
    text_time(r.taken_at, time);
    if (missing == RESTORED_NEVER)
        log_warn(b->rec.name,
                 "restored: how many updates since %.16sZ are lost cannot be told from their ids", time);
    else if (missing)
        log_warn(b->rec.name, "restored: %lld updates (ids from %lld on) since %.16sZ are lost",
                 (long long)missing, (long long)r.newest + 1, time);
    else
        log_info(b->rec.name, "restored: no update since %.16sZ is lost", time);
    r.missing = missing;
    write_note(b, &r);
    b->after_restore = true;
}
