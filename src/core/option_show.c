/* From the fields of a config back to text: for `tgspool config`, and to tell what a reload changes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/option_command.h"
#include "core/option_value.h"

#define FIELD(type, base, o) ((type const *)(const void *)((const char *)(base) + (o)->offset))

/* Takes text. */
static void add_item(struct option_value *v, char *key, char *text)
{
    v->item = xrealloc(v->item, (v->n + 1) * sizeof(*v->item));
    v->item[v->n++] = (struct option_item){key, text};
}

static char *time_text(int64_t ms)
{
    char text[32];
    return xstrdup(text_from_ms(ms, text));
}

static char *size_text(int64_t bytes)
{
    static const char units[] = "GMK";

    for (size_t i = 0; bytes && i < 3; i++) {
        int64_t unit = INT64_C(1) << (30 - 10 * i);
        if (bytes % unit == 0)
            return xasprintf("%lld%c", (long long)(bytes / unit), units[i]);
    }
    return xasprintf("%lld", (long long)bytes);
}

static char *reserve_text(int64_t bytes)
{
    return bytes == 0 ? xstrdup("off") : bytes == RESERVE_AUTO ? xstrdup("auto") : size_text(bytes);
}

static char *sync_text(const struct config *c)
{
    return c->sync == SYNC_INTERVAL ? time_text(c->sync_ms) : xstrdup(c->sync == SYNC_OFF ? "off" : "always");
}

static void get_expire(const struct bot_config *b, struct option_value *v)
{
    if (b->expire != EXPIRE_KINDS) {
        add_item(v, NULL, xstrdup(b->expire == EXPIRE_OFF ? "off" : "auto"));
        return;
    }
    v->shape = SHAPE_MAP;
    for (size_t i = 0; i < b->n_expire_rules; i++)
        add_item(v, xstrdup(b->expire_rules[i].kind), time_text(b->expire_rules[i].ms));
}

static void get_list(const struct option *o, const void *base, struct option_value *v)
{
    const struct retry_schedule *s = FIELD(struct retry_schedule, base, o);
    char *const *kind = *FIELD(char **, base, o);

    v->shape = SHAPE_LIST;
    if (o->type == OPTION_TIMES)
        for (size_t i = 0; i < s->n; i++)
            add_item(v, NULL, time_text(s->step_ms[i]));
    else
        for (; kind && *kind; kind++)
            add_item(v, NULL, xstrdup(*kind));
}

static char *command_text(char *const *argv)
{
    struct buf b = BUF_EMPTY;

    if (argv)
        command_join(&b, argv);
    return buf_steal(&b);
}

static void get_nets(const struct ip_nets *nets, struct option_value *v)
{
    char text[IP_TEXT_MAX];

    v->shape = nets->n == 0 ? SHAPE_NONE : nets->n == 1 ? SHAPE_TEXT : SHAPE_LIST;
    for (size_t i = 0; i < nets->n; i++)
        add_item(v, NULL, xstrdup(ip_net_text(&nets->net[i], text)));
}

static void get_hosts(char *const *hosts, struct option_value *v)
{
    for (; *hosts; hosts++)
        add_item(v, NULL, xstrdup(*hosts));
    v->shape = v->n == 1 ? SHAPE_TEXT : SHAPE_LIST;
}

static bool is_pointer(enum option_type t)
{
    return t == OPTION_PATH || t == OPTION_TEXT || t == OPTION_NAME || t == OPTION_URL || t == OPTION_PORT ||
           t == OPTION_COMMAND || t == OPTION_HOSTS;
}

void option_get(const struct option *o, const struct config *c, const struct bot_config *bot,
                struct option_value *out)
{
    const void *base = o->section == SECTION_BOTS ? (const void *)bot : c;

    *out = (struct option_value){SHAPE_TEXT, NULL, 0};
    if (is_pointer(o->type) && !*FIELD(char *, base, o)) {
        out->shape = SHAPE_NONE;
        return;
    }
    switch (o->type) {
    case OPTION_PATH:
    case OPTION_TEXT:
    case OPTION_NAME:
    case OPTION_URL:
    case OPTION_PORT:
        add_item(out, NULL, xstrdup(*FIELD(char *, base, o)));
        break;
    case OPTION_WORD:
        add_item(out, NULL, xstrdup(o->words[*FIELD(unsigned, base, o)]));
        break;
    case OPTION_SYNC:
        add_item(out, NULL, sync_text(base));
        break;
    case OPTION_TIME:
        add_item(out, NULL, time_text(*FIELD(int64_t, base, o)));
        break;
    case OPTION_SIZE:
        add_item(out, NULL, size_text(*FIELD(int64_t, base, o)));
        break;
    case OPTION_RESERVE:
        add_item(out, NULL, reserve_text(*FIELD(int64_t, base, o)));
        break;
    case OPTION_NUMBER:
        out->shape = SHAPE_NUMBER;
        add_item(out, NULL, xasprintf("%u", *FIELD(unsigned, base, o)));
        break;
    case OPTION_MODE:
        add_item(out, NULL, xasprintf("%04o", *FIELD(unsigned, base, o)));
        break;
    case OPTION_BOOL:
        add_item(out, NULL, xstrdup(*FIELD(bool, base, o) ? "true" : "false"));
        break;
    case OPTION_NETS:
        get_nets(FIELD(struct ip_nets, base, o), out);
        break;
    case OPTION_HOSTS:
        get_hosts(*FIELD(char **, base, o), out);
        break;
    case OPTION_COMMAND:
        add_item(out, NULL, command_text(*FIELD(char **, base, o)));
        break;
    case OPTION_TIMES:
    case OPTION_KINDS:
        get_list(o, base, out);
        break;
    case OPTION_EXPIRE:
        get_expire(base, out);
        break;
    }
}

void option_value_clear(struct option_value *v)
{
    for (size_t i = 0; i < v->n; i++) {
        free(v->item[i].key);
        free(v->item[i].text);
    }
    free(v->item);
    *v = (struct option_value){SHAPE_NONE, NULL, 0};
}

void option_value_add_yaml(struct buf *out, const struct option_value *v)
{
    const char *brackets = v->shape == SHAPE_LIST ? "[]" : v->shape == SHAPE_MAP ? "{}" : NULL;

    if (brackets)
        buf_add_char(out, brackets[0]);
    for (size_t i = 0; i < v->n; i++) {
        if (i)
            buf_add_str(out, ", ");
        if (v->item[i].key)
            buf_printf(out, "%s: ", v->item[i].key);
        node_add_scalar(out, v->item[i].text);
    }
    if (brackets)
        buf_add_char(out, brackets[1]);
}

/* ---- a config as a file ------------------------------------------------------------------------- */

#define COMMENT_COLUMN 48 /* where "# line N" stands, if the value leaves room */

static void add_source(struct buf *out, size_t width, struct config_mark at, bool unset)
{
    buf_printf(out, "%*s", width < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - width) : 1, "");
    if (at.line)
        buf_printf(out, "# line %u", at.line);
    else
        buf_add_str(out, unset ? "# unset" : "# default");
}

static void add_section(struct buf *out, const struct config *c, enum option_section s,
                        const struct bot_config *bot, bool sources)
{
    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        struct option_value v;
        if (o->section != s || o->planned || !option_applies(o, bot))
            continue;
        size_t start = out->n;
        buf_printf(out, "%s%s: ", bot ? "    " : "  ", o->name);
        option_get(o, c, bot, &v);
        option_value_add_yaml(out, &v);
        if (sources)
            add_source(out, out->n - start, option_set_at(o, c, bot), v.shape == SHAPE_NONE);
        buf_add_char(out, '\n');
        option_value_clear(&v);
    }
}

void config_add_yaml(struct buf *out, const struct config *c, bool sources)
{
    if (sources)
        buf_printf(out, "# %s\n", c->path);
    for (enum option_section s = 0; s < SECTION_BOTS; s++) {
        if (option_section_is_planned(s))
            continue;
        buf_printf(out, "%s:\n", option_section_name(s));
        add_section(out, c, s, NULL, sources);
    }
    buf_printf(out, "%s:\n", option_section_name(SECTION_BOTS));
    for (size_t i = 0; i < c->n_bots; i++) {
        buf_printf(out, "  %s:\n", c->bots[i].name);
        add_section(out, c, SECTION_BOTS, &c->bots[i], sources);
    }
}

/* ---- reload ------------------------------------------------------------------------------------- */

static void value_text(const struct option *o, const struct config *c, struct buf *out)
{
    struct option_value v;

    option_get(o, c, NULL, &v);
    option_value_add_yaml(out, &v);
    option_value_clear(&v);
}

int config_check_reload(const struct config *old, const struct config *new, struct err *e)
{
    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        struct buf was = BUF_EMPTY, is = BUF_EMPTY;
        if (o->planned || o->reloadable || o->section == SECTION_BOTS)
            continue;
        value_text(o, old, &was);
        value_text(o, new, &is);
        bool same = slice_eq(buf_slice(&was), buf_slice(&is));
        if (!same) {
            node_error(e, new->path, option_set_at(o, new, NULL),
                       "%s.%s cannot change while tgspool runs (from %s to %s); restart it, or put the old "
                       "value back",
                       option_section_name(o->section), o->name, was.n ? was.p : "unset",
                       is.n ? is.p : "unset");
        }
        buf_free(&was);
        buf_free(&is);
        if (!same)
            return -1;
    }
    return 0;
}
