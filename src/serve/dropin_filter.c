/* The remembered list of kinds, by the rules that Telegram has for it. */
#include "serve/dropin_filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/kinds.h"
#include "wire/json.h"

#define NAMES_MAX 100

void dropin_filter_clear(struct dropin_filter *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->kinds[i]);
    free(f->kinds);
    *f = (struct dropin_filter){.mode = FILTER_ALL};
}

/* The names of a list, in lower case, as Telegram compares them. */
static void add_name(struct dropin_filter *f, struct slice name)
{
    char *copy = xstrndup(name.p ? name.p : "", name.n);

    for (char *c = copy; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + 'a' - 'A');
    f->kinds[f->n++] = copy;
}

bool dropin_filter_set(struct dropin_filter *f, struct slice json)
{
    struct json *list = json_parse(json, NULL);
    size_t n = json_length(list);
    bool known = false;

    if (json_type(list) != JSON_ARRAY) {
        json_free(list);
        return false;
    }
    dropin_filter_clear(f);
    if (n > NAMES_MAX)
        n = NAMES_MAX;
    f->kinds = xcalloc(n + 1, sizeof(*f->kinds));
    for (size_t i = 0; i < n; i++) {
        add_name(f, json_string(json_item(list, i)));
        known |= kind_find(slice_str(f->kinds[i])) != NULL;
    }
    json_free(list);
    f->mode = FILTER_LIST;
    if (!known) {
        dropin_filter_clear(f);
        f->mode = FILTER_DEFAULT;
    }
    return true;
}

bool dropin_filter_wants(const struct dropin_filter *f, const char *kind)
{
    const struct kind *k = kind_find(slice_str(kind));

    if (f->mode == FILTER_ALL)
        return true;
    if (f->mode == FILTER_DEFAULT)
        return !k ||
               k->on_by_default; /* a kind newer than this program is in the default list, as new kinds are */
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->kinds[i], kind))
            return true;
    return false;
}
