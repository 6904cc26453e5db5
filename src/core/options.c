/* The config as a whole: sections and names of the file against the table, defaults, and what must fit
 * together. */
#include "core/options.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/option_value.h"

static size_t row_count(void)
{
    size_t n = 0;
    while (option_at(n))
        n++;
    return n;
}

static size_t row_index(const struct option *o)
{
    return (size_t)(o - option_at(0));
}

/* ---- names -------------------------------------------------------------------------------------- */

/* Explains a name that is not in the table: a secret, an option of another section, a slip of the finger. */
static int unknown_option(const struct option_reader *r, enum option_section s, const char *where,
                          const struct node *key)
{
    struct buf known = BUF_EMPTY;
    const char *near = NULL, *elsewhere = NULL;
    char file[80];
    int rc;

    snprintf(file, sizeof(file), "%.64s_file", key->text);
    const struct option *secret = option_find(s, slice_str(file));
    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        if (o->section != s && slice_eq_str(slice_make(key->text, key->len), o->name))
            elsewhere = option_section_name(o->section);
        if (o->section != s || o->planned)
            continue;
        near = option_closest(key->text, near, o->name);
        buf_printf(&known, "%s%s", known.n ? ", " : "", o->name);
    }
    if (secret && (secret->secret || secret->planned))
        rc = node_error(
            r->e, r->path, key->at,
            "%s.%.64s: a secret never stands in this file; put it into a file of its own (chmod 600) and "
            "name that by %s%s",
            where, key->text, file, secret->planned ? ", which is planned for a later version" : "");
    else if (near)
        rc = node_error(r->e, r->path, key->at, "%s.%.64s is not an option; did you mean %s?", where,
                        key->text, near);
    else if (elsewhere)
        rc = node_error(r->e, r->path, key->at, "%.64s is not an option of %s; it belongs to the section %s",
                        key->text, where, elsewhere);
    else
        rc = node_error(r->e, r->path, key->at, "%s.%.64s is not an option; accepted: %s", where, key->text,
                        buf_str(&known));
    buf_free(&known);
    return rc;
}

/* "a, b, c": the sections that there are. */
static char *known_sections(char out[80])
{
    size_t n = 0;

    for (enum option_section s = 0; s < SECTIONS; s++)
        if (!option_section_is_planned(s))
            n += (size_t)snprintf(out + n, 80 - n, "%s%s", n ? ", " : "", option_section_name(s));
    return out;
}

static int unknown_section(const struct option_reader *r, const struct node *key)
{
    const char *near = NULL, *within = NULL;
    char known[80];

    for (size_t s = 0; s < SECTIONS; s++)
        near = option_closest(key->text, near, option_section_name(s));
    for (size_t i = 0; option_at(i) && !within; i++)
        if (slice_eq_str(slice_make(key->text, key->len), option_at(i)->name))
            within = option_section_name(option_at(i)->section);
    if (near)
        return node_error(r->e, r->path, key->at, "%.64s is not a section; did you mean %s?", key->text,
                          near);
    if (within)
        return node_error(r->e, r->path, key->at,
                          "%.64s is not a section but an option of %s; indent it under that", key->text,
                          within);
    return node_error(r->e, r->path, key->at, "%.64s is not a section; accepted: %s", key->text,
                      known_sections(known));
}

/* ---- one section -------------------------------------------------------------------------------- */

/* Reads every entry of a section's mapping into base, and notes where it was set. */
static int read_entries(const struct option_reader *r, enum option_section s, const char *where,
                        const struct node *map, void *base, struct config_mark *set_at)
{
    if (node_is_empty(map))
        return 0;
    if (map->type != NODE_MAP)
        return node_error(r->e, r->path, map->at, "%s: this is %s where a mapping of options is needed",
                          where, node_type_name(map->type));
    for (size_t i = 0; i < map->n_children; i++) {
        const struct node *n = &map->child[i];
        const struct option *o = option_find(s, slice_make(n->key->text, n->key->len));
        if (!o)
            return unknown_option(r, s, where, n->key);
        if (o->planned)
            return node_error(r->e, r->path, n->key->at,
                              "%s.%s is planned for a later version of tgspool; remove it for this one",
                              where, o->name);
        if (node_is_empty(n))
            continue; /* `name:` alone leaves the default */
        if (option_set(r, o, n, base) < 0)
            return -1;
        set_at[row_index(o)] = n->at;
    }
    return 0;
}

/* Fills what the file does not set, by the very same parser. */
static void set_defaults(enum option_section s, void *base, const struct bot_config *bot,
                         const struct config_mark *set_at)
{
    struct config ignored = {0};
    struct err e = ERR_NONE;
    struct option_reader r = {"default", &e, &ignored};

    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        if (o->section != s || o->planned || set_at[i].line || !option_default(o, bot))
            continue;
        struct node *n = node_read(r.path, slice_str(option_default(o, bot)), &e);
        if (!n || option_set(&r, o, n, base) < 0) {
            fprintf(stderr, "the default of %s is wrong: %s\n", o->name, e.text);
            abort();
        }
        node_free(n);
    }
    for (size_t i = 0; i < ignored.n_warnings; i++)
        free(ignored.warnings[i]);
    free(ignored.warnings);
}

static void clear_section(enum option_section s, void *base)
{
    for (size_t i = 0; option_at(i); i++)
        if (option_at(i)->section == s && !option_at(i)->planned)
            option_clear(option_at(i), base);
}

/* ---- bots --------------------------------------------------------------------------------------- */

static struct config_mark set_at_name(const struct bot_config *b, const char *name)
{
    return b->set_at[row_index(option_find(SECTION_BOTS, slice_str(name)))];
}

/* Exactly one place to take the token from. */
static int check_token(const struct option_reader *r, const struct bot_config *b, const struct node *key)
{
    static const char *const names[] = {"token_file", "token_credential", "token_env"};
    const char *first = NULL;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct config_mark at = set_at_name(b, names[i]);
        if (!at.line)
            continue;
        if (first)
            return node_error(r->e, r->path, at, "bots.%s has both %s and %s; keep one of them", b->name,
                              first, names[i]);
        first = names[i];
    }
    if (first)
        return 0;
    return node_error(r->e, r->path, key->at,
                      "bots.%s has no token; add token_file: /PATH (or token_credential or token_env)",
                      b->name);
}

/* Options set for a way of delivery or intake that is not this bot's, and what this one's lacks. */
static int check_applies(const struct option_reader *r, const struct bot_config *b, const struct node *key)
{
    struct buf when = BUF_EMPTY;

    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        if (!b->set_at[i].line || option_applies(o, b))
            continue;
        option_add_applies(&when, o);
        node_error(r->e, r->path, b->set_at[i],
                   "bots.%s: %s does not apply here, only with %s; remove one of them", b->name, o->name,
                   buf_str(&when));
        buf_free(&when);
        return -1;
    }
    struct config_mark deliver = set_at_name(b, "deliver");
    if (!deliver.line)
        deliver = key->at;
    if ((b->deliver == DELIVER_EXEC || b->deliver == DELIVER_WORKER) && !b->command)
        return node_error(r->e, r->path, deliver,
                          "bots.%s has no handler; add command: PROGRAM ARGUMENTS, or another deliver",
                          b->name);
    if (b->deliver == DELIVER_HTTP && !b->url)
        return node_error(r->e, r->path, deliver, "bots.%s delivers by http; add url: http://HOST:PORT/PATH",
                          b->name);
    return 0;
}

static int read_bot(const struct option_reader *r, const struct node *n)
{
    struct config *c = r->config;
    const struct node *key = n->key;
    char where[BOT_NAME_MAX + 8];

    if (!text_is_bot_name(slice_make(key->text, key->len)))
        return node_error(r->e, r->path, key->at,
                          "\"%.64s\" is not a bot's name; accepted: 1 to %d of A-Z a-z 0-9 _ -", key->text,
                          BOT_NAME_MAX);
    if (option_find(SECTION_BOTS, slice_make(key->text, key->len)) && n->type == NODE_TEXT)
        return node_error(r->e, r->path, key->at,
                          "%s is an option of a bot; under bots comes the bot's name first, then its options",
                          key->text);
    if (c->n_bots == BOTS_MAX)
        return node_error(r->e, r->path, key->at, "more than %d bots", BOTS_MAX);
    struct bot_config *b = &c->bots[c->n_bots++];
    snprintf(b->name, sizeof(b->name), "%s", key->text);
    b->line = key->at.line;
    b->column = key->at.column;
    b->set_at = xcalloc(row_count(), sizeof(*b->set_at));
    snprintf(where, sizeof(where), "bots.%s", b->name);
    if (read_entries(r, SECTION_BOTS, where, n, b, b->set_at) < 0)
        return -1;
    /* what other defaults depend on comes first in the table: deliver before concurrency */
    set_defaults(SECTION_BOTS, b, b, b->set_at);
    return check_token(r, b, key) < 0 || check_applies(r, b, key) < 0 ? -1 : 0;
}

static int read_bots(const struct option_reader *r, const struct node *map)
{
    if (map->type == NODE_LIST || (map->type == NODE_TEXT && !node_is_empty(map)))
        return node_error(r->e, r->path, map->at, "bots: this is %s where a mapping of names is needed",
                          node_type_name(map->type));
    r->config->bots = xcalloc(map->n_children, sizeof(*r->config->bots));
    for (size_t i = 0; i < map->n_children; i++)
        if (read_bot(r, &map->child[i]) < 0)
            return -1;
    return 0;
}

/* More handlers than may run at once: the bots will wait for each other. */
static void warn_children(const struct option_reader *r)
{
    const struct config *c = r->config;
    struct config_mark at = c->set_at[row_index(option_find(SECTION_SPOOL, slice_str("max_children")))];
    unsigned sum = 0;

    for (size_t i = 0; i < c->n_bots; i++)
        if (c->bots[i].deliver == DELIVER_EXEC || c->bots[i].deliver == DELIVER_WORKER)
            sum += c->bots[i].concurrency;
    if (!at.line) /* the default: the bots are what is new */
        at = (struct config_mark){c->bots[0].line, c->bots[0].column};
    if (sum > c->max_children)
        option_warn(r, at,
                    "spool.max_children is %u, but concurrency allows %u handlers at once, so bots will wait "
                    "for each other; raise it, or lower concurrency",
                    c->max_children, sum);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static int read_sections(const struct option_reader *r, const struct node *root)
{
    struct config *c = r->config;
    const struct node *bots = NULL;
    char known[80];

    if (root->type != NODE_MAP && !node_is_empty(root))
        return node_error(r->e, r->path, root->at, "this is %s where the config's sections are needed: %s",
                          node_type_name(root->type), known_sections(known));
    for (size_t i = 0; i < root->n_children; i++) {
        const struct node *n = &root->child[i];
        size_t s = 0;
        while (s < SECTIONS && !slice_eq_str(slice_make(n->key->text, n->key->len), option_section_name(s)))
            s++;
        if (s == SECTIONS)
            return unknown_section(r, n->key);
        if (option_section_is_planned(s))
            return node_error(
                r->e, r->path, n->key->at,
                "the section %s is planned for a later version of tgspool; remove it for this one",
                n->key->text);
        if (s == SECTION_BOTS)
            bots = n;
        if ((s == SECTION_BOTS ? read_bots(r, n) : read_entries(r, s, n->key->text, n, c, c->set_at)) < 0)
            return -1;
    }
    for (enum option_section s = 0; s < SECTION_BOTS; s++)
        set_defaults(s, c, NULL, c->set_at);
    if (c->n_bots == 0)
        return node_error(r->e, r->path, bots ? bots->key->at : root->at,
                          "no bot is configured; add bots: with a name and its options under it");
    warn_children(r);
    return option_check_listeners(r) < 0 || option_check_alerts(r) < 0 ? -1 : 0;
}

struct config *config_parse(const char *path, struct slice text, struct err *e)
{
    struct node *root = node_read(path, text, e);
    if (!root)
        return NULL;
    struct config *c = xcalloc(1, sizeof(*c));
    struct option_reader r = {path, e, c};
    c->path = xstrdup(path);
    c->set_at = xcalloc(row_count(), sizeof(*c->set_at));
    int rc = read_sections(&r, root);
    node_free(root);
    if (rc < 0) {
        config_free(c);
        return NULL;
    }
    return c;
}

void config_free(struct config *c)
{
    if (!c)
        return;
    for (enum option_section s = 0; s < SECTION_BOTS; s++)
        clear_section(s, c);
    for (size_t i = 0; i < c->n_bots; i++) {
        clear_section(SECTION_BOTS, &c->bots[i]);
        free(c->bots[i].set_at);
    }
    for (size_t i = 0; i < c->n_warnings; i++)
        free(c->warnings[i]);
    free(c->warnings);
    free(c->bots);
    free(c->set_at);
    free(c->path);
    free(c);
}

const struct bot_config *config_bot(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_bots; i++)
        if (strcmp(c->bots[i].name, name) == 0)
            return &c->bots[i];
    return NULL;
}

struct config_mark option_set_at(const struct option *o, const struct config *c, const struct bot_config *bot)
{
    return (bot ? bot->set_at : c->set_at)[row_index(o)];
}

int option_err_prefix(struct err *e, const struct config *c, const struct bot_config *bot, const char *name)
{
    enum option_section section = bot ? SECTION_BOTS : SECTION_SPOOL;

    while (!option_find(section,
                        slice_str(name))) /* no two sections beside the bots' have one of the same name */
        section++;
    const struct option *o = option_find(section, slice_str(name));
    struct config_mark at = option_set_at(o, c, bot);

    if (!at.line && bot)
        at = (struct config_mark){bot->line, bot->column};
    return err_prefix(e, "%s:%u:%u: %s%s.%s", c->path, at.line, at.column,
                      bot ? "bots." : option_section_name(section), bot ? bot->name : "", name);
}
