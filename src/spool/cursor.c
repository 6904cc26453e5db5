/* A cursor as text. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "spool/spool.h"

void spool_cursor_text(const struct spool_cursor *c, char out[64])
{
    snprintf(out, 64, "%lld.%d.%llu", (long long)c->bot_id, c->box, (unsigned long long)c->seq);
}

int spool_cursor_parse(struct slice text, struct spool_cursor *out)
{
    const char *dot = text.n ? memchr(text.p, '.', text.n) : NULL;
    int64_t bot, box, seq;

    if (!dot || (size_t)(dot - text.p) + 3 > text.n || dot[2] != '.')
        return -1;
    struct slice rest = slice_make(dot + 3, text.n - (size_t)(dot - text.p) - 3);
    if (text_to_i64(slice_make(text.p, (size_t)(dot - text.p)), 0, INT64_MAX, &bot) < 0 ||
        text_to_i64(slice_make(dot + 1, 1), 0, BOX_OUT, &box) < 0 ||
        text_to_i64(rest, 0, INT64_MAX, &seq) < 0)
        return -1;
    *out = (struct spool_cursor){bot, (int)box, (uint64_t)seq, true};
    return 0;
}
