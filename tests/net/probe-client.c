/* Sends requests by net/http_client and prints what became of each as a line of JSON: what the tests of the
 * client look at. The requests go one after the other over one client.
 *
 *     probe-client [OPTION VALUE]... BASE_URL [METHOD PATH]...
 *
 * Options: ca FILE, also-ca FILE, proxy URL, ip any|4|6, connect MS, deadline MS, max-body BYTES, body TEXT, body-size
 * BYTES, header NAME:VALUE, idle MS (between two requests), cancel MS (after the start of the first), secret
 * 1, in-callback 1 (the next request is started inside the callback), free-in-callback 1, log 1. */
#include <ares.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "wire/json.h"

struct probe {
    struct loop *loop;
    struct http_client *client;
    struct http_client_options options;
    struct http_request request;
    struct http_header header;
    int64_t idle_ms, cancel_ms, started;
    size_t memory; /* bytes allocated when the request was started; 0 where ASan counts instead */
    bool in_callback, free_in_callback;
    char **next; /* METHOD PATH ... */
    struct timer pause, cancel;
    char *big; /* the body made for body-size */
};

static const char *const fails[] = {
    [HTTP_OK] = "ok",       [HTTP_RESOLVE] = "resolve", [HTTP_REFUSED] = "refused",
    [HTTP_PROXY] = "proxy", [HTTP_TLS] = "tls",         [HTTP_RESET] = "reset",
    [HTTP_CUT] = "cut",     [HTTP_TIMEOUT] = "timeout", [HTTP_BAD_ANSWER] = "bad-answer",
};

static void send_next(void *arg);

/* The linker puts this in the place of c-ares' function (--wrap). */
int __real_ares_init_options(ares_channel *c, struct ares_options *o, int mask);
int __wrap_ares_init_options(ares_channel *c, struct ares_options *o, int mask);
int __wrap_ares_init_options(ares_channel *c, struct ares_options *o, int mask)
{
    const char *server = getenv("PROBE_DNS");
    int r = __real_ares_init_options(c, o, mask);

    if (r == ARES_SUCCESS && server)
        r = ares_set_servers_ports_csv(*c, server);
    return r;
}

static void print(struct probe *p, const struct http_answer *a)
{
    struct buf line = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &line);
    json_object(&j);
    json_kv_cstr(&j, "fail", fails[a->fail]);
    json_kv_cstr(&j, "error", a->error);
    json_kv_int(&j, "status", a->status);
    json_kv_int(&j, "body_bytes", (int64_t)a->body.n);
    json_kv_text(&j, "body", slice_make(a->body.p, a->body.n < 1000 ? a->body.n : 1000));
    json_kv_bool(&j, "complete", a->complete_by_length);
    json_kv_bool(&j, "sent", a->sent);
    json_kv_bool(&j, "proxy_auth", a->proxy_auth);
    json_kv_bool(&j, "reused", a->reused);
    json_kv_int(&j, "waited_ms", a->waited_ms);
    json_kv_int(&j, "took_ms", clock_now() - p->started);
    json_kv_uint(&j, "memory", p->memory);
    json_kv_int(&j, "retry_after_s", a->retry_after_s);
    json_kv_cstr(&j, "content_type", a->content_type);
    json_object_end(&j);
    json_end(&j);
    puts(buf_str(&line));
    fflush(stdout);
    buf_free(&line);
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct probe *p = arg;

    print(p, a);
    if (p->free_in_callback) {
        http_client_free(p->client);
        p->client = NULL;
        loop_stop(p->loop);
    } else if (p->in_callback) {
        send_next(p);
    } else {
        timer_set(&p->pause, loop_now(p->loop) + p->idle_ms);
    }
}

static void send_next(void *arg)
{
    struct probe *p = arg;

    if (!p->next[0] || !p->next[1]) {
        loop_stop(p->loop);
        return;
    }
    p->request.method = p->next[0];
    p->request.path = p->next[1];
    p->next += 2;
    p->started = clock_now();
    p->memory = mallinfo2().uordblks + mallinfo2().hblkhd;
    http_client_request(p->client, &p->request, on_answer, p);
}

static void on_cancel(void *arg)
{
    struct probe *p = arg;

    http_client_cancel(p->client);
    puts("{\"fail\":\"cancelled\"}");
    send_next(p);
}

/* Returns whether it is known. */
static bool take_option(struct probe *p, const char *name, char *value)
{
    long long n = atoll(value);
    char *colon = strchr(value, ':');

    if (!strcmp(name, "ca"))
        p->options.ca_file = value;
    else if (!strcmp(name, "also-ca"))
        p->options.also_ca_file = value;
    else if (!strcmp(name, "proxy"))
        p->options.proxy_url = value;
    else if (!strcmp(name, "ip"))
        p->options.ip = n == 4 ? IP_4 : n == 6 ? IP_6 : IP_ANY;
    else if (!strcmp(name, "connect"))
        p->options.connect_timeout_ms = n;
    else if (!strcmp(name, "deadline"))
        p->request.deadline_ms = n;
    else if (!strcmp(name, "max-body"))
        p->options.max_body = (size_t)n;
    else if (!strcmp(name, "body"))
        p->request.body = slice_str(value);
    else if (!strcmp(name, "body-size"))
        p->request.body = slice_make(p->big = memset(xmalloc((size_t)n), 'x', (size_t)n), (size_t)n);
    else if (!strcmp(name, "header") && colon)
        p->header = (struct http_header){slice_make(value, (size_t)(colon - value)), slice_str(colon + 1)};
    else if (!strcmp(name, "idle"))
        p->idle_ms = n;
    else if (!strcmp(name, "cancel"))
        p->cancel_ms = n;
    else if (!strcmp(name, "secret"))
        p->request.secret_path = n;
    else if (!strcmp(name, "in-callback"))
        p->in_callback = n;
    else if (!strcmp(name, "free-in-callback"))
        p->free_in_callback = n;
    else if (!strcmp(name, "log"))
        log_setup(LOG_DEBUG, LOG_TEXT, false);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct probe p = {.options = {.connect_timeout_ms = 3000, .max_body = 1 << 20},
                      .request = {.deadline_ms = 10000}};
    struct err e = ERR_NONE;
    int i = 1;

    signal(SIGPIPE, SIG_DFL); /* it must never come */
    while (i + 1 < argc && take_option(&p, argv[i], argv[i + 1]))
        i += 2;
    if (i >= argc) {
        fputs("usage: probe-client [OPTION VALUE]... BASE_URL [METHOD PATH]...\n", stderr);
        return EX_USAGE;
    }
    p.options.base_url = argv[i];
    p.next = argv + i + 1;
    if (p.header.name.n) {
        p.request.headers = &p.header;
        p.request.n_headers = 1;
    }
    p.loop = loop_new();
    timer_init(&p.pause, p.loop, send_next, &p);
    timer_init(&p.cancel, p.loop, on_cancel, &p);
    p.client = http_client_new(p.loop, &p.options, &e);
    if (!p.client) {
        printf("{\"fail\":\"options\",\"exit_code\":%d,\"error\":\"%s\"}\n", e.exit_code, e.text);
    } else {
        timer_set(&p.pause, loop_now(p.loop));
        if (p.cancel_ms)
            timer_set(&p.cancel, loop_now(p.loop) + p.cancel_ms);
        loop_run(p.loop, NULL, NULL);
        http_client_free(p.client);
    }
    loop_free(p.loop);
    free(p.big);
    return 0;
}
