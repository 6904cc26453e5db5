/* The config's parser against any bytes: it must neither crash nor leak, every refusal must carry a sentence,
 * and what it accepts it must be able to write so that it reads the same again. The same bytes go through the
 * splitter of commands. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/option_command.h"
#include "core/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void try_config(struct slice text)
{
    struct err e = ERR_NONE;
    struct buf first = BUF_EMPTY, second = BUF_EMPTY;
    struct config *c = config_parse("f", text, &e);

    if (!c) {
        must(e.exit_code == EX_CONFIG && strncmp(e.text, "f:", 2) == 0);
        return;
    }
    config_add_yaml(&first, c, false);
    struct config *again = config_parse("f", buf_slice(&first), &e);
    must(again != NULL);
    config_add_yaml(&second, again, false);
    must(slice_eq(buf_slice(&first), buf_slice(&second)));
    must(config_check_reload(c, again, &e) == 0);
    config_free(c);
    config_free(again);
    buf_free(&first);
    buf_free(&second);
}

static void try_command(struct slice bytes)
{
    char *text = xstrndup(bytes.n ? bytes.p : "", bytes.n);
    const char *why = NULL;
    size_t at = 0, i = 0;
    struct buf joined = BUF_EMPTY;
    char **argv = command_split(text, &why, &at);

    if (!argv) {
        must(why && at <= strlen(text));
    } else {
        command_join(&joined, argv);
        char **again = command_split(buf_str(&joined), &why, &at);
        must(again != NULL);
        for (; argv[i] && again[i]; i++)
            must(strcmp(argv[i], again[i]) == 0);
        must(!argv[i] && !again[i]);
        command_free(again);
    }
    command_free(argv);
    buf_free(&joined);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice s = slice_make(data, size);

    try_config(s);
    try_command(s);
    return 0;
}
