/* The option table: what tgspool.yaml may say, what it means, and where each mistake is told to be. */
#include "core/option_command.h"
#include "core/option_value.h"
#include "core/options.h"
#include "unit.h"

#define BOT "bots:\n  shop:\n    token_file: /t\n"
#define EXEC BOT "    command: /bin/true\n"
#define HOOK(at, more) EXEC "    intake: webhook\n" more "listen:\n  webhook: '" at "'\n"
#define SECRET "    webhook_secret_file: /s\n"
#define LOCAL "    api_root: http://[::1]:8081\n"
#define TLS "  tls_cert: /c\n  tls_key: /k\n"

static struct config *parse(const char *text)
{
    struct err e = ERR_NONE;
    struct config *c = config_parse("f", slice_str(text), &e);

    if (!c)
        fail_msg("refused: %s\n%s", e.text, text);
    return c;
}

static void test_defaults(void **state)
{
    static const int64_t steps[] = {2000, 5000, 15000, 60000};
    struct config *c = parse(EXEC);
    const struct bot_config *b = config_bot(c, "shop");

    (void)state;
    assert_string_equal(c->dir, "/var/lib/tgspool");
    assert_int_equal(c->sync, SYNC_ALWAYS);
    assert_int_equal(c->max_db, INT64_C(2) << 30);
    assert_int_equal(c->min_free, 256 << 20);
    assert_int_equal(c->reserve, RESERVE_AUTO);
    assert_int_equal(c->cache_bytes, 4 << 20);
    assert_int_equal(c->max_children, 64);
    assert_string_equal(c->socket, "/run/tgspool/tgspool.sock");
    assert_int_equal(c->socket_mode, 0660);
    assert_null(c->socket_group);
    assert_null(c->listen_http);
    assert_null(c->listen_webhook);
    assert_null(c->listen_dropin);
    assert_null(c->api_token_file);
    assert_false(c->telegram_only);
    assert_int_equal(c->trusted_proxy.n, 0);
    assert_null(c->tls_cert);
    assert_null(c->tls_key);
    assert_int_equal(c->log_level, LOG_INFO);
    assert_int_equal(c->log_format, LOG_TEXT);
    assert_int_equal(c->n_bots, 1);
    assert_int_equal(c->n_warnings, 0);
    assert_null(config_bot(c, "nobody"));
    assert_int_equal(b->line, 2);
    assert_string_equal(b->token_file, "/t");
    assert_string_equal(b->api_root, "https://api.telegram.org");
    assert_null(b->ca_file);
    assert_null(b->proxy_file);
    assert_int_equal(b->ip, IP_ANY);
    assert_int_equal(b->intake, INTAKE_POLL);
    assert_int_equal(b->poll_timeout_ms, 30000);
    assert_int_equal(b->order, ORDER_CHAT);
    assert_int_equal(b->deliver, DELIVER_EXEC);
    assert_string_equal(b->command[0], "/bin/true");
    assert_null(b->command[1]);
    assert_int_equal(b->concurrency, 2);
    assert_int_equal(b->lease_ms, 60000);
    assert_int_equal(b->retry.n, 4);
    assert_memory_equal(b->retry.step_ms, steps, sizeof(steps));
    assert_int_equal(b->retry.jitter_percent, 20);
    assert_int_equal(b->max_attempts, 8);
    assert_int_equal(b->expire, EXPIRE_OFF);
    assert_int_equal(b->shutdown_wait_ms, 20000);
    config_free(c);
}

static void test_all_values(void **state)
{
    struct config *c =
        parse("spool: {dir: /d, sync: 20ms, cache: 1G, max_children: 1001}\n"
              "listen:\n  socket: /s\n  socket_mode: 600\n  socket_group: web\n"
              "log: {level: debug, format: json}\n"
              "bots:\n"
              "  a:\n    token_credential: a.token\n    api_root: http://127.0.0.1:8081/x\n"
              "    ca_file: /ca\n    proxy_file: /p\n    ip: 6\n    poll_timeout: 50\n"
              "    order: none\n    deliver: worker\n    command: |\n      /w  -x\n      y\n"
              "    concurrency: 1000\n    lease: 12h\n    retry:\n      - 0\n      - 24h\n"
              "    jitter: 0\n    max_attempts: 1\n    expire: {callback_query: 10m, poll: 1d}\n"
              "    shutdown_wait: 0\n    allowed_updates: [poll, message, poll]\n"
              "  B-1_:\n    token_env: TOKEN\n    intake: none\n    deliver: http\n    url: https://h/\n"
              "    url_secret_file: /u\n    expire: auto\n"
              "  c:\n    token_file: /c\n    deliver: pull\n    lease: 1s\n"
              "  d:\n    token_file: /d\n    deliver: worker\n    command: x\n");
    const struct bot_config *a = config_bot(c, "a"), *b = config_bot(c, "B-1_");

    (void)state;
    assert_int_equal(c->sync, SYNC_INTERVAL);
    assert_int_equal(c->sync_ms, 20);
    assert_int_equal(c->cache_bytes, 1 << 30);
    assert_int_equal(c->max_children, 1001);
    assert_int_equal(c->socket_mode, 0600);
    assert_string_equal(c->socket_group, "web");
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->log_format, LOG_JSON);
    assert_int_equal(c->n_warnings, 0);
    assert_string_equal(a->token_credential, "a.token");
    assert_int_equal(a->ip, IP_6);
    assert_int_equal(a->poll_timeout_ms, 50000);
    assert_int_equal(a->order, ORDER_NONE);
    assert_string_equal(a->command[0], "/w");
    assert_string_equal(a->command[1], "-x");
    assert_string_equal(a->command[2], "y");
    assert_null(a->command[3]);
    assert_int_equal(a->concurrency, 1000);
    assert_int_equal(a->lease_ms, 12 * 3600 * 1000);
    assert_int_equal(a->retry.n, 2);
    assert_int_equal(a->retry.step_ms[0], 0);
    assert_int_equal(a->retry.step_ms[1], 86400000);
    assert_int_equal(a->retry.jitter_percent, 0);
    assert_int_equal(a->expire, EXPIRE_KINDS);
    assert_int_equal(a->n_expire_rules, 2);
    assert_string_equal(a->expire_rules[0].kind, "callback_query");
    assert_int_equal(a->expire_rules[1].ms, 86400000);
    assert_int_equal(a->shutdown_wait_ms, 0);
    assert_int_equal(a->n_allowed_updates, 2);
    assert_string_equal(a->allowed_updates[0], "poll");
    assert_string_equal(a->allowed_updates[1], "message");
    assert_int_equal(b->intake, INTAKE_NONE);
    assert_string_equal(b->token_env, "TOKEN");
    assert_string_equal(b->url, "https://h/");
    assert_int_equal(b->expire, EXPIRE_AUTO);
    assert_int_equal(b->concurrency, 4);
    assert_int_equal(config_bot(c, "c")->concurrency, 4);
    assert_int_equal(config_bot(c, "d")->concurrency, 1);
    config_free(c);
}

static void test_listeners(void **state)
{
    struct config *c =
        parse("listen:\n  http: '0.0.0.0:8480'\n  api_token_file: /a\n  http_hosts: [spool.example, queue]\n"
              "  webhook: '[::]:443'\n"
              "  telegram_only: true\n  trusted_proxy: [10.1.2.3/8, '::1', 192.0.2.7]\n"
              "  tls_cert: /c\n  tls_key: /k\n  dropin: LOCALHOST:8482\n"
              "bots:\n  w:\n    token_file: /w\n    intake: webhook\n    deliver: dropin\n"
              "    webhook_url: https://bot.example.org/hook/w\n    webhook_secret_file: /ws\n"
              "    allowed_updates: [poll]\n    dropin_token_file: /alias\n"
              "  p:\n    token_file: /p\n    deliver: pull\n    pull_token_file: /pt\n"
              "    dropin_token_file: /alias2\n");
    const struct bot_config *w = config_bot(c, "w"), *p = config_bot(c, "p");
    char text[IP_TEXT_MAX];

    (void)state;
    assert_int_equal(c->n_warnings, 0);
    assert_string_equal(c->listen_http, "0.0.0.0:8480");
    assert_string_equal(c->api_token_file, "/a");
    assert_string_equal(c->listen_webhook, "[::]:443");
    assert_true(c->telegram_only);
    assert_string_equal(c->http_hosts[0], "spool.example");
    assert_string_equal(c->http_hosts[1], "queue");
    assert_null(c->http_hosts[2]);
    assert_int_equal(c->trusted_proxy.n, 3);
    assert_string_equal(ip_net_text(&c->trusted_proxy.net[0], text), "10.0.0.0/8");
    assert_string_equal(ip_net_text(&c->trusted_proxy.net[1], text), "::1");
    assert_string_equal(c->tls_cert, "/c");
    assert_string_equal(c->tls_key, "/k");
    assert_string_equal(c->listen_dropin, "LOCALHOST:8482");
    assert_int_equal(w->intake, INTAKE_WEBHOOK);
    assert_int_equal(w->deliver, DELIVER_DROPIN);
    assert_string_equal(w->webhook_url, "https://bot.example.org/hook/w");
    assert_string_equal(w->webhook_secret_file, "/ws");
    assert_string_equal(w->allowed_updates[0], "poll");
    assert_string_equal(w->dropin_token_file, "/alias");
    assert_int_equal(w->concurrency, 4);
    assert_string_equal(p->pull_token_file, "/pt");
    config_free(c);
}

static bool has_kind(const struct bot_config *b, const char *kind)
{
    for (size_t i = 0; i < b->n_allowed_updates; i++)
        if (strcmp(b->allowed_updates[i], kind) == 0)
            return true;
    return false;
}

static void test_allowed_updates(void **state)
{
    struct config *c = parse(EXEC);
    const struct bot_config *b = &c->bots[0];

    (void)state;
    assert_true(has_kind(b, "message"));
    assert_false(has_kind(b, "chat_member"));
    config_free(c);
    c = parse(EXEC "    allowed_updates: [default, chat_member]\n");
    assert_true(has_kind(&c->bots[0], "message"));
    assert_true(has_kind(&c->bots[0], "chat_member"));
    assert_false(has_kind(&c->bots[0], "message_reaction"));
    config_free(c);
    c = parse(EXEC "    allowed_updates: [all]\n");
    assert_true(has_kind(&c->bots[0], "message"));
    assert_true(has_kind(&c->bots[0], "message_reaction"));
    config_free(c);
}

/* What a config is refused for: the place, and a part of the sentence. */
static const struct {
    const char *text, *place, *says;
} mistakes[] = {
    /* the file as such */
    {"", "f:1:1:", "no bot is configured"},
    {"# nothing\n", "f:1:1:", "no bot is configured"},
    {"spool:\n", "f:1:1:", "no bot is configured"},
    {"bots:\n", "f:1:1:", "no bot is configured"},
    {"log: {}\nbots: {}\n", "f:2:1:", "no bot is configured"},
    {"hello\n", "f:1:1:", "sections are needed: spool, listen, alerts, log, bots"},
    {"- a\n", "f:1:1:", "a list where the config's sections are needed"},
    {"bots: [a]\n", "f:1:7:", "a list where a mapping of names is needed"},
    {"bots: x\n", "f:1:7:", "a single value where a mapping of names is needed"},
    {"bots:\n  shop: x\n", "f:2:9:", "a single value where a mapping of options is needed"},
    {"spool: [a]\n" EXEC, "f:1:8:", "a list where a mapping of options is needed"},
    {"bots:\n\tshop:\n", "f:2:1:", "indent with blanks, not with tabs"},
    {"bots: {a: [\n", "f:2:1:", "not valid YAML"},
    {"bots: {a: \"x\n", "f:2:1:", "not valid YAML"},
    {"a\n\xff\xfe\n", "f:2:1:", "not a text file"},
    {"\x7f"
     "ELF\x01\x02",
     "f:1:1:", "not a text file"},
    {EXEC "---\n" EXEC, "f:5:1:", "a second document"},
    {"%YAML 1.1\n---\n" EXEC, "f:1:1:", "directives"},
    {"%TAG ! tag:x,2000:\n---\n" EXEC, "f:1:1:", "directives"},
    {"spool: &a {dir: /x}\n" EXEC, "f:1:8:", "anchors"},
    {"spool: *a\n" EXEC, "f:1:8:", "aliases"},
    {"spool: {dir: !!str /x}\n" EXEC, "f:1:14:", "tags"},
    {"spool: !x {dir: /x}\n" EXEC, "f:1:8:", "tags"},
    {"&k spool: {dir: /x}\n" EXEC, "f:1:1:", "anchors"},
    {"*k : {dir: /x}\n" EXEC, "f:1:1:", "aliases"},
    {"? [a]\n: b\n" EXEC, "f:1:3:", "a name is needed here"},
    {"spool: {dir: [[[[[[x]]]]]]}\n" EXEC, "f:1:18:", "nested deeper"},
    /* names */
    {"spol: {dir: /x}\n" EXEC, "f:1:1:", "did you mean spool?"},
    {"dir: /x\n" EXEC, "f:1:1:", "an option of spool"},
    {"quite_else: 1\n" EXEC, "f:1:1:", "accepted: spool, listen, alerts, log, bots"},
    {"alerts:\n  telegram: nobody 1\n" EXEC, "f:2:13:", "alerts.telegram: there is no bot \"nobody\""},
    {"alerts:\n  telegram: shop\n" EXEC, "f:2:13:", "BOT CHAT_ID"},
    {"alerts:\n  telegram: shop x\n" EXEC, "f:2:13:", "BOT CHAT_ID"},
    {"alerts:\n  telegram: shop 1 2\n" EXEC, "f:2:13:", "BOT CHAT_ID"},
    {"alerts:\n  telegram: shop @\n" EXEC, "f:2:13:", "BOT CHAT_ID"},
    {"alerts:\n  proxy_file: /p\n" EXEC, "f:2:15:", "alerts.proxy_file needs url_file or telegram"},
    {"alerts:\n  url: http://x/\n" EXEC, "f:2:3:", "name that by url_file"},
    {"spool:\n  archive_dir: x\n" EXEC, "f:2:16:", "an absolute path"},
    {"spool:\n  dedupe_for: 47h\n" EXEC, "f:2:15:", "a time of 2d to"},
    {EXEC "    intake: push\n", "f:5:13:", "accepted: poll, webhook or none"},
    {EXEC "    deliver: redis\n",
     "f:5:14:", "planned for a later version; accepted: exec, worker, http, pull or dropin"},
    {EXEC "    leese: 5s\n", "f:5:5:", "bots.shop.leese is not an option; did you mean lease?"},
    {EXEC "    max_attemtps: 5\n", "f:5:5:", "did you mean max_attempts?"},
    {EXEC "    level: info\n", "f:5:5:", "belongs to the section log"},
    {EXEC "    colour: red\n", "f:5:5:", "accepted: token_file, token_credential"},
    {EXEC "    token: x\n", "f:5:5:", "a secret never stands in this file"},
    {EXEC "    token: x\n", "f:5:5:", "name that by token_file"},
    {EXEC "    proxy: http://u:p@h\n", "f:5:5:", "name that by proxy_file"},
    {EXEC "    webhook_secret: x\n", "f:5:5:", "name that by webhook_secret_file"},
    {"listen: {api_token: x}\n" EXEC, "f:1:10:", "name that by api_token_file"},
    {EXEC "    lease: 1s\n    lease: 2s\n", "f:6:5:", "lease is named twice, first in line 5"},
    {EXEC "log: {}\nlog: {}\n", "f:6:1:", "log is named twice, first in line 5"},
    {EXEC "  shop:\n", "f:5:3:", "shop is named twice, first in line 2"},
    {"bots:\n  a b: {}\n", "f:2:3:", "not a bot's name"},
    {"bots:\n  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: {}\n", "f:2:3:", "not a bot's name"},
    {"bots:\n  deliver: exec\n", "f:2:3:", "under bots comes the bot's name first"},
    /* values */
    {"spool: {dir: x}\n" EXEC, "f:1:14:", "relative path"},
    {"spool: {dir: \"\"}\n" EXEC, "f:1:14:", "is empty"},
    {"spool: {dir: \"/a\\nb\"}\n" EXEC, "f:1:14:", "control character"},
    {"spool: {dir: \"/a\\0b\"}\n" EXEC, "f:1:14:", "control character"},
    {"spool: {dir: [/x]}\n" EXEC, "f:1:14:", "this is a list where a single value is needed"},
    {"spool: {sync: sometimes}\n" EXEC, "f:1:15:", "accepted: always, off or a time of 1ms to 10s"},
    {"spool: {sync: 11s}\n" EXEC, "f:1:15:", "out of range"},
    {"spool: {cache: 4MB}\n" EXEC, "f:1:16:", "a number with K, M or G"},
    {"spool: {reserve: some}\n" EXEC, "f:1:18:", "accepted: auto, off or a size of up to 16G"},
    {"spool: {min_free: -1}\n" EXEC, "f:1:19:", "a number with K, M or G"},
    {"spool: {cache: 1}\n" EXEC, "f:1:16:", "out of range; accepted: a size of 64K to 16G"},
    {"listen: {socket_mode: 0680}\n" EXEC, "f:1:23:", "octal"},
    {"listen: {socket_mode: 7777}\n" EXEC,
     "f:1:23:", "out of range; accepted: an octal mode of 0000 to 0777"},
    {"listen: {socket_mode: rw}\n" EXEC, "f:1:23:", "octal"},
    {"log: {level: warning}\n" EXEC, "f:1:14:", "accepted: error, warn, info or debug"},
    {"log: {level: inof}\n" EXEC, "f:1:14:", "did you mean info?"},
    {EXEC "    lease: 1w\n", "f:5:12:", "is not a time"},
    {EXEC "    lease: 13h\n", "f:5:12:", "\"13h\" is out of range; accepted: a time of 1s to 12h"},
    {EXEC "    lease: 999ms\n", "f:5:12:", "out of range"},
    {EXEC "    lease: -1\n", "f:5:12:", "is not a time"},
    {EXEC "    lease: 99999999999999999999d\n", "f:5:12:", "is not a time"},
    {EXEC "    lease: {a: b}\n", "f:5:12:", "this is a mapping where a single value is needed"},
    {EXEC "    poll_timeout: 51s\n", "f:5:19:", "out of range"},
    {EXEC "    poll_timeout: 1500ms\n", "f:5:19:", "whole seconds"},
    {EXEC "    retry: 5s\n", "f:5:12:", "this is a single value where a list is needed"},
    {EXEC "    retry: []\n", "f:5:12:", "the list is empty"},
    {EXEC "    retry: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]\n",
     "f:5:12:", "too long; accepted: a list of 1 to 16"},
    {EXEC "    retry: [1s, 25h]\n", "f:5:17:", "out of range"},
    {EXEC "    retry: [1s, [2s]]\n", "f:5:17:", "this is a list where a single value is needed"},
    {EXEC "    jitter: 20%\n", "f:5:13:", "not a whole number; accepted: a number of 0 to 100"},
    {EXEC "    jitter: 101\n", "f:5:13:", "out of range"},
    {EXEC "    max_attempts: 0\n", "f:5:19:", "a number of 1 to 1000"},
    {EXEC "    concurrency: 1001\n", "f:5:18:", "a number of 1 to 1000"},
    {EXEC "    expire: never\n", "f:5:13:", "accepted: off, auto or a mapping"},
    {EXEC "    expire: {}\n", "f:5:13:", "the mapping is empty"},
    {EXEC "    expire: {poll: 0}\n", "f:5:20:", "out of range"},
    {EXEC "    expire: {Poll: 1h}\n", "f:5:14:", "not a kind of update"},
    {EXEC "    expire: [poll]\n", "f:5:13:", "accepted: off, auto or a mapping"},
    {EXEC "    allowed_updates: all\n", "f:5:22:", "this is a single value where a list is needed"},
    {EXEC "    allowed_updates: []\n", "f:5:22:", "the list is empty"},
    {EXEC "    allowed_updates: [all, poll]\n", "f:5:23:", "it stands alone"},
    {EXEC "    allowed_updates: ['a b']\n", "f:5:23:", "not a kind of update"},
    {EXEC "    api_root: ftp://x\n", "f:5:15:", "not a URL of http or https"},
    {EXEC "    api_root: http://\n", "f:5:15:", "not a URL of http or https"},
    {EXEC "    api_root: http:///x\n", "f:5:15:", "names no host"},
    {EXEC "    api_root: http://a b\n", "f:5:15:", "a character that a URL here cannot have"},
    {EXEC "    api_root: https://u:secret@h/\n", "f:5:15:", "never stands in this file"},
    {EXEC "    token_env: A-B=C\n", "f:5:16:", "not a name"},
    {BOT "    command: /x 'y\n", "f:4:17:", "the single quote (') is never closed"},
    {BOT "    command: /x y \\\n", "f:4:19:", "a backslash at the end"},
    {BOT "    command: '/x \"'\n", "f:4:14:", "the double quote (\") is never closed"},
    {BOT "    command: \" \"\n", "f:4:14:", "the command is empty"},
    /* what must fit together */
    {"bots:\n  shop:\n    command: x\n", "f:2:3:", "bots.shop has no token; add token_file"},
    {EXEC "    token_env: X\n", "f:5:16:", "both token_file and token_env"},
    {BOT, "f:2:3:", "add command:"},
    {BOT "    deliver: worker\n", "f:4:14:", "add command:"},
    {BOT "    deliver: http\n", "f:4:14:", "add url:"},
    {EXEC "    url: http://localhost/\n", "f:5:10:", "url does not apply here, only with deliver: http"},
    {EXEC "    url_secret_file: /x\n", "f:5:22:", "only with deliver: http"},
    {EXEC "    deliver: pull\n", "f:4:14:", "command does not apply here, only with deliver: exec or worker"},
    {EXEC "    intake: none\n    poll_timeout: 3s\n", "f:6:19:", "only with intake: poll"},
    {EXEC "    allowed_updates: [all]\n    intake: none\n", "f:5:22:", "only with intake: poll or webhook"},
    /* listeners */
    {"listen: {webhook: 8443}\n" EXEC, "f:1:19:", "names no port; accepted: ADDRESS:PORT"},
    {"listen: {webhook: '[::1]'}\n" EXEC, "f:1:19:", "names no port"},
    {"listen: {webhook: ':8443'}\n" EXEC, "f:1:19:", "0.0.0.0 or [::] stands for all"},
    {"listen: {webhook: '*:8443'}\n" EXEC, "f:1:19:", "0.0.0.0 or [::] stands for all"},
    {"listen: {webhook: '::1:8443'}\n" EXEC, "f:1:19:", "without brackets"},
    {"listen: {webhook: '[127.0.0.1]:8443'}\n" EXEC, "f:1:19:", "an IP address or localhost"},
    {"listen: {webhook: 'h.example.org:8443'}\n" EXEC, "f:1:19:", "an IP address or localhost"},
    {"listen: {webhook: '127.0.0.1:0'}\n" EXEC, "f:1:19:", "has port 0"},
    {"listen: {webhook: '127.0.0.1:65536'}\n" EXEC, "f:1:19:", "no port from 1 to 65535"},
    {"listen: {webhook: '127.0.0.1:'}\n" EXEC, "f:1:19:", "no port from 1 to 65535"},
    {"listen: {webhook: '127.0.0.1:-1'}\n" EXEC, "f:1:19:", "no port from 1 to 65535"},
    {"listen: {webhook: '127.0.0.1:http'}\n" EXEC, "f:1:19:", "no port from 1 to 65535"},
    {"listen: {webhook: '0.0.0.0:8443'}\n" EXEC, "f:1:19:", "off loopback and would be without encryption"},
    {"listen: {dropin: '[::]:81'}\n" EXEC, "f:1:18:", "off loopback"},
    {"listen: {dropin: '126.0.0.1:81'}\n" EXEC, "f:1:18:", "off loopback"},
    {"listen: {dropin: '[::ffff:10.0.0.1]:81'}\n" EXEC, "f:1:18:", "off loopback"},
    {"listen: {http: '192.0.2.1:81', api_token_file: /x}\n" EXEC, "f:1:16:", "off loopback"},
    {"listen: {http: 'localhost:81'}\n" EXEC, "f:1:16:", "listen.http needs api_token_file"},
    {"listen: {api_token_file: /x}\n" EXEC, "f:1:26:", "listen.api_token_file needs http"},
    {"listen:\n  webhook: 127.0.0.1:81\n  dropin: localhost:81\n" EXEC,
     "f:3:11:", "taken by listen.webhook already"},
    {"listen:\n  webhook: 0.0.0.0:81\n  dropin: '[::1]:81'\n  tls_cert: /c\n  tls_key: /k\n" EXEC,
     "f:3:11:", "taken by listen.webhook already"},
    {"listen: {webhook: '127.0.0.1:81', tls_cert: /c}\n" EXEC, "f:1:45:", "listen.tls_cert needs tls_key"},
    {"listen: {webhook: '127.0.0.1:81', tls_key: /c}\n" EXEC, "f:1:44:", "listen.tls_key needs tls_cert"},
    {"listen: {tls_cert: /c, tls_key: /k}\n" EXEC, "f:1:20:", "no listener to use it"},
    {"listen: {telegram_only: yes}\n" EXEC, "f:1:25:", "accepted: true or false"},
    {"listen: {telegram_only: true}\n" EXEC, "f:1:25:", "listen.telegram_only needs webhook"},
    {"listen: {telegram_only: true, webhook: '[::1]:81'}\n" EXEC, "f:1:25:", "needs trusted_proxy"},
    {"listen: {trusted_proxy: '::1'}\n" EXEC, "f:1:25:", "listen.trusted_proxy needs webhook"},
    {"listen: {trusted_proxy: 10.0.0.0/33}\n" EXEC, "f:1:25:", "not an address or a network; accepted:"},
    {"listen: {trusted_proxy: [10.0.0.0/8, h]}\n" EXEC, "f:1:38:", "not an address or a network"},
    {"listen: {http_hosts: a.example}\n" EXEC, "f:1:22:", "listen.http_hosts needs http"},
    {"listen: {http_hosts: 'a.example:80'}\n" EXEC, "f:1:22:", "is not a host name; accepted:"},
    {"listen: {http_hosts: [a.example, 'https://b']}\n" EXEC, "f:1:34:", "is not a host name"},
    {"listen: {http_hosts: []}\n" EXEC, "f:1:22:", "the list is empty"},
    {"listen: {http_hosts: {a: b}}\n" EXEC, "f:1:22:", "a host name without a port"},
    {"listen: {trusted_proxy: []}\n" EXEC, "f:1:25:", "the list is empty"},
    {"listen: {trusted_proxy: {a: b}}\n" EXEC, "f:1:25:", "this is a mapping"},
    {EXEC "    intake: webhook\n", "f:5:13:", "nothing listens for them; add webhook: HOST:PORT"},
    {EXEC "    webhook_url: https://h/hook/shop\n", "f:5:18:", "only with intake: webhook"},
    {EXEC "    webhook_secret_file: /x\n", "f:5:26:", "only with intake: webhook"},
    {EXEC "    intake: webhook\n    poll_timeout: 3s\n", "f:6:19:", "only with intake: poll"},
    {HOOK("0.0.0.0:443", "") TLS, "f:5:13:", "anyone could send it updates; add webhook_secret_file"},
    {HOOK("127.0.0.1:81", "    webhook_url: http://h.example.org/hook/shop\n"), "f:6:18:", "is not https"},
    {HOOK("127.0.0.1:81", "    webhook_url: http://127.0.0.1/hook/shop\n"), "f:6:18:", "is not https"},
    {HOOK("127.0.0.1:81", "    webhook_url: https://localhost/hook/shop\n"), "f:6:18:", "cannot reach it"},
    {HOOK("127.0.0.1:81", "    webhook_url: https://h:8080/hook/shop\n"),
     "f:6:18:", "has port 8080, which api.telegram.org does not go to; accepted: 443"},
    {HOOK("127.0.0.1:81", "    webhook_url: https://h:99999/hook/shop\n"), "f:6:18:", "no port from 1"},
    {HOOK("127.0.0.1:81", "    api_root: http://127.0.0.1:5\n    webhook_url: http://192.0.2.1/hook/shop\n"),
     "f:7:18:", "is not https"},
    {BOT "    deliver: dropin\n", "f:4:14:", "nothing listens for it; add dropin: HOST:PORT"},
    {EXEC "    dropin_token_file: /x\n", "f:5:24:", "no use without a listener; add dropin"},
    {EXEC "    pull_token_file: /x\n", "f:5:22:", "only with deliver: pull"},
    {BOT "    deliver: pull\n    pull_token_file: /x\n", "f:5:22:", "no use without a listener"},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
        struct err e = ERR_NONE;
        struct config *c = config_parse("f", slice_str(mistakes[i].text), &e);
        if (c)
            fail_msg("row %zu was accepted:\n%s", i, mistakes[i].text);
        if (e.exit_code != EX_CONFIG || strncmp(e.text, mistakes[i].place, strlen(mistakes[i].place)) != 0 ||
            !strstr(e.text, mistakes[i].says))
            fail_msg("row %zu: exit %d: %s\nbut wanted %s ... %s", i, e.exit_code, e.text, mistakes[i].place,
                     mistakes[i].says);
    }
}

/* Values that may be secrets never come back in a message. */
static void test_no_secret_in_errors(void **state)
{
    static const char *const texts[] = {
        EXEC "    token: 123456:AAbbccddeeffgghhiijjkkllmmnnooppqqr\n",
        "bots:\n  shop:\n    token_file: 123456:AAbbccddeeffgghhiijjkkllmmnnooppqqr\n",
        "bots:\n  shop:\n    token_env: AAbbccddeeffgghhiijjkkllmmnnooppqqr:123456\n",
        EXEC "    proxy_file: socks5://u:AAbbccddeeffgghhiijjkkllmmnnooppqqr@h\n",
        EXEC "    proxy: socks5://u:AAbbccddeeffgghhiijjkkllmmnnooppqqr@h\n",
        EXEC "    api_root: http://u:AAbbccddeeffgghhiijjkkllmmnnooppqqr@h/\n",
        EXEC "    lease: 123456:AAbbccddeeffgghhiijjkkllmmnnooppqqr\n",
        EXEC "    123456:AAbbccddeeffgghhiijjkkllmmnnooppqqr: x\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e = ERR_NONE;
        check_row(i, config_parse("f", slice_str(texts[i]), &e) == NULL);
        if (strstr(e.text, "AAbbcc"))
            fail_msg("row %zu tells the secret: %s", i, e.text);
    }
}

static void test_warnings(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: none */
    } rows[] = {
        {EXEC "    api_root: http://api.example.org\n",
         "f:5:15: api_root goes to another machine by plain http"},
        {EXEC "    api_root: http://127.example.org\n", "plain http"},
        {EXEC "    api_root: http://localhost.example.org\n", "plain http"},
        {EXEC "    api_root: http://10.0.0.1:80/x\n", "the bot's token included"},
        {EXEC "    api_root: http://127.0.0.1:8081\n", NULL},
        {EXEC "    api_root: http://127.1.2.3/x\n", NULL},
        {EXEC "    api_root: http://LocalHost\n", NULL},
        {EXEC "    api_root: http://[::1]:8081/\n", NULL},
        {EXEC "    api_root: https://api.example.org\n", NULL},
        {EXEC "    allowed_updates: [mesage]\n",
         "mesage is no kind of update that this version knows; did you mean message?"},
        {EXEC "    allowed_updates: [entirely_new_thing]\n", "entirely_new_thing is no kind"},
        {EXEC "    expire: {new_thing: 5m}\n", "f:5:14: expire: new_thing is no kind"},
        {"spool: {sync: off}\n" EXEC, "sync: off"},
        {"listen: {socket_mode: \"0666\"}\n" EXEC, "every user of this machine"},
        {HOOK("127.0.0.1:81", ""), "f:5:13: bots.shop has no webhook_secret_file"},
        {HOOK("127.0.0.1:81", SECRET), NULL},
        {HOOK("127.0.0.1:81", SECRET "    webhook_url: https://h:8443/hook/shop\n"), NULL},
        {HOOK("127.0.0.1:81", SECRET "    webhook_url: https://[2001:db8::1]:88/x/hook/shop\n"), NULL},
        {HOOK("127.0.0.1:81", SECRET "    webhook_url: https://h/hook/ship\n"), "does not end in /hook/shop"},
        {HOOK("127.0.0.1:81", SECRET LOCAL "    webhook_url: http://127.0.0.1:99/hook/shop\n"), NULL},
        {HOOK("127.0.0.1:81", SECRET LOCAL "    webhook_url: https://h:8080/hook/shop\n"),
         "f:8:18: bots.shop: webhook_url has port 8080: only a Bot API server in local mode"},
        {HOOK("[::]:443", SECRET) TLS, NULL},
        {"listen: {webhook: '127.0.0.1:81'}\n" EXEC,
         "f:1:19: listen.webhook: no bot takes webhooks; set intake"},
        {"listen: {dropin: '127.0.0.1:81'}\n" EXEC,
         "f:1:18: listen.dropin: no bot uses it; set deliver: dropin"},
        {"listen: {dropin: '127.0.0.1:81'}\n" BOT "    deliver: dropin\n", NULL},
        {"listen: {dropin: '127.0.0.1:81'}\n" EXEC "    dropin_token_file: /x\n", NULL},
        {"spool: {max_children: 1}\n" EXEC,
         "f:1:23: spool.max_children is 1, but concurrency allows 2 handlers at once"},
        {"spool: {max_children: 2}\n" EXEC, NULL},
        {EXEC "    concurrency: 65\n", "f:2:3: spool.max_children is 64, but concurrency allows 65"},
        {BOT "    deliver: pull\n    concurrency: 100\n", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct config *c = parse(rows[i].text);
        check_row(i, c->n_warnings == (rows[i].says ? 1u : 0u));
        if (rows[i].says)
            check_row(i, strstr(c->warnings[0], rows[i].says));
        config_free(c);
    }
}

static void test_commands(void **state)
{
    static const struct {
        const char *text, *joined; /* the words, each behind a '|' */
    } rows[] = {
        {"a b", "|a|b"},
        {"  a\t b \n c ", "|a|b|c"},
        {"'a b' \"c d\"", "|a b|c d"},
        {"a'b'\"c\"d", "|abcd"},
        {"a '' \"\"", "|a||"},
        {"a\\ b \\'", "|a b|'"},
        {"\"\\\" \\\\ \\$ \\` \\n\"", "|\" \\ $ ` \\n"},
        {"'\\'", "|\\"},
        {"a \\\n b", "|a|b"},
        {"\"a\\\nb\"", "|ab"},
        {"$HOME *.c ; | > x", "|$HOME|*.c|;|||>|x"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf words = BUF_EMPTY, joined = BUF_EMPTY;
        const char *why;
        size_t at;
        char **argv = command_split(rows[i].text, &why, &at);
        check_row(i, argv != NULL);
        for (char **a = argv; *a; a++)
            buf_printf(&words, "|%s", *a);
        check_row(i, strcmp(buf_str(&words), rows[i].joined) == 0);
        command_join(&joined, argv);
        char **again = command_split(buf_str(&joined), &why, &at);
        check_row(i, again != NULL);
        for (size_t k = 0; argv[k] || again[k]; k++)
            check_row(i, argv[k] && again[k] && strcmp(argv[k], again[k]) == 0);
        command_free(argv);
        command_free(again);
        buf_free(&words);
        buf_free(&joined);
    }
}

/* What is shown parses back to the same. */
static void test_show_is_a_config(void **state)
{
    static const char *const texts[] = {
        EXEC,
        "spool: {dir: '/with blank: and \"quote\" # x', sync: 1s, reserve: off, min_free: 0, cache: 65K}\n"
        "listen: {socket_group: '-x', socket_mode: 007}\n"
        "bots:\n  a:\n    token_file: \"/\\u00e4\\\\\"\n    command: a 'b \"c' \"d'e\" \\\\ '' ünï\n"
        "    expire: {poll: 90s, message: 1d}\n    retry: [100ms, 0]\n"
        "  b:\n    token_env: X\n    intake: none\n    deliver: http\n    url: https://h:1/p?q=%20\n",
        "listen: {http: '127.0.0.1:1', api_token_file: /a, webhook: '[::1]:2', dropin: 'localhost:3',\n"
        "  trusted_proxy: [10.0.0.0/8, '2001:db8::/33', '::/0', '::1'], telegram_only: true,\n"
        "  tls_cert: /c, tls_key: /k}\n"
        "bots:\n  a: {token_file: /t, intake: webhook, webhook_secret_file: /s, deliver: dropin}\n",
        HOOK("127.0.0.1:81", SECRET) "  trusted_proxy: '::1'\n",
        "bots:\n  a: {token_file: /t, command: \"a \\N\\_\\L\\P\\uFEFF\\uFFFE\\uFFFF "
        "\\u00E9\\u20AC\\U0001F600 \\x01\\x7F\"}\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct config *c = parse(texts[i]);
        struct buf first = BUF_EMPTY, second = BUF_EMPTY, told = BUF_EMPTY;
        config_add_yaml(&first, c, false);
        struct config *again = parse(buf_str(&first));
        config_add_yaml(&second, again, false);
        assert_string_equal(buf_str(&first), buf_str(&second));
        assert_int_equal(config_check_reload(c, again, NULL), 0);
        config_add_yaml(&told, c, true);
        config_free(again);
        again = parse(buf_str(&told)); /* comments and all */
        buf_clear(&second);
        config_add_yaml(&second, again, false);
        assert_string_equal(buf_str(&first), buf_str(&second));
        buf_free(&first);
        buf_free(&second);
        buf_free(&told);
        config_free(c);
        config_free(again);
    }
}

static void test_sources(void **state)
{
    struct config *c = parse(EXEC "    lease: 5s\nlog:\n  level: debug\n");
    struct buf b = BUF_EMPTY;

    (void)state;
    config_add_yaml(&b, c, true);
    assert_non_null(strstr(buf_str(&b), "    lease: 5s                                   # line 5\n"));
    assert_non_null(strstr(buf_str(&b), "  level: debug                                  # line 7\n"));
    assert_non_null(strstr(buf_str(&b), "    jitter: 20                                  # default\n"));
    assert_non_null(strstr(buf_str(&b), "    ca_file:                                    # unset\n"));
    assert_null(strstr(buf_str(&b), "url:"));
    buf_free(&b);
    config_free(c);
}

static void test_reload(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: may be loaded */
    } rows[] = {
        {EXEC, NULL},
        {EXEC "log: {level: debug}\n", NULL},
        {"bots:\n  other:\n    token_file: /o\n    deliver: pull\n", NULL},
        {EXEC "    order: bot\n    lease: 1h\n", NULL},
        {"spool: {dir: /var/lib/tgspool}\n" EXEC, NULL}, /* the default, written out */
        {"spool: {dir: /elsewhere}\n" EXEC,
         "f:1:14: spool.dir cannot change while tgspool runs (from /var/lib/tgspool to"},
        {"spool: {sync: off}\n" EXEC, "spool.sync cannot change"},
        {"spool: {sync: 5ms}\n" EXEC, "(from always to 5ms)"},
        {"spool: {cache: 8M}\n" EXEC, "spool.cache cannot change"},
        {"listen: {socket: /s}\n" EXEC, "listen.socket cannot change"},
        {"listen: {socket_mode: 600}\n" EXEC, "listen.socket_mode cannot change"},
        {"listen: {socket_group: g}\n" EXEC,
         "listen.socket_group cannot change while tgspool runs (from unset to g)"},
    };
    struct config *old = parse(EXEC);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_NONE;
        struct config *new = parse(rows[i].text);
        int rc = config_check_reload(old, new, &e);
        check_row(i, rc == (rows[i].says ? -1 : 0));
        if (rows[i].says && !strstr(e.text, rows[i].says))
            fail_msg("row %zu: %s", i, e.text);
        config_free(new);
    }
    config_free(old);
}

/* Every row is complete: a text that ends a sentence, what it accepts, a default that its own parser takes.
 */
static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        check_row(i, option_find(o->section, slice_str(o->name)) == o); /* no name twice */
        if (o->planned) {
            check_row(i, !o->text && !o->def);
            continue;
        }
        struct buf b = BUF_EMPTY;
        option_add_accepts(&b, o);
        check_row(i, b.n > 0 && o->text && strlen(o->text) > 10 && o->text[strlen(o->text) - 1] == '.');
        check_row(i, o->section != SECTION_BOTS || o->reloadable);
        buf_free(&b);
    }
}

static void test_set_at(void **state)
{
    struct config *c = parse(EXEC "    lease: 5s\n");
    const struct bot_config *b = &c->bots[0];
    struct config_mark at = option_set_at(option_find(SECTION_BOTS, slice_str("lease")), c, b);
    struct err e = ERR_NONE;

    (void)state;
    assert_int_equal(at.line, 5);
    assert_int_equal(at.column, 12);
    assert_int_equal(option_set_at(option_find(SECTION_SPOOL, slice_str("dir")), c, NULL).line, 0);
    err_set(&e, EX_CONFIG, "why");
    assert_int_equal(option_err_prefix(&e, c, b, "token_file"), -1);
    assert_string_equal(e.text, "f:3:17: bots.shop.token_file: why");
    err_set(&e, EX_CONFIG, "why");
    option_err_prefix(&e, c, b, "proxy_file");
    assert_string_equal(e.text, "f:2:3: bots.shop.proxy_file: why");
    config_free(c);
}

static void test_limits(void **state)
{
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;

    (void)state;
    buf_add_str(&b, "bots:\n");
    for (int i = 0; i <= BOTS_MAX; i++)
        buf_printf(&b, "  b%d: {token_file: /t, deliver: pull}\n", i);
    assert_null(config_parse("f", buf_slice(&b), &e));
    assert_string_equal(e.text, "f:258:3: more than 256 bots");
    for (int i = BOTS_MAX; i < NODE_ENTRIES_MAX; i++)
        buf_printf(&b, "  c%d: {token_file: /t, deliver: pull}\n", i);
    assert_null(config_parse("f", buf_slice(&b), &e));
    assert_non_null(strstr(e.text, "more than 1000 entries"));
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),         cmocka_unit_test(test_all_values),
        cmocka_unit_test(test_listeners),        cmocka_unit_test(test_allowed_updates),
        cmocka_unit_test(test_mistakes),         cmocka_unit_test(test_no_secret_in_errors),
        cmocka_unit_test(test_warnings),         cmocka_unit_test(test_commands),
        cmocka_unit_test(test_show_is_a_config), cmocka_unit_test(test_sources),
        cmocka_unit_test(test_reload),           cmocka_unit_test(test_table),
        cmocka_unit_test(test_set_at),           cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
