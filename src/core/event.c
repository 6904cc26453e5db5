/* Names of states and reasons, and ids as people see them. */
#include "core/event.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/outcome.h"

static const char *const box_names[] = {"in", "out"};
static const char *const state_names[] = {"pending", "processing", "done", "dead"};
static const char *const reason_names[] = {"", "attempts", "rejected", "expired", "discarded"};

bool state_is_settled(const struct event_state *st)
{
    return st->state == STATE_DEAD &&
           (st->replayed_as ||
            (st->n_history && st->history[st->n_history - 1].outcome == OUTCOME_DISCARDED));
}

bool state_may_discard(const struct event_state *st)
{
    return st->state != STATE_DONE &&
           (st->state != STATE_DEAD || (!state_is_settled(st) && st->reason != REASON_DISCARDED));
}

const char *box_name(enum box b)
{
    return box_names[b];
}

const char *state_name(enum state s)
{
    return state_names[s];
}

const char *reason_name(enum reason r)
{
    return reason_names[r];
}

int state_from_name(struct slice s, enum state *out)
{
    for (size_t i = 0; i < ARRAY_LEN(state_names); i++)
        if (slice_eq_str(s, state_names[i])) {
            *out = (enum state)i;
            return 0;
        }
    return -1;
}

static int parse_seq(struct slice s, uint64_t *seq)
{
    int64_t v;

    if (s.n < 2 || s.p[0] != '@' || text_to_i64(slice_make(s.p + 1, s.n - 1), 1, INT64_MAX, &v) < 0)
        return -1;
    *seq = (uint64_t)v;
    return 0;
}

int event_ref_parse(struct slice text, struct event_ref *out)
{
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    if (!slash)
        return -1;
    struct slice bot = slice_make(text.p, (size_t)(slash - text.p));
    struct slice rest = slice_make(slash + 1, text.n - bot.n - 1);
    if (!text_is_bot_name(bot))
        return -1;
    *out = (struct event_ref){.box = BOX_IN, .by_seq = true};
    memcpy(out->bot, bot.p, bot.n);
    if (rest.n > 4 && memcmp(rest.p, "out/", 4) == 0) {
        out->box = BOX_OUT;
        return parse_seq(slice_make(rest.p + 4, rest.n - 4), &out->seq);
    }
    if (parse_seq(rest, &out->seq) == 0)
        return 0;
    out->by_seq = false;
    return text_to_i64(rest, 0, INT64_MAX, &out->update_id);
}

void event_ref_text(struct buf *out, const char *bot, enum box box, const struct event *ev)
{
    if (box == BOX_OUT)
        buf_printf(out, "%s/out/@%" PRIu64, bot, ev->seq);
    else if (ev->has_update_id)
        buf_printf(out, "%s/%" PRId64, bot, ev->update_id);
    else
        buf_printf(out, "%s/@%" PRIu64, bot, ev->seq);
}

char *event_key(int64_t bot_id, const struct event *ev, char out[EVENT_KEY_MAX])
{
    char id[24] = "-", hash[9];

    if (ev->has_update_id)
        snprintf(id, sizeof(id), "%" PRId64, ev->update_id);
    hex_encode(ev->hash, 4, hash);
    snprintf(out, EVENT_KEY_MAX, "%" PRId64 ":%s:%s", bot_id, id, hash);
    return out;
}
