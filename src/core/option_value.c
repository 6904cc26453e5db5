/* From the text of a value to the field of the config: one setter for each type, chosen by a table. */
#include "core/option_value.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/kinds.h"
#include "core/option_command.h"

#define FIELD(type, base, o) ((type *)(void *)((char *)(base) + (o)->offset))
#define SHOWN_MAX 64 /* bytes of a wrong value that a message repeats */

_Static_assert(sizeof(enum sync_mode) == sizeof(unsigned), "enums are set as unsigned numbers");

/* "value: not NOUN; ACCEPTED is needed" at the node. A value that may be a secret is not repeated. */
static int wrong_value(const struct option_reader *r, const struct option *o, const struct node *n,
                       const char *what)
{
    struct buf accepts = BUF_EMPTY, shown = BUF_EMPTY;

    option_add_accepts(&accepts, o);
    if (!o->secret && n->type == NODE_TEXT) {
        buf_add_str(&shown, " \"");
        text_add_clean(&shown, slice_make(n->text, n->len), SHOWN_MAX, false);
        buf_add_str(&shown, n->len > SHOWN_MAX ? "...\"" : "\"");
    }
    node_error(r->e, r->path, n->at, "%s:%s %s; accepted: %s", o->name, buf_str(&shown), what,
               buf_str(&accepts));
    buf_free(&accepts);
    buf_free(&shown);
    return -1;
}

static int need_type(const struct option_reader *r, const struct option *o, const struct node *n,
                     enum node_type type)
{
    struct buf accepts = BUF_EMPTY;

    if (n->type == type)
        return 0;
    option_add_accepts(&accepts, o);
    node_error(r->e, r->path, n->at, "%s: this is %s where %s is needed; accepted: %s", o->name,
               node_type_name(n->type), node_type_name(type), buf_str(&accepts));
    buf_free(&accepts);
    return -1;
}

static struct slice text_of(const struct node *n)
{
    return slice_make(n->text, n->len);
}

void option_warn(const struct option_reader *r, struct config_mark at, const char *fmt, ...)
{
    struct config *c = r->config;
    struct buf b = BUF_EMPTY;
    va_list ap;

    buf_printf(&b, "%s:%u:%u: ", r->path, at.line, at.column);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    c->warnings = xrealloc(c->warnings, (c->n_warnings + 1) * sizeof(*c->warnings));
    c->warnings[c->n_warnings++] = buf_steal(&b);
}

const char *option_closest(const char *name, const char *best, const char *candidate)
{
    unsigned limit = strlen(name) < 6 ? 1 : 2, d = text_distance(slice_str(name), slice_str(candidate));

    if (d > limit || (best && text_distance(slice_str(name), slice_str(best)) <= d))
        return best;
    return candidate;
}

/* ---- setters: each reads node n into the field of o --------------------------------------------- */

static void replace_text(void *base, const struct option *o, struct slice s)
{
    char **field = FIELD(char *, base, o);
    free(*field);
    *field = xstrndup(s.p, s.n);
}

static int set_text(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    for (size_t i = 0; i < n->len; i++)
        if (iscntrl((unsigned char)n->text[i]))
            return wrong_value(r, o, n, "holds a control character");
    if ((int64_t)n->len < o->min)
        return wrong_value(r, o, n, "is empty");
    if ((int64_t)n->len > o->max)
        return wrong_value(r, o, n, "is too long");
    replace_text(base, o, text_of(n));
    return 0;
}

static int set_path(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    if (n->len && n->text[0] != '/')
        return wrong_value(
            r, o, n, "is a relative path, which would depend on where tgspool is started; start it with /");
    return set_text(r, o, n, base);
}

static int set_name(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    for (size_t i = 0; i < n->len; i++)
        if (!isalnum((unsigned char)n->text[i]) && !memchr("._-", n->text[i], 3))
            return wrong_value(r, o, n, "the value is not a name");
    if (n->len && n->text[0] == '.')
        return wrong_value(r, o, n, "a name cannot start with a dot");
    return set_text(r, o, n, base);
}

struct slice option_url_host(const char *url, int64_t *port)
{
    bool https = strncmp(url, "https", 5) == 0;
    const char *start = strstr(url, "://") + 3;
    struct slice host = slice_make(start, strcspn(start, "/?"));
    const char *colon = host.n ? memrchr(host.p, ':', host.n) : NULL;

    *port = https ? 443 : 80;
    if (colon && host.p[host.n - 1] != ']') {
        struct slice digits = slice_make(colon + 1, host.n - 1 - (size_t)(colon - host.p));
        if (text_to_i64(digits, 1, 65535, port) < 0)
            *port = 0;
        host.n = (size_t)(colon - host.p);
    }
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = slice_make(host.p + 1, host.n - 2);
    return host;
}

bool option_host_is_loopback(struct slice host)
{
    struct ip_addr a;
    return slice_eq_nocase(host, "localhost") || (ip_parse(host, &a) && ip_is_loopback(&a));
}

static int set_url(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    struct slice s = text_of(n);
    int64_t port;
    size_t scheme = s.n > 7 && memcmp(s.p, "http://", 7) == 0    ? 7
                    : s.n > 8 && memcmp(s.p, "https://", 8) == 0 ? 8
                                                                 : 0;
    if (!scheme)
        return wrong_value(r, o, n, "is not a URL of http or https");
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7F || strchr("\"<>\\^`{|}#", s.p[i]))
            return wrong_value(r, o, n, "holds a character that a URL here cannot have");
    struct slice authority = slice_make(s.p + scheme, strcspn(s.p + scheme, "/?"));
    if (memchr(authority.p, '@', authority.n)) /* a password: the value is not shown */
        return node_error(r->e, r->path, n->at, "%s: a user name or password never stands in this file",
                          o->name);
    struct slice host = option_url_host(n->text, &port);
    if (host.n == 0)
        return wrong_value(r, o, n, "names no host");
    if (port == 0)
        return wrong_value(r, o, n, "has no port from 1 to 65535 behind its host");
    if (scheme == 7 && !option_host_is_loopback(host))
        option_warn(
            r, n->at,
            "%s goes to another machine by plain http: whoever is on the way can read and change it%s",
            o->name, strcmp(o->name, "api_root") ? "" : ", the bot's token included; use https");
    return set_text(r, o, n, base);
}

static int set_word(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    const char *near = NULL;
    char hint[96] = "is not known here";

    for (unsigned i = 0; o->words[i]; i++) {
        if (slice_eq_str(text_of(n), o->words[i])) {
            *FIELD(unsigned, base, o) = i;
            return 0;
        }
        near = option_closest(n->text, near, o->words[i]);
    }
    for (const char *const *w = o->planned_words; w && *w; w++)
        if (slice_eq_str(text_of(n), *w))
            return wrong_value(r, o, n, "is planned for a later version");
    if (near)
        snprintf(hint, sizeof(hint), "is not known here, did you mean %s?", near);
    return wrong_value(r, o, n, hint);
}

/* A time of one scalar, in the row's range. */
static int read_time(const struct option_reader *r, const struct option *o, const struct node *n, int64_t *ms)
{
    if (need_type(r, o, n, NODE_TEXT) < 0)
        return -1;
    if (text_to_ms(text_of(n), ms) < 0)
        return wrong_value(r, o, n, "is not a time (a number of seconds, or a number with ms, s, m, h or d)");
    if (*ms < o->min || *ms > o->max)
        return wrong_value(r, o, n, "is out of range");
    if (o->step && *ms % o->step)
        return wrong_value(r, o, n, "is not in whole seconds");
    return 0;
}

static int set_time(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    return read_time(r, o, n, FIELD(int64_t, base, o));
}

static int set_sync(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    struct config *c = base;

    c->sync_ms = 0;
    if (slice_eq_str(text_of(n), "always")) {
        c->sync = SYNC_ALWAYS;
    } else if (slice_eq_str(text_of(n), "off")) {
        c->sync = SYNC_OFF;
        option_warn(r, n->at, "sync: off: a power cut may lose updates that Telegram was told had arrived");
    } else {
        c->sync = SYNC_INTERVAL;
        return read_time(r, o, n, &c->sync_ms);
    }
    return 0;
}

static int set_size(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    int64_t v;

    if (text_to_size(text_of(n), &v) < 0)
        return wrong_value(r, o, n, "is not a size (a number of bytes, or a number with K, M or G)");
    if (v < o->min || v > o->max)
        return wrong_value(r, o, n, "is out of range");
    *FIELD(int64_t, base, o) = v;
    return 0;
}

static int set_reserve(const struct option_reader *r, const struct option *o, const struct node *n,
                       void *base)
{
    int64_t *bytes = FIELD(int64_t, base, o);

    if (!slice_eq_str(text_of(n), "auto") && !slice_eq_str(text_of(n), "off"))
        return set_size(r, o, n, base);
    *bytes = slice_eq_str(text_of(n), "auto") ? RESERVE_AUTO : 0;
    return 0;
}

static int set_number(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    int64_t v;

    if (text_to_i64(text_of(n), INT64_MIN, INT64_MAX, &v) < 0)
        return wrong_value(r, o, n, "is not a whole number");
    if (v < o->min || v > o->max)
        return wrong_value(r, o, n, "is out of range");
    *FIELD(unsigned, base, o) = (unsigned)v;
    return 0;
}

static int set_mode(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    unsigned mode = 0;

    if (n->len < 3 || n->len > 4)
        return wrong_value(r, o, n, "is not three or four octal digits");
    for (size_t i = 0; i < n->len; i++) {
        if (n->text[i] < '0' || n->text[i] > '7')
            return wrong_value(r, o, n, "is not three or four octal digits");
        mode = mode * 8 + (unsigned)(n->text[i] - '0');
    }
    if (mode > o->max)
        return wrong_value(r, o, n, "is out of range");
    if (mode & 07)
        option_warn(r, n->at, "%s lets every user of this machine read, replay and discard events", o->name);
    *FIELD(unsigned, base, o) = mode;
    return 0;
}

static int set_bool(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    bool yes = slice_eq_str(text_of(n), "true");

    if (!yes && !slice_eq_str(text_of(n), "false"))
        return wrong_value(r, o, n, "is neither");
    *FIELD(bool, base, o) = yes;
    return 0;
}

static int set_port(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    struct ip_port port;
    const char *why = ip_port_parse(text_of(n), &port);

    if (why || port.port == 0)
        return wrong_value(r, o, n, why ? why : "has port 0; a listener needs a port that others know");
    return set_text(r, o, n, base);
}

/* A network, or a list of them. */
static int set_nets(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    struct ip_nets *nets = FIELD(struct ip_nets, base, o);
    bool list = n->type == NODE_LIST;
    size_t many = list ? n->n_children : 1;

    nets->n = 0;
    if (many == 0 || (int64_t)many > o->max)
        return wrong_value(r, o, n, many ? "the list is too long" : "the list is empty");
    for (size_t i = 0; i < many; i++) {
        const struct node *item = list ? &n->child[i] : n;
        if (need_type(r, o, item, NODE_TEXT) < 0)
            return -1;
        if (!ip_net_parse(text_of(item), &nets->net[nets->n++]))
            return wrong_value(r, o, item, "is not an address or a network");
    }
    return 0;
}

static void clear_hosts(const struct option *o, void *base)
{
    command_free(*FIELD(char **, base, o));
    *FIELD(char **, base, o) = NULL;
}

static bool is_host_name(struct slice s)
{
    if (s.n == 0 || s.n > 253)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '.' && s.p[i] != '_')
            return false;
    return true;
}

/* A name, or a list of them. */
static int set_hosts(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    bool list = n->type == NODE_LIST;
    size_t many = list ? n->n_children : 1;

    clear_hosts(o, base);
    if (many == 0 || (int64_t)many > o->max)
        return wrong_value(r, o, n, many ? "the list is too long" : "the list is empty");
    char **hosts = xcalloc(many + 1, sizeof(char *));
    *FIELD(char **, base, o) = hosts;
    for (size_t i = 0; i < many; i++) {
        const struct node *item = list ? &n->child[i] : n;
        if (need_type(r, o, item, NODE_TEXT) < 0)
            return -1;
        if (!is_host_name(text_of(item)))
            return wrong_value(r, o, item, "is not a host name");
        hosts[i] = xstrdup(item->text);
    }
    return 0;
}

static int set_command(const struct option_reader *r, const struct option *o, const struct node *n,
                       void *base)
{
    struct config_mark at = n->at;
    const char *why = NULL;
    size_t offset = 0;

    if (memchr(n->text, '\0', n->len))
        return wrong_value(r, o, n, "holds a zero byte");
    if ((int64_t)n->len > o->max)
        return wrong_value(r, o, n, "is too long");
    char **argv = command_split(n->text, &why, &offset);
    if (!argv) {
        if (n->verbatim)
            for (size_t i = 0; i < offset; i++)
                at.column += ((unsigned char)n->text[i] & 0xC0) != 0x80;
        return node_error(r->e, r->path, at,
                          "%s: %s; accepted: a program and its arguments, quoted as in a shell", o->name,
                          why);
    }
    command_free(*FIELD(char **, base, o));
    *FIELD(char **, base, o) = argv;
    return 0;
}

static int set_times(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    struct retry_schedule *s = FIELD(struct retry_schedule, base, o);

    if (n->n_children < 1 || n->n_children > RETRY_STEPS_MAX)
        return wrong_value(r, o, n, n->n_children ? "the list is too long" : "the list is empty");
    for (size_t i = 0; i < n->n_children; i++)
        if (read_time(r, o, &n->child[i], &s->step_ms[i]) < 0)
            return -1;
    s->n = n->n_children;
    return 0;
}

/* Whether a kind's name can be one; one that Telegram added after this version is let through with a warning.
 */
static int check_kind(const struct option_reader *r, const struct option *o, const struct node *n)
{
    const char *near = NULL;

    if (need_type(r, o, n, NODE_TEXT) < 0)
        return -1;
    if (n->len == 0 || n->len >= sizeof(((struct expire_rule *)NULL)->kind) ||
        strspn(n->text, "abcdefghijklmnopqrstuvwxyz_0123456789") != n->len)
        return wrong_value(r, o, n, "is not a kind of update");
    if (kind_find(text_of(n)))
        return 0;
    for (size_t i = 0; kind_at(i); i++)
        near = option_closest(n->text, near, kind_at(i)->name);
    option_warn(r, n->at, "%s: %s is no kind of update that this version knows%s%s%s", o->name, n->text,
                near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return 0;
}

static void add_kind(struct bot_config *b, const char *kind)
{
    for (size_t i = 0; i < b->n_allowed_updates; i++)
        if (strcmp(b->allowed_updates[i], kind) == 0)
            return;
    b->allowed_updates = xrealloc(b->allowed_updates, (b->n_allowed_updates + 2) * sizeof(char *));
    b->allowed_updates[b->n_allowed_updates++] = xstrdup(kind);
    b->allowed_updates[b->n_allowed_updates] = NULL;
}

static void clear_kinds(const struct option *o, void *base)
{
    struct bot_config *b = base;

    (void)o;
    command_free(b->allowed_updates);
    b->allowed_updates = NULL;
    b->n_allowed_updates = 0;
}

static int set_kinds(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    clear_kinds(o, base);
    if (n->n_children == 0 || (int64_t)n->n_children > o->max)
        return wrong_value(r, o, n, n->n_children ? "the list is too long" : "the list is empty");
    for (size_t i = 0; i < n->n_children; i++) {
        const struct node *item = &n->child[i];
        bool is_text = item->type == NODE_TEXT;
        bool all = is_text && slice_eq_str(text_of(item), "all");
        bool def = is_text && slice_eq_str(text_of(item), "default");
        if (all && n->n_children > 1)
            return wrong_value(r, o, item, "holds every kind already; it stands alone");
        if (!all && !def && check_kind(r, o, item) < 0)
            return -1;
        if (!all && !def)
            add_kind(base, item->text);
        for (size_t k = 0; (all || def) && kind_at(k); k++)
            if (all || kind_at(k)->on_by_default)
                add_kind(base, kind_at(k)->name);
    }
    return 0;
}

static int set_expire(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    struct bot_config *b = base;

    b->n_expire_rules = 0;
    if (n->type == NODE_TEXT) {
        b->expire = slice_eq_str(text_of(n), "off") ? EXPIRE_OFF : EXPIRE_AUTO;
        if (b->expire == EXPIRE_AUTO && !slice_eq_str(text_of(n), "auto"))
            return wrong_value(r, o, n, "is neither");
        return 0;
    }
    if (need_type(r, o, n, NODE_MAP) < 0)
        return -1;
    if (n->n_children == 0 || n->n_children > EXPIRE_KINDS_MAX)
        return wrong_value(r, o, n, n->n_children ? "the mapping is too long" : "the mapping is empty");
    b->expire = EXPIRE_KINDS;
    for (size_t i = 0; i < n->n_children; i++) {
        struct expire_rule *rule = &b->expire_rules[b->n_expire_rules++];
        if (check_kind(r, o, n->child[i].key) < 0 || read_time(r, o, &n->child[i], &rule->ms) < 0)
            return -1;
        snprintf(rule->kind, sizeof(rule->kind), "%s", n->child[i].key->text);
    }
    return 0;
}

static void clear_text(const struct option *o, void *base)
{
    free(*FIELD(char *, base, o));
    *FIELD(char *, base, o) = NULL;
}

static void clear_nets(const struct option *o, void *base)
{
    FIELD(struct ip_nets, base, o)->n = 0;
}

static void clear_command(const struct option *o, void *base)
{
    command_free(*FIELD(char **, base, o));
    *FIELD(char **, base, o) = NULL;
}

struct type_row {
    int (*set)(const struct option_reader *r, const struct option *o, const struct node *n, void *base);
    void (*clear)(const struct option *o, void *base);
    enum node_type node; /* what the file must hold */
    enum node_type or ;  /* or this; the same if nothing else */
};

static const struct type_row types[] = {
    [OPTION_PATH] = {set_path, clear_text, NODE_TEXT, NODE_TEXT},
    [OPTION_TEXT] = {set_text, clear_text, NODE_TEXT, NODE_TEXT},
    [OPTION_NAME] = {set_name, clear_text, NODE_TEXT, NODE_TEXT},
    [OPTION_URL] = {set_url, clear_text, NODE_TEXT, NODE_TEXT},
    [OPTION_WORD] = {set_word, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_SYNC] = {set_sync, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_TIME] = {set_time, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_SIZE] = {set_size, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_RESERVE] = {set_reserve, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_NUMBER] = {set_number, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_MODE] = {set_mode, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_BOOL] = {set_bool, NULL, NODE_TEXT, NODE_TEXT},
    [OPTION_PORT] = {set_port, clear_text, NODE_TEXT, NODE_TEXT},
    [OPTION_NETS] = {set_nets, clear_nets, NODE_TEXT, NODE_LIST},
    [OPTION_HOSTS] = {set_hosts, clear_hosts, NODE_TEXT, NODE_LIST},
    [OPTION_COMMAND] = {set_command, clear_command, NODE_TEXT, NODE_TEXT},
    [OPTION_TIMES] = {set_times, NULL, NODE_LIST, NODE_LIST},
    [OPTION_KINDS] = {set_kinds, clear_kinds, NODE_LIST, NODE_LIST},
    [OPTION_EXPIRE] = {set_expire, NULL, NODE_TEXT, NODE_MAP},
};

int option_set(const struct option_reader *r, const struct option *o, const struct node *n, void *base)
{
    const struct type_row *t = &types[o->type];

    if (n->type != t->or &&need_type(r, o, n, t->node) < 0)
        return -1;
    return t->set(r, o, n, base);
}

void option_clear(const struct option *o, void *base)
{
    if (types[o->type].clear)
        types[o->type].clear(o, base);
}
