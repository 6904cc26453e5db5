/* The server that a client is for. */
#include "net/http_origin.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/proxy.h"
#include "net/tls.h"
#include "wire/http.h"

static int check_base(struct http_origin *o, struct err *e)
{
    switch (o->base.scheme) {
    case URL_HTTP:
    case URL_HTTPS:
        url_add_host(&o->shown, &o->base);
        return 0;
    case URL_UNIX:
        buf_add_str(&o->shown, o->base.path);
        return 0;
    default:
        return err_set(e, EX_CONFIG, "the URL must begin with http:// or https://");
    }
}

int http_origin_init(struct http_origin *o, const char *base_url, const char *ca_file,
                     const char *also_ca_file, const char *proxy_url, enum ip_mode ip,
                     int64_t connect_timeout_ms, struct err *e)
{
    *o = (struct http_origin){.shown = BUF_EMPTY};
    if (url_parse(base_url, &o->base, e) != 0)
        return -1;
    bool is_unix = o->base.scheme == URL_UNIX;
    if (check_base(o, e) != 0)
        goto failed;
    if (proxy_url && !is_unix && !(o->proxy = proxy_new(proxy_url, e)))
        goto failed;
    if (o->base.scheme == URL_HTTPS) {
        o->tls = ca_file ? tls_client_config(ca_file, e) : tls_client_config_also(also_ca_file, e);
        if (!o->tls)
            goto failed;
        o->session = tls_session_new();
    }
    o->dial = (struct dial_options){.unix_path = is_unix ? o->base.path : NULL,
                                    .host = o->base.host,
                                    .port = o->base.port,
                                    .ip = ip,
                                    .proxy = o->proxy,
                                    .tls = o->tls,
                                    .session = o->session,
                                    .timeout_ms = connect_timeout_ms};
    return 0;
failed:
    http_origin_free(o);
    return -1;
}

void http_origin_free(struct http_origin *o)
{
    tls_session_free(o->session);
    tls_config_free(o->tls);
    proxy_free(o->proxy);
    url_free(&o->base);
    buf_free(&o->shown);
}

char *http_origin_target(const struct http_origin *o, const char *path)
{
    const char *prefix = o->base.scheme == URL_UNIX ? "" : o->base.path;
    size_t n = strlen(prefix);

    if (n && prefix[n - 1] == '/' && path[0] == '/')
        n--;
    if (n == 0 && path[0] != '/')
        return xasprintf("/%s", path);
    return xasprintf("%.*s%s", (int)n, prefix, path);
}

int http_origin_add_head(const struct http_origin *o, struct buf *out, const char *method, const char *target,
                         bool login)
{
    int bad = http_add_request_line(out, method, target);

    bad |= http_add_field(out, "Host",
                          o->base.scheme == URL_UNIX ? slice_str("localhost") : buf_slice(&o->shown));
    if (o->base.user && login) {
        struct buf basic = BUF_EMPTY;
        proxy_add_basic(&basic, o->base.user, o->base.password);
        bad |= http_add_field(out, "Authorization", buf_slice(&basic));
        buf_free(&basic);
    }
    return bad;
}

int http_origin_add_field(struct buf *out, struct slice name, struct slice value)
{
    char *terminated = xstrndup(name.p, name.n);
    int r = http_add_field(out, terminated, value);

    free(terminated);
    return r;
}
