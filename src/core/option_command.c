/* Splits a command line without a shell, in one pass over its characters. */
#include "core/option_command.h"

#include <stdlib.h>

#include "base/mem.h"

struct words {
    char **argv;
    size_t n, cap;
    struct buf word;
    bool in_word; /* an empty pair of quotes is a word too */
};

static void end_word(struct words *w)
{
    if (!w->in_word)
        return;
    if (w->n + 2 > w->cap) {
        w->cap = w->cap ? w->cap * 2 : 16;
        w->argv = xrealloc(w->argv, w->cap * sizeof(*w->argv));
    }
    w->argv[w->n++] = xstrdup(buf_str(&w->word));
    w->argv[w->n] = NULL;
    buf_clear(&w->word);
    w->in_word = false;
}

/* The characters of "..." from behind the opening quote. Returns where the closing one stands, or NULL. */
static const char *double_quoted(struct words *w, const char *p)
{
    for (; *p != '"'; p++) {
        if (*p == '\\' && p[1] == '\n') {
            p++;
            continue;
        }
        if (*p == '\\' && p[1] && strchr("\"\\$`", p[1]))
            p++;
        if (*p == '\0')
            return NULL;
        buf_add_char(&w->word, *p);
    }
    return p;
}

/* One character, escape or quoted part at p. Returns the last byte of it, or NULL and why. */
static const char *take(struct words *w, const char *p, const char **why)
{
    const char *end = p;

    if (*p == '\\' && p[1] == '\n') /* a continued line: nothing at all */
        return p + 1;
    w->in_word = true;
    if (*p == '\'') {
        end = strchr(p + 1, '\'');
        *why = "the single quote (') is never closed";
        if (end)
            buf_add(&w->word, p + 1, (size_t)(end - p - 1));
    } else if (*p == '"') {
        end = double_quoted(w, p + 1);
        *why = "the double quote (\") is never closed";
    } else if (*p == '\\') {
        end = p[1] ? p + 1 : NULL;
        *why = "a backslash at the end has nothing to act on";
        if (end)
            buf_add_char(&w->word, *end);
    } else {
        buf_add_char(&w->word, *p);
    }
    return end;
}

char **command_split(const char *text, const char **why, size_t *at)
{
    struct words w = {0};
    const char *p = text;

    for (; *p; p++) {
        if (strchr(" \t\r\n", *p)) {
            end_word(&w);
            continue;
        }
        const char *end = take(&w, p, why);
        if (!end)
            goto fail;
        p = end;
    }
    end_word(&w);
    *why = "the command is empty";
    p = text;
    if (w.n == 0 || !w.argv[0][0])
        goto fail;
    buf_free(&w.word);
    return w.argv;
fail:
    *at = (size_t)(p - text);
    buf_free(&w.word);
    command_free(w.argv);
    return NULL;
}

void command_free(char **argv)
{
    for (char **p = argv; p && *p; p++)
        free(*p);
    free(argv);
}

static bool needs_quotes(const char *word)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=@%-:,";
    return !*word || word[strspn(word, safe)] != '\0';
}

void command_join(struct buf *out, char *const *argv)
{
    for (size_t i = 0; argv[i]; i++) {
        if (i)
            buf_add_char(out, ' ');
        if (!needs_quotes(argv[i])) {
            buf_add_str(out, argv[i]);
            continue;
        }
        buf_add_char(out, '\'');
        for (const char *p = argv[i]; *p; p++) {
            if (*p == '\'')
                buf_add_str(out, "'\\''");
            else
                buf_add_char(out, *p);
        }
        buf_add_char(out, '\'');
    }
}
