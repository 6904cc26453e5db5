/* Reads YAML by libyaml's events into nodes. libyaml does the syntax; here is only what we refuse of it, and
 * where everything stands. Depth and entries are bounded, so that a hostile file costs no more than its own
 * size. */
#include "core/option_yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/text.h"

struct reader {
    yaml_parser_t yaml;
    const char *path;
    struct slice text;
    struct err *e;
};

static int read_node(struct reader *r, yaml_event_t *ev, struct node *out, int depth);

int node_error(struct err *e, const char *path, struct config_mark at, const char *fmt, ...)
{
    struct buf raw = BUF_EMPTY, clean = BUF_EMPTY;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&raw, fmt, ap);
    va_end(ap);
    text_scrub_tokens(&raw);
    text_add_clean(&clean, buf_slice(&raw), 900, false);
    if (at.line)
        err_set(e, EX_CONFIG, "%s:%u:%u: %s", path, at.line, at.column, buf_str(&clean));
    else
        err_set(e, EX_CONFIG, "%s: %s", path, buf_str(&clean));
    buf_free(&raw);
    buf_free(&clean);
    return -1;
}

static struct config_mark mark_of(const yaml_mark_t *m)
{
    return (struct config_mark){(unsigned)m->line + 1, (unsigned)m->column + 1};
}

/* Where a byte of the text stands, for what libyaml reports by offset only. */
static struct config_mark mark_of_offset(struct slice text, size_t offset)
{
    struct config_mark m = {1, 1};

    for (size_t i = 0; i < offset && i < text.n; i++) {
        if (text.p[i] == '\n')
            m = (struct config_mark){m.line + 1, 1};
        else if (((unsigned char)text.p[i] & 0xC0) != 0x80)
            m.column++;
    }
    return m;
}

/* What libyaml found wrong, in words for people. */
static int syntax_error(struct reader *r)
{
    const yaml_parser_t *y = &r->yaml;

    if (y->error == YAML_MEMORY_ERROR)
        return err_set(r->e, EX_OSERR, "%s: out of memory", r->path);
    if (y->error == YAML_READER_ERROR)
        return node_error(r->e, r->path, mark_of_offset(r->text, y->problem_offset),
                          "this is not a text file (%s); a YAML file in UTF-8 is needed", y->problem);
    size_t at = y->problem_mark.index;
    const char *hint = at < r->text.n && r->text.p[at] == '\t' ? "; indent with blanks, not with tabs" : "";
    return node_error(r->e, r->path, mark_of(&y->problem_mark), "not valid YAML: %s%s%s%s", y->problem,
                      y->context ? ", " : "", y->context ? y->context : "", hint);
}

static int next_event(struct reader *r, yaml_event_t *ev)
{
    return yaml_parser_parse(&r->yaml, ev) ? 0 : syntax_error(r);
}

/* Refuses what would make a value mean something else than it says. */
static int check_plain_yaml(struct reader *r, const yaml_event_t *ev)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    switch (ev->type) {
    case YAML_ALIAS_EVENT:
        return node_error(r->e, r->path, mark_of(&ev->start_mark),
                          "aliases (*name) are not accepted here; write the value out");
    case YAML_SCALAR_EVENT:
        anchor = ev->data.scalar.anchor;
        tag = ev->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = ev->data.sequence_start.anchor;
        tag = ev->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = ev->data.mapping_start.anchor;
        tag = ev->data.mapping_start.tag;
        break;
    default:
        break;
    }
    if (anchor || tag)
        return node_error(r->e, r->path, mark_of(&ev->start_mark),
                          "%s are not accepted here; write the plain value",
                          anchor ? "anchors (&name)" : "tags (!name)");
    return 0;
}

static void node_clear(struct node *n)
{
    for (size_t i = 0; i < n->n_children; i++)
        node_clear(&n->child[i]);
    free(n->child);
    free(n->text);
    if (n->key)
        node_clear(n->key);
    free(n->key);
}

static void read_scalar(const yaml_event_t *ev, struct node *out)
{
    out->type = NODE_TEXT;
    out->len = ev->data.scalar.length;
    out->text = xmemdup(ev->data.scalar.value, out->len + 1); /* libyaml ends it with a zero */
    out->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    out->verbatim = out->plain && ev->start_mark.line == ev->end_mark.line;
}

/* Makes room for one more entry. Returns it zeroed, or NULL and the error. */
static struct node *add_child(struct reader *r, struct node *parent, const yaml_event_t *ev)
{
    if (parent->n_children == NODE_ENTRIES_MAX) {
        node_error(r->e, r->path, mark_of(&ev->start_mark), "more than %d entries here", NODE_ENTRIES_MAX);
        return NULL;
    }
    parent->child = xrealloc(parent->child, (parent->n_children + 1) * sizeof(*parent->child));
    struct node *n = &parent->child[parent->n_children++];
    *n = (struct node){.at = mark_of(&ev->start_mark)};
    return n;
}

/* The name of a mapping's new entry: text, and not there already. */
static int read_key(struct reader *r, const yaml_event_t *ev, const struct node *parent, struct node *child)
{
    child->key = xcalloc(1, sizeof(*child->key));
    child->key->at = mark_of(&ev->start_mark);
    if (check_plain_yaml(r, ev) < 0)
        return -1;
    if (ev->type != YAML_SCALAR_EVENT)
        return node_error(r->e, r->path, child->key->at, "a name is needed here, followed by a colon");
    read_scalar(ev, child->key);
    for (const struct node *c = parent->child; c != child; c++)
        if (c->key->len == child->key->len && memcmp(c->key->text, child->key->text, c->key->len) == 0)
            return node_error(r->e, r->path, child->key->at,
                              "%.64s is named twice, first in line %u; keep one of them", child->key->text,
                              c->key->at.line);
    return 0;
}

/* Entries up to the end event of a list or mapping. */
static int read_children(struct reader *r, struct node *parent, yaml_event_type_t end, int depth)
{
    yaml_event_t ev;

    for (;;) {
        if (next_event(r, &ev) < 0)
            return -1;
        if (ev.type == end) {
            yaml_event_delete(&ev);
            return 0;
        }
        struct node *child = add_child(r, parent, &ev);
        int rc = child ? 0 : -1;
        if (rc == 0 && parent->type == NODE_MAP) {
            rc = read_key(r, &ev, parent, child);
            yaml_event_delete(&ev);
            if (rc < 0 || next_event(r, &ev) < 0)
                return -1;
        }
        if (rc == 0)
            rc = read_node(r, &ev, child, depth + 1);
        yaml_event_delete(&ev);
        if (rc < 0)
            return -1;
    }
}

static int read_node(struct reader *r, yaml_event_t *ev, struct node *out, int depth)
{
    out->at = mark_of(&ev->start_mark);
    if (check_plain_yaml(r, ev) < 0)
        return -1;
    if (ev->type == YAML_SCALAR_EVENT) {
        read_scalar(ev, out);
        return 0;
    }
    if (depth == NODE_DEPTH_MAX)
        return node_error(r->e, r->path, out->at, "nested deeper than any option is (%d levels)",
                          NODE_DEPTH_MAX);
    out->type = ev->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST;
    return read_children(r, out, out->type == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT,
                         depth);
}

/* The one document of the stream. */
static int read_document(struct reader *r, struct node *root)
{
    yaml_event_t ev;
    int rc = 0;

    for (bool seen = false, end = false; rc == 0 && !end;) {
        if (next_event(r, &ev) < 0)
            return -1;
        switch (ev.type) {
        case YAML_STREAM_END_EVENT:
            end = true;
            break;
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (seen)
                rc = node_error(r->e, r->path, mark_of(&ev.start_mark),
                                "a second document starts here; a config file holds one");
            else if (ev.data.document_start.version_directive ||
                     ev.data.document_start.tag_directives.start != ev.data.document_start.tag_directives.end)
                rc = node_error(r->e, r->path, mark_of(&ev.start_mark),
                                "directives (lines starting with %%) are not accepted here; remove them");
            seen = true;
            break;
        default:
            rc = read_node(r, &ev, root, 0);
        }
        yaml_event_delete(&ev);
    }
    return rc;
}

struct node *node_read(const char *path, struct slice text, struct err *e)
{
    struct reader r = {.path = path, .text = text, .e = e};
    struct node *root = xcalloc(1, sizeof(*root));

    root->at = (struct config_mark){1, 1};
    if (!yaml_parser_initialize(&r.yaml)) {
        err_set(e, EX_OSERR, "out of memory");
        free(root);
        return NULL;
    }
    yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)(text.p ? text.p : ""), text.n);
    int rc = read_document(&r, root);
    yaml_parser_delete(&r.yaml);
    if (rc < 0) {
        node_free(root);
        return NULL;
    }
    return root;
}

void node_free(struct node *root)
{
    if (root)
        node_clear(root);
    free(root);
}

bool node_is_empty(const struct node *n)
{
    return n->type == NODE_TEXT && n->len == 0 && (n->plain || !n->text);
}

const char *node_type_name(enum node_type t)
{
    static const char *const names[] = {"a single value", "a list", "a mapping"};
    return names[t];
}

/* Whether text means itself as a plain scalar, in a flow list too. */
static bool is_plain_safe(const char *text)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=@%-: ";
    size_t n = strlen(text);

    if (text[0] == '0' && text[1] >= '0' && text[1] <= '9') /* to other readers of YAML an octal number */
        return false;
    return n > 0 && strspn(text, safe) == n && !strchr("-:%@= ", text[0]) && !strchr(": ", text[n - 1]) &&
           !strstr(text, ": ");
}

/* Of the characters beyond ASCII those that libyaml does not read as themselves: controls, line ends, a byte order mark and
 * what is no character. Returns the character's length and its number, or 0. */
static size_t odd_character(const char *text, unsigned *number)
{
    const unsigned char *p = (const unsigned char *)text;

    if (p[0] == 0xC2 && p[1] <= 0xA0 && p[1] >= 0x80) {
        *number = p[1];
        return 2;
    }
    if ((p[0] != 0xE2 && p[0] != 0xEF) || !p[1] || !p[2])
        return 0;
    *number = (p[0] & 0xFu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    bool odd = *number == 0x2028 || *number == 0x2029 || *number == 0xFEFF || *number >= 0xFFFE;
    return odd ? 3 : 0;
}

void node_add_scalar(struct buf *out, const char *text)
{
    if (is_plain_safe(text)) {
        buf_add_str(out, text);
        return;
    }
    buf_add_char(out, '"');
    unsigned number;
    for (const char *p = text; *p; p++) {
        size_t odd = odd_character(p, &number);
        if (odd) {
            buf_printf(out, "\\u%04X", number);
            p += odd - 1;
            continue;
        }
        if (*p == '"' || *p == '\\')
            buf_add_char(out, '\\');
        if (*p == '\n')
            buf_add_str(out, "\\n");
        else if ((unsigned char)*p < 0x20 || *p == 0x7F)
            buf_printf(out, "\\x%02x", (unsigned char)*p);
        else
            buf_add_char(out, *p);
    }
    buf_add_char(out, '"');
}
