/* The page's files and the headers that keep others' scripts, frames and pages away from it. */
#include "serve/page.h"

#include <string.h>

#include <openssl/evp.h>

#include "base/mem.h"
#include "base/text.h"
#include "net/http_server.h"
#include "serve/page_assets.h"

/* Nothing but the page's own files runs, is shown or is talked to; nobody frames it; its form is never sent by the
 * browser itself, so that what is typed there gets into no URL; and no text becomes markup (trusted types). */
#define CSP                                                                                                  \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri " \
    "'none'; "                                                                                               \
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

static const struct {
    const char *end, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static const char *type_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        size_t n = strlen(name), end = strlen(types[i].end);
        if (n > end && strcmp(name + n - end, types[i].end) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

/* "/" is index.html, "/page/NAME" the rest. */
static const struct page_asset *asset_at(struct slice path)
{
    static const char front[] = "/page/";
    const size_t n = sizeof(front) - 1;
    struct slice name = slice_str("index.html");

    if (!slice_eq_str(path, "/")) {
        if (path.n <= n || memcmp(path.p, front, n) != 0)
            return NULL;
        name = slice_make(path.p + n, path.n - n);
    }
    for (const struct page_asset *a = page_assets; a->name; a++)
        if (slice_eq_str(name, a->name))
            return a;
    return NULL;
}

bool page_has(struct slice path)
{
    return asset_at(path) != NULL;
}

/* The validator of the cache: 64 bits of the bytes' hash, in quotes. */
static void etag_of(struct slice bytes, char out[20])
{
    unsigned char hash[EVP_MAX_MD_SIZE];

    EVP_Digest(bytes.p, bytes.n, hash, NULL, EVP_sha256(), NULL);
    out[0] = '"';
    hex_encode(hash, 8, out + 1);
    memcpy(out + 17, "\"", 2);
}

void page_serve(struct http_exchange *x, const struct http_server_request *r)
{
    const struct page_asset *a = asset_at(r->path);
    struct slice bytes = slice_make(a->bytes, a->n);
    char etag[20];

    if (!slice_eq_str(r->method, "GET") && !slice_eq_str(r->method, "HEAD")) {
        http_reply_error(x, 405, "method", "this path is asked by GET");
        return;
    }
    etag_of(bytes, etag);
    bool known = slice_eq_str(r->header(r, "If-None-Match"), etag);
    const struct http_field fields[] = {
        {slice_str("Content-Type"), slice_str(type_of(a->name))},
        {slice_str("Content-Security-Policy"), slice_str(CSP)},
        {slice_str("X-Content-Type-Options"), slice_str("nosniff")},
        {slice_str("X-Frame-Options"), slice_str("DENY")},
        {slice_str("Referrer-Policy"), slice_str("no-referrer")},
        {slice_str("Cross-Origin-Opener-Policy"), slice_str("same-origin")},
        {slice_str("Cross-Origin-Resource-Policy"), slice_str("same-origin")},
        {slice_str("Cache-Control"), slice_str("no-cache")}, /* kept, but asked for again each time */
        {slice_str("ETag"), slice_str(etag)},
    };
    const struct http_answer_head head = {.status = known ? 304 : 200,
                                          .fields = fields,
                                          .n_fields = ARRAY_LEN(fields),
                                          .length = known ? 0 : (int64_t)bytes.n};

    http_begin(x, &head);
    http_write(x, bytes);
    http_end(x);
}
