/* multipart/form-data, strictly: CRLF lines, one Content-Disposition a part, a closing delimiter. */
#include "wire/multipart.h"

#include <strings.h>

#define BOUNDARY_MAX 70 /* RFC 2046, section 5.1.1 */
#define PART_HEAD_MAX 4096

static struct slice trim(struct slice s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = slice_make(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Cuts s at the first c that is not in quotes; *rest is what follows it (empty: there was none). */
static struct slice cut(struct slice s, char c, struct slice *rest)
{
    bool quoted = false;

    for (size_t i = 0; i < s.n; i++) {
        if (quoted && s.p[i] == '\\' && i + 1 < s.n)
            i++; /* the character behind it stands for itself */
        else if (s.p[i] == '"')
            quoted = !quoted;
        if (s.p[i] == c && !quoted) {
            *rest = slice_make(s.p + i + 1, s.n - i - 1);
            return slice_make(s.p, i);
        }
    }
    *rest = slice_make(s.p + s.n, 0);
    return s;
}

static struct slice unquote(struct slice s)
{
    if (s.n < 2 || s.p[0] != '"')
        return s;
    if (s.p[s.n - 1] != '"' || memchr(s.p, '\\', s.n) || memchr(s.p + 1, '"', s.n - 2))
        return slice_make(s.p, 0);
    return slice_make(s.p + 1, s.n - 2);
}

/* The first parameter of this name, as it stands. Returns whether there is one. */
static bool find_parameter(struct slice value, const char *name, struct slice *out)
{
    struct slice rest;

    cut(value, ';', &rest);
    while (rest.n) {
        struct slice item = cut(rest, ';', &rest);
        if (slice_eq_nocase(trim(cut(item, '=', out)), name))
            return true;
    }
    return false;
}

struct slice header_parameter(struct slice value, const char *name)
{
    struct slice v;

    return find_parameter(value, name, &v) ? unquote(trim(v)) : slice_make("", 0);
}

bool content_type_is(struct slice value, const char *type)
{
    struct slice rest;
    return slice_eq_nocase(trim(cut(value, ';', &rest)), type);
}

int multipart_start(struct multipart *m, struct slice content_type, struct slice body)
{
    struct slice boundary = header_parameter(content_type, "boundary");

    if (!content_type_is(content_type, "multipart/form-data") || boundary.n < 1 || boundary.n > BOUNDARY_MAX)
        return -1;
    memcpy(m->delimiter, "\r\n--", 4);
    memcpy(m->delimiter + 4, boundary.p, boundary.n);
    m->n_delimiter = 4 + boundary.n;
    m->ended = false;
    /* the first delimiter stands at the start, with its CRLF or, mostly, without */
    for (size_t skip = 0; skip <= 2; skip += 2) {
        size_t first = m->n_delimiter - skip;
        if (body.n < first || memcmp(body.p, m->delimiter + skip, first))
            continue;
        m->rest = slice_make(body.p + first, body.n - first);
        return 0;
    }
    return -1;
}

static int take_disposition(struct slice value, struct multipart_part *out)
{
    struct slice file;

    out->name = header_parameter(value, "name");
    out->is_file = find_parameter(value, "filename", &file) || find_parameter(value, "filename*", &file);
    return content_type_is(value, "form-data") && out->name.n ? 0 : -1;
}

/* The head of a part: lines up to an empty one. Returns its length, or 0. */
static size_t part_head(struct slice s, struct multipart_part *out)
{
    size_t at = 0;
    bool found = false;

    while (at < s.n && at < PART_HEAD_MAX) {
        const char *end = memmem(s.p + at, s.n - at, "\r\n", 2);
        if (!end)
            return 0;
        struct slice value, line = slice_make(s.p + at, (size_t)(end - s.p) - at);
        at += line.n + 2;
        if (line.n == 0)
            return found ? at : 0;
        struct slice name = cut(line, ':', &value);
        if (slice_eq_nocase(name, "Content-Disposition")) {
            if (found || take_disposition(trim(value), out) < 0)
                return 0;
            found = true;
        }
    }
    return 0;
}

int multipart_next(struct multipart *m, struct multipart_part *out)
{
    struct slice s = m->rest;

    if (m->ended)
        return 0;
    if (s.n >= 2 && memcmp(s.p, "--", 2) == 0) {
        m->ended = true;
        return 0;
    }
    if (s.n < 2 || memcmp(s.p, "\r\n", 2))
        return -1;
    s = slice_make(s.p + 2, s.n - 2);
    size_t head = part_head(s, out);
    if (!head)
        return -1;
    /* an empty part's delimiter begins with the CRLF that ended its head */
    const char *from = s.p + head - 2, *end = memmem(from, s.n - head + 2, m->delimiter, m->n_delimiter);
    if (!end)
        return -1;
    out->content =
        end < s.p + head ? slice_make(s.p + head, 0) : slice_make(s.p + head, (size_t)(end - s.p) - head);
    const char *behind = end + m->n_delimiter;
    m->rest = slice_make(behind, (size_t)(s.p + s.n - behind));
    return 1;
}
