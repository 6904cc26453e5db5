/* Archived first: a slice of events that may go is made lines of an export and given to the archiver, tick by tick,
 * until it says that they are safe. Then those go that are as they were; one that was replayed meanwhile stays for the
 * next slice. What fails is tried again, and nothing is removed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/backoff.h"
#include "spool/retain.h"
#include "wire/event_json.h"

#define SLICE_BYTES (64u << 10) /* of lines; it ends with the line that passes them */
#define FAILED_FIRST_MS SECONDS(1)
#define FAILED_CAP_MS MINUTES(5)
#define WARN_EVERY_MS HOURS(1)

struct retain_slice {
    struct spool_box *box;
    enum ended_class class;
    struct retain_item items[WORK_PER_TICK];
    unsigned n;
    struct buf lines;
};

static void slice_free(struct spool *sp)
{
    if (!sp->slice)
        return;
    buf_free(&sp->slice->lines);
    free(sp->slice);
    sp->slice = NULL;
}

void spool_set_archiver(struct spool *sp, spool_archive_fn *fn, void *arg)
{
    slice_free(sp);
    sp->archive_fn = fn;
    sp->archive_arg = arg;
    sp->archive_failures = 0;
    sp->archive_failing_since = sp->archive_retry_at = sp->archive_warn_at = 0;
}

static enum retained add_line(void *arg, struct spool_box *b, const struct retain_item *it,
                              const struct event *ev)
{
    struct retain_slice *s = arg;
    struct state_record r;
    struct json_out j;

    if (row_state(b, s->class, it->seq, &r) <= 0)
        return RETAIN_BROKEN;
    json_start(&j, &s->lines);
    event_write(&j, b->rec.name, b->bot_id, b->which, ev, &r.st, true);
    json_end(&j);
    buf_add_char(&s->lines, '\n');
    return RETAIN_GONE;
}

void retain_slice_begin(struct spool_box *b, enum ended_class c, const struct retain_item *items, unsigned n)
{
    struct spool *sp = b->sp;
    struct retain_slice *s = xcalloc(1, sizeof(*s));
    int64_t at = TIME_NEVER;

    s->box = b;
    s->class = c;
    sp->slice = s;
    for (; s->n < n && s->lines.n < SLICE_BYTES; s->n++) {
        enum retained rc = retain_one(b, c, &items[s->n], add_line, s, &at);
        if (rc == RETAIN_BROKEN) {
            slice_free(sp);
            return;
        }
        if (rc == RETAIN_STAYS)
            break;
        s->items[s->n] = items[s->n];
    }
    sp->work_left -= s->n;
    if (s->n == 0) {
        slice_free(sp);
        retain_front_at(b, c, items[0].seq, at);
        return;
    }
    retain_slice_step(sp);
}

/* The lines are safe: what is as it was when they were made goes. */
static void slice_done(struct spool *sp)
{
    struct retain_slice *s = sp->slice;
    struct spool_box *b = s->box;
    struct retain_front *f = &b->retain[s->class];
    bool at_front = f->from == s->items[0].seq; /* else an event in front of them ended meanwhile */

    for (unsigned i = 0; i < s->n; i++) {
        const struct retain_item *it = &s->items[i];
        struct state_record r;
        if (at_front)
            f->from = it->seq;
        bool same = row_state(b, s->class, it->seq, &r) > 0 && r.st.finished_at == it->finished_at &&
                    r.st.replayed_as == it->replayed_as && state_is_settled(&r.st) == it->settled;
        if (same && retain_one(b, s->class, it, NULL, NULL, &f->at) == RETAIN_GONE)
            sp->archived++;
        else
            at_front = false;
    }
    if (at_front)
        f->from++;
    f->at = sp->now;
    retain_run_end(b, s->class);
    slice_free(sp);
}

static void archive_works(struct spool *sp)
{
    if (sp->archive_warn_at)
        log_warn(NULL, "the archive works again: retention goes on");
    sp->archive_failures = 0;
    sp->archive_failing_since = sp->archive_retry_at = sp->archive_warn_at = 0;
}

static void archive_fails(struct spool *sp, const struct err *e)
{
    if (!sp->archive_failing_since)
        sp->archive_failing_since = sp->now;
    sp->archive_why = *e;
    sp->archive_retry_at =
        sp->now + backoff_wait(FAILED_FIRST_MS, FAILED_CAP_MS, ++sp->archive_failures, UINT32_MAX / 2);
    if (sp->now < sp->archive_warn_at)
        return;
    sp->archive_warn_at = sp->now + WARN_EVERY_MS;
    log_warn(NULL, "the archive fails, so nothing is removed until it works again: %s; next: tgspool status",
             e->text);
}

bool retain_slice_step(struct spool *sp)
{
    struct err e = ERR_NONE;

    if (!sp->slice)
        return sp->now >= sp->archive_retry_at;
    switch (sp->archive_fn(sp->archive_arg, buf_slice(&sp->slice->lines), sp->now, &e)) {
    case ARCHIVE_BUSY:
        return false;
    case ARCHIVE_FAILED:
        slice_free(sp);
        archive_fails(sp, &e);
        return false;
    case ARCHIVE_DONE:
        break;
    }
    archive_works(sp);
    slice_done(sp);
    return false; /* the next one has the next tick */
}

void retain_free(struct spool *sp)
{
    slice_free(sp);
}

void spool_retention_status(const struct spool *sp, struct spool_retention_status *out)
{
    *out = (struct spool_retention_status){.on = sp->retaining,
                                           .archives = sp->archive_fn != NULL,
                                           .removed = sp->removed,
                                           .archived = sp->archived,
                                           .failing_since = sp->archive_failing_since};
    if (sp->archive_failing_since)
        snprintf(out->trouble, sizeof(out->trouble), "%.*s", (int)sizeof(out->trouble) - 1,
                 sp->archive_why.text);
}
