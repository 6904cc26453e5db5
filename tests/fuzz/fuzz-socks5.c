/* SOCKS5's client against any proxy: the first byte chooses login and kind of target, the rest are the proxy's bytes.
 * Fed whole and byte by byte it must come to the same end, taking and sending the same. */
#include <stdlib.h>

#include "base/mem.h"
#include "wire/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
    enum socks5_progress progress;
    size_t used;
    struct socks5 s;
    struct buf out;
};

static void must(bool truth)
{
    if (!truth)
        abort();
}

static struct end converse(unsigned choice, struct slice in, size_t step)
{
    static const enum socks5_address types[] = {SOCKS5_IPV4, SOCKS5_NAME, SOCKS5_IPV6};
    enum socks5_address type = types[(choice >> 1) % ARRAY_LEN(types)];
    struct slice address = slice_make("0123456789abcdef", type == SOCKS5_IPV4 ? 4 : 16);
    struct slice user = choice & 1 ? slice_str("user") : slice_make(NULL, 0);
    struct end e = {.progress = SOCKS5_MORE};
    size_t fed = 0, used;

    must(socks5_start(&e.s, type, address, 443, user, slice_str("password"), &e.out) == 0);
    while (e.progress == SOCKS5_MORE && fed < in.n) {
        fed = in.n - fed < step ? in.n : fed + step;
        char *copy = xmemdup(in.p + e.used, fed - e.used); /* so that a read beyond it is seen */
        e.progress = socks5_feed(&e.s, slice_make(copy, fed - e.used), &used, &e.out);
        free(copy);
        must(used <= fed - e.used);
        e.used += used;
    }
    must((e.progress == SOCKS5_FAIL) == (e.s.error[0] != '\0'));
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct slice in = slice_make(data + 1, size - 1);
    struct end whole = converse(data[0], in, in.n + 1), bytes = converse(data[0], in, 1);

    must(whole.progress == bytes.progress && whole.used == bytes.used && whole.s.reply == bytes.s.reply);
    must(whole.s.login_refused == bytes.s.login_refused && strcmp(whole.s.error, bytes.s.error) == 0);
    must(slice_eq(buf_slice(&whole.out), buf_slice(&bytes.out)));
    buf_free(&whole.out);
    buf_free(&bytes.out);
    return 0;
}
