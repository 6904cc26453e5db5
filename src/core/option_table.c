/* The rows. A new option is a new row here and a field in core/config.h; where a value needs a new shape, a
 * new type in core/option_value. Keep the order of the sample file. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/options.h"

#define IN_CONFIG(field) offsetof(struct config, field)
#define IN_BOT(field) offsetof(struct bot_config, field)
#define BIT(n) (1u << (n))
#define PUSHED (BIT(DELIVER_EXEC) | BIT(DELIVER_WORKER))
#define TAKEN_IN (BIT(INTAKE_POLL) | BIT(INTAKE_WEBHOOK))
#define PATH_BYTES 4095
#define SOCKET_BYTES 107 /* sun_path of sockaddr_un(7), less its zero */
#define PORT_BYTES 63

static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const format_words[] = {"text", "json", NULL};
static const char *const ip_words[] = {"any", "4", "6", NULL};
static const char *const intake_words[] = {"poll", "webhook", "none", NULL};
static const char *const order_words[] = {"chat", "thread", "bot", "none", NULL};
static const char *const deliver_words[] = {"exec", "worker", "http", "pull", "dropin", NULL};
static const char *const deliver_planned[] = {"redis", NULL};

static const char *const section_names[SECTIONS] = {"spool", "listen", "alerts", "log", "bots"};

/* clang-format off */
#define PLANNED(in, what) {.section = (in), .name = (what), .planned = true}

static const struct option rows[] = {
    /* ---- spool -------------------------------------------------------------------------------------- */
    {.section = SECTION_SPOOL, .name = "dir", .type = OPTION_PATH, .offset = IN_CONFIG(dir),
     .min = 1, .max = PATH_BYTES, .def = "/var/lib/tgspool",
     .text = "The directory of the database. It is made with mode 0700 if it is missing; one daemon at a time holds it."},
    {.section = SECTION_SPOOL, .name = "sync", .type = OPTION_SYNC, .offset = IN_CONFIG(sync),
     .min = 1, .max = SECONDS(10), .def = "always",
     .text = "When what was written counts as safe. always: after a sync of every group of writes. A time: groups are "
             "gathered that long, and acknowledged later. off: without a sync; a power cut may lose the last moments."},
    {.section = SECTION_SPOOL, .name = "retain_done", .type = OPTION_TIME, .offset = IN_CONFIG(retain_done_ms),
     .min = SECONDS(1), .max = HOURS(24 * 3650), .def = "3d", .reloadable = true,
     .text = "How long a done update, or call, is kept after it ended, for replay. It stays at least as long as dedupe_for "
             "says, and until the calls that its handler made have ended."},
    {.section = SECTION_SPOOL, .name = "retain_dead", .type = OPTION_TIME, .offset = IN_CONFIG(retain_dead_ms),
     .min = SECONDS(1), .max = HOURS(24 * 3650), .def = "30d", .reloadable = true,
     .text = "How long a dead one is kept after it ended, for a person to look at. It is never removed sooner to make room."},
    {.section = SECTION_SPOOL, .name = "dedupe_for", .type = OPTION_TIME, .offset = IN_CONFIG(dedupe_ms),
     .min = HOURS(48), .max = HOURS(24 * 3650), .def = "3d", .reloadable = true,
     .text = "How long an update is kept after it arrived, so that a second copy of it is known. Telegram keeps updates for "
             "24 hours."},
    {.section = SECTION_SPOOL, .name = "retain_audit", .type = OPTION_TIME, .offset = IN_CONFIG(retain_audit_ms),
     .min = SECONDS(1), .max = HOURS(24 * 3650), .def = "90d", .reloadable = true,
     .text = "How long it is known who replayed or discarded what."},
    {.section = SECTION_SPOOL, .name = "archive_dir", .type = OPTION_PATH, .offset = IN_CONFIG(archive_dir),
     .min = 1, .max = PATH_BYTES,
     .text = "A directory in which updates and calls are kept for good before they are removed: as lines of an export, one "
             "compressed file a day, which zcat FILE | tgspool import puts back. While it cannot be written, nothing is "
             "removed. Unset: they are not kept. It is made with mode 0700 if it is missing."},
    {.section = SECTION_SPOOL, .name = "max_db", .type = OPTION_SIZE, .offset = IN_CONFIG(max_db),
     .min = 0, .max = INT64_C(16) << 40, .def = "2G", .reloadable = true,
     .text = "How large the database may become: there intake stops until it is smaller, and at nine tenths of it a "
             "warning comes. Nothing is deleted to make room. 0: no limit."},
    {.section = SECTION_SPOOL, .name = "min_free", .type = OPTION_SIZE, .offset = IN_CONFIG(min_free),
     .min = 0, .max = INT64_C(16) << 40, .def = "256M", .reloadable = true,
     .text = "What must be free on the disk of dir. With less, intake stops: Telegram keeps the updates, webhooks are "
             "answered 503, new calls and imports are refused; handlers go on. It resumes by itself with a tenth more. "
             "0: only a full disk stops it."},
    {.section = SECTION_SPOOL, .name = "reserve", .type = OPTION_RESERVE, .offset = IN_CONFIG(reserve),
     .min = 0, .max = INT64_C(16) << 30, .def = "auto", .reloadable = true,
     .text = "A file in dir that only takes room. On a full disk it is given up, so that the database can be opened and "
             "handlers can end what they have; intake stops until it can be made again. auto: 64M, at most a twentieth "
             "of the file system."},
    {.section = SECTION_SPOOL, .name = "cache", .type = OPTION_SIZE, .offset = IN_CONFIG(cache_bytes),
     .min = 64 << 10, .max = INT64_C(16) << 30, .def = "4M",
     .text = "The database's block cache. More helps only those who list and search large spools."},
    {.section = SECTION_SPOOL, .name = "max_children", .type = OPTION_NUMBER, .offset = IN_CONFIG(max_children),
     .min = 1, .max = 10000, .def = "64", .reloadable = true,
     .text = "How many processes of handlers (exec and worker, of all bots together) may run at once. When there are as "
             "many, further updates wait, and the bots take turns. It costs no tries. Commands of alerts are not counted."},
    /* ---- listen ------------------------------------------------------------------------------------- */
    {.section = SECTION_LISTEN, .name = "socket", .type = OPTION_PATH, .offset = IN_CONFIG(socket),
     .min = 1, .max = SOCKET_BYTES, .def = "/run/tgspool/tgspool.sock",
     .text = "The control socket: the API for the command line and for consumers of deliver: pull."},
    {.section = SECTION_LISTEN, .name = "socket_mode", .type = OPTION_MODE, .offset = IN_CONFIG(socket_mode),
     .min = 0, .max = 0777, .def = "\"0660\"",
     .text = "The socket's permissions. Whoever may write to it can read, replay and discard events."},
    {.section = SECTION_LISTEN, .name = "socket_group", .type = OPTION_TEXT, .offset = IN_CONFIG(socket_group),
     .min = 1, .max = 64,
     .text = "The group that the socket is given to. Unset: the daemon's own."},
    {.section = SECTION_LISTEN, .name = "http", .type = OPTION_PORT, .offset = IN_CONFIG(listen_http),
     .min = 1, .max = PORT_BYTES,
     .text = "Where the API is served to the network, to whoever has the token in api_token_file. Off loopback it needs "
             "tls_cert, as every listener does. Unset: the API is only on the socket."},
    {.section = SECTION_LISTEN, .name = "api_token_file", .type = OPTION_PATH, .offset = IN_CONFIG(api_token_file),
     .min = 1, .max = PATH_BYTES, .secret = true,
     .text = "A private file with the token that callers of the API send as Authorization: Bearer: 16 to 256 of "
             "A-Z a-z 0-9 - . _ ~ + / =. Needed with http, and only there. It is read again on reload."},
    {.section = SECTION_LISTEN, .name = "http_hosts", .type = OPTION_HOSTS, .offset = IN_CONFIG(http_hosts),
     .min = 1, .max = 16, .reloadable = true,
     .text = "Further names under which http is reached in plain, as behind a proxy, beside its address, localhost and the "
             "machine's own name. A request that names another host, or comes from a page of one, is refused, so that no "
             "web page can make a browser talk to tgspool (DNS rebinding). Needed with http only."},
    {.section = SECTION_LISTEN, .name = "webhook", .type = OPTION_PORT, .offset = IN_CONFIG(listen_webhook),
     .min = 1, .max = PORT_BYTES,
     .text = "Where Telegram's webhooks arrive, at the path /hook/NAME of each bot with intake: webhook. Telegram itself, "
             "or a proxy that ends its TLS, must be able to reach it."},
    {.section = SECTION_LISTEN, .name = "telegram_only", .type = OPTION_BOOL, .offset = IN_CONFIG(telegram_only),
     .def = "false",
     .text = "Whether webhooks are taken from the networks of api.telegram.org only, 149.154.160.0/20 and 91.108.4.0/22. "
             "Behind a proxy it needs trusted_proxy. Leave it false with a Bot API server of your own."},
    {.section = SECTION_LISTEN, .name = "trusted_proxy", .type = OPTION_NETS, .offset = IN_CONFIG(trusted_proxy),
     .min = 1, .max = IP_NETS_MAX,
     .text = "The proxies in front of the webhook listener whose X-Forwarded-For is believed. From others it is ignored."},
    {.section = SECTION_LISTEN, .name = "tls_cert", .type = OPTION_PATH, .offset = IN_CONFIG(tls_cert),
     .min = 1, .max = PATH_BYTES,
     .text = "The certificate (PEM, with its chain) of http, webhook and dropin, which all speak TLS then. Without it they "
             "may listen on loopback only. It is read again on reload, and so is the key."},
    {.section = SECTION_LISTEN, .name = "tls_key", .type = OPTION_PATH, .offset = IN_CONFIG(tls_key),
     .min = 1, .max = PATH_BYTES,
     .text = "The private key (PEM) of tls_cert."},
    {.section = SECTION_LISTEN, .name = "dropin", .type = OPTION_PORT, .offset = IN_CONFIG(listen_dropin),
     .min = 1, .max = PORT_BYTES,
     .text = "Where tgspool stands in for api.telegram.org: give a bot's library http://HOST:PORT as API root. Whoever "
             "knows a bot's token, or its dropin_token_file, can call it there."},
    /* ---- alerts ------------------------------------------------------------------------------------- */
    {.section = SECTION_ALERTS, .name = "oldest", .type = OPTION_TIME, .offset = IN_CONFIG(alert_oldest_ms),
     .min = SECONDS(1), .max = HOURS(24 * 30), .def = "5m", .reloadable = true,
     .text = "From which age of a bot's oldest unfinished update or call on there is an alert."},
    {.section = SECTION_ALERTS, .name = "dead", .type = OPTION_NUMBER, .offset = IN_CONFIG(alert_dead),
     .min = 1, .max = 1000000, .def = "1", .reloadable = true,
     .text = "How many updates and calls of a bot must die within repeat for an alert. They are gathered for a minute; those "
             "that a person discarded do not count."},
    {.section = SECTION_ALERTS, .name = "repeat", .type = OPTION_TIME, .offset = IN_CONFIG(alert_repeat_ms),
     .min = SECONDS(1), .max = HOURS(24 * 30), .def = "1h", .reloadable = true,
     .text = "How often an alert is told again while it holds."},
    {.section = SECTION_ALERTS, .name = "command", .type = OPTION_COMMAND, .offset = IN_CONFIG(alert_command),
     .min = 1, .max = PATH_BYTES, .reloadable = true,
     .text = "A program that gets each alert as a line of JSON on its standard input, and ends with status 0 when it is "
             "delivered. It has 30 seconds. What it prints is dropped."},
    {.section = SECTION_ALERTS, .name = "url_file", .type = OPTION_PATH, .offset = IN_CONFIG(alert_url_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true,
     .text = "A private file that holds a URL of http or https, with USER:PASSWORD@ if it asks for one. Each alert is POSTed "
             "there as JSON."},
    {.section = SECTION_ALERTS, .name = "telegram", .type = OPTION_TEXT, .offset = IN_CONFIG(alert_telegram),
     .min = 1, .max = 128, .reloadable = true,
     .text = "BOT CHAT_ID: the chat that each alert is written to, and the bot of this file that writes it. The chat must have "
             "started the bot, or have it as a member. It should not be the only destination."},
    {.section = SECTION_ALERTS, .name = "proxy_file", .type = OPTION_PATH, .offset = IN_CONFIG(alert_proxy_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true,
     .text = "A private file that holds the URL of a proxy for url_file and telegram, as a bot's proxy_file does. Unset: direct, "
             "also where the bot has a proxy."},
    /* ---- log ---------------------------------------------------------------------------------------- */
    {.section = SECTION_LOG, .name = "level", .type = OPTION_WORD, .offset = IN_CONFIG(log_level),
     .words = level_words, .def = "info", .reloadable = true,
     .text = "The least important lines that are written. No level shows tokens, payloads or handlers' texts."},
    {.section = SECTION_LOG, .name = "format", .type = OPTION_WORD, .offset = IN_CONFIG(log_format),
     .words = format_words, .def = "text", .reloadable = true,
     .text = "text: lines for people, of at most 100 columns; what is longer goes on on the next line after \"...\". json: one "
             "object a line, of any length."},
    /* ---- bots --------------------------------------------------------------------------------------- */
    {.section = SECTION_BOTS, .name = "token_file", .type = OPTION_PATH, .offset = IN_BOT(token_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true,
     .text = "A file that holds the bot's token, readable by its owner only (chmod 600). Each bot needs one of "
             "token_file, token_credential and token_env. It is read again on reload and when Telegram refuses the token."},
    {.section = SECTION_BOTS, .name = "token_credential", .type = OPTION_NAME, .offset = IN_BOT(token_credential),
     .min = 1, .max = 255, .reloadable = true, .secret = true,
     .text = "Instead: the name of a file in $CREDENTIALS_DIRECTORY, as systemd's LoadCredential= makes it."},
    {.section = SECTION_BOTS, .name = "token_env", .type = OPTION_NAME, .offset = IN_BOT(token_env),
     .min = 1, .max = 255, .reloadable = true, .secret = true,
     .text = "Instead: the name of an environment variable. Handlers do not get to see it."},
    {.section = SECTION_BOTS, .name = "api_root", .type = OPTION_URL, .offset = IN_BOT(api_root),
     .min = 1, .max = 2000, .def = "https://api.telegram.org", .reloadable = true,
     .text = "The Bot API server. A change drops the stored offset, since another server counts on its own. Plain http "
             "off this machine is warned about: the token goes over it."},
    {.section = SECTION_BOTS, .name = "ca_file", .type = OPTION_PATH, .offset = IN_BOT(ca_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true,
     .text = "Certificates (PEM) to trust for https instead of the system's. Read again on SIGHUP."},
    {.section = SECTION_BOTS, .name = "proxy_file", .type = OPTION_PATH, .offset = IN_BOT(proxy_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true,
     .text = "A private file that holds the URL of a proxy to Telegram: http://, socks5:// or socks5h://, with "
             "user:password@ if it asks for one. With http and socks5h names are resolved at the proxy. Unset: direct."},
    {.section = SECTION_BOTS, .name = "ip", .type = OPTION_WORD, .offset = IN_BOT(ip),
     .words = ip_words, .def = "any", .reloadable = true,
     .text = "The version of IP to reach Telegram by. any: both are raced."},
    {.section = SECTION_BOTS, .name = "intake", .type = OPTION_WORD, .offset = IN_BOT(intake),
     .words = intake_words, .def = "poll", .reloadable = true,
     .text = "How updates are taken. poll: by long polling. webhook: Telegram sends them to the webhook listener. none: not "
             "at all; what is stored is still delivered."},
    {.section = SECTION_BOTS, .name = "webhook_url", .type = OPTION_URL, .offset = IN_BOT(webhook_url),
     .min = 1, .max = 2000, .reloadable = true, .intake = BIT(INTAKE_WEBHOOK),
     .text = "The address that tgspool webhook set gives to Telegram: one that leads to /hook/NAME of the webhook listener. "
             "api.telegram.org takes https only, on port 443, 80, 88 or 8443."},
    {.section = SECTION_BOTS, .name = "webhook_secret_file", .type = OPTION_PATH, .offset = IN_BOT(webhook_secret_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true, .intake = BIT(INTAKE_WEBHOOK),
     .text = "A private file with what Telegram must send as X-Telegram-Bot-Api-Secret-Token: 1 to 256 of "
             "A-Z a-z 0-9 _ -. Needed unless the webhook listener is on loopback, and wise even there."},
    {.section = SECTION_BOTS, .name = "allowed_updates", .type = OPTION_KINDS, .offset = IN_BOT(allowed_updates),
     .min = 1, .max = 100, .def = "[default]", .reloadable = true, .intake = TAKEN_IN,
     .text = "The kinds of update to ask for. default stands for Telegram's own default list, to which kinds may be "
             "added: [default, chat_member]. all stands for every kind known to this version. What is left out here "
             "cannot be had later."},
    {.section = SECTION_BOTS, .name = "poll_timeout", .type = OPTION_TIME, .offset = IN_BOT(poll_timeout_ms),
     .min = 0, .max = SECONDS(50), .step = SECONDS(1), .def = "30s", .reloadable = true, .intake = BIT(INTAKE_POLL),
     .text = "How long Telegram holds a poll that has nothing to give."},
    {.section = SECTION_BOTS, .name = "order", .type = OPTION_WORD, .offset = IN_BOT(order),
     .words = order_words, .def = "chat", .reloadable = true,
     .text = "What is handed over one at a time, in order of arrival: the updates of a chat, of a topic (thread), of the "
             "whole bot, or nothing (none)."},
    {.section = SECTION_BOTS, .name = "deliver", .type = OPTION_WORD, .offset = IN_BOT(deliver),
     .words = deliver_words, .planned_words = deliver_planned, .def = "exec", .reloadable = true,
     .text = "How updates reach the handler. exec: one process an update. worker: long-lived processes, one JSON object a "
             "line. http: a POST like Telegram's webhook. pull: consumers claim them over the API. dropin: the bot asks "
             "the drop-in listener with getUpdates, as it would ask Telegram."},
    {.section = SECTION_BOTS, .name = "command", .type = OPTION_COMMAND, .offset = IN_BOT(command),
     .min = 1, .max = 4095, .reloadable = true, .deliver = PUSHED,
     .text = "The handler's program and arguments. Quotes and backslashes work as in a shell, but no shell runs it: no "
             "variables, no wildcards, no pipes. Needed."},
    {.section = SECTION_BOTS, .name = "url", .type = OPTION_URL, .offset = IN_BOT(url),
     .min = 1, .max = 2000, .reloadable = true, .deliver = BIT(DELIVER_HTTP),
     .text = "Where updates are POSTed. Needed."},
    {.section = SECTION_BOTS, .name = "url_secret_file", .type = OPTION_PATH, .offset = IN_BOT(url_secret_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true, .deliver = BIT(DELIVER_HTTP),
     .text = "A private file with what is sent as X-Telegram-Bot-Api-Secret-Token: 1 to 256 of A-Z a-z 0-9 _ -."},
    {.section = SECTION_BOTS, .name = "dropin_token_file", .type = OPTION_PATH, .offset = IN_BOT(dropin_token_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true,
     .text = "A private file with a token by which the drop-in listener knows this bot, so that the bot needs not hold the "
             "real one. It has the form of a bot's token: digits, a colon, 30 or more of A-Z a-z 0-9 _ -. Needs "
             "listen.dropin."},
    {.section = SECTION_BOTS, .name = "pull_token_file", .type = OPTION_PATH, .offset = IN_BOT(pull_token_file),
     .min = 1, .max = PATH_BYTES, .reloadable = true, .secret = true, .deliver = BIT(DELIVER_PULL),
     .text = "A private file with a token, of the form of api_token_file, that lets its holder claim and answer this bot's "
             "events over listen.http, and nothing else."},
    {.section = SECTION_BOTS, .name = "concurrency", .type = OPTION_NUMBER, .offset = IN_BOT(concurrency),
     .min = 1, .max = 1000, .reloadable = true,
     .def_by_deliver = {[DELIVER_EXEC] = "2", [DELIVER_WORKER] = "1", [DELIVER_HTTP] = "4", [DELIVER_PULL] = "4",
                        [DELIVER_DROPIN] = "4"},
     .text = "How many updates, each of another lane, are with the handler at once."},
    {.section = SECTION_BOTS, .name = "lease", .type = OPTION_TIME, .offset = IN_BOT(lease_ms),
     .min = SECONDS(1), .max = HOURS(12), .def = "60s", .reloadable = true,
     .text = "How long the handler may take for one update. After it the try has failed and the update is handed over "
             "again."},
    {.section = SECTION_BOTS, .name = "retry", .type = OPTION_TIMES, .offset = IN_BOT(retry),
     .min = 0, .max = HOURS(24), .def = "[2s, 5s, 15s, 60s]", .reloadable = true,
     .text = "The waits after the first, second, ... failure of an update; the last one repeats."},
    {.section = SECTION_BOTS, .name = "jitter", .type = OPTION_NUMBER, .offset = IN_BOT(retry.jitter_percent),
     .min = 0, .max = 100, .def = "20", .reloadable = true,
     .text = "By how many percent a wait is made longer or shorter at random."},
    {.section = SECTION_BOTS, .name = "max_attempts", .type = OPTION_NUMBER, .offset = IN_BOT(max_attempts),
     .min = 1, .max = 1000, .def = "8", .reloadable = true,
     .text = "After so many failed tries an update is dead: kept to be looked at, and no longer in the way."},
    {.section = SECTION_BOTS, .name = "expire", .type = OPTION_EXPIRE, .offset = IN_BOT(expire),
     .min = SECONDS(1), .max = HOURS(24 * 365), .def = "off", .reloadable = true,
     .text = "From which age on an update is not worth handling: it becomes dead instead. auto: Telegram's own limits "
             "of each kind. A mapping: as it says, kinds not named never, for instance {callback_query: 10m}."},
    {.section = SECTION_BOTS, .name = "shutdown_wait", .type = OPTION_TIME, .offset = IN_BOT(shutdown_wait_ms),
     .min = 0, .max = HOURS(1), .def = "20s", .reloadable = true,
     .text = "How long a stop waits for running handlers. What is unfinished then is handed over again after the start."},
};
/* clang-format on */

const struct option *option_at(size_t i)
{
    return i < ARRAY_LEN(rows) ? &rows[i] : NULL;
}

const struct option *option_find(enum option_section section, struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].section == section && slice_eq_str(name, rows[i].name))
            return &rows[i];
    return NULL;
}

const char *option_section_name(enum option_section s)
{
    return section_names[s];
}

bool option_section_is_planned(enum option_section s)
{
    for (size_t i = 0; option_at(i); i++)
        if (option_at(i)->section == s && !option_at(i)->planned)
            return false;
    return true;
}

/* "a, b or c" out of the words whose bit is set in mask. */
static void add_words(struct buf *out, const char *const *words, unsigned mask)
{
    unsigned left = 0;

    for (unsigned i = 0; words[i]; i++)
        left += (mask >> i) & 1;
    for (unsigned i = 0; words[i]; i++) {
        if (!((mask >> i) & 1))
            continue;
        left--;
        buf_printf(out, "%s%s", words[i], left > 1 ? ", " : left == 1 ? " or " : "");
    }
}

static void add_times(struct buf *out, const struct option *o)
{
    char from[32], to[32];
    buf_printf(out, "%s to %s", text_from_ms(o->min, from), text_from_ms(o->max, to));
}

void option_add_accepts(struct buf *out, const struct option *o)
{
    switch (o->type) {
    case OPTION_PATH:
        buf_printf(out, "an absolute path of at most %lld bytes", (long long)o->max);
        break;
    case OPTION_TEXT:
        buf_printf(out, "a text of at most %lld bytes", (long long)o->max);
        break;
    case OPTION_NAME:
        buf_add_str(out, "a name made of letters, digits and . _ -");
        break;
    case OPTION_URL:
        buf_add_str(out, "a URL of http or https, http://HOST[:PORT][/PATH]");
        break;
    case OPTION_WORD:
        add_words(out, o->words, ~0u);
        break;
    case OPTION_SYNC:
        buf_add_str(out, "always, off or a time of ");
        add_times(out, o);
        break;
    case OPTION_TIME:
        buf_add_str(out, "a time of ");
        add_times(out, o);
        buf_add_str(out, o->step ? ", in whole seconds" : "");
        break;
    case OPTION_SIZE:
        buf_printf(out, "a size of %lldK to %lldG", (long long)o->min >> 10, (long long)o->max >> 30);
        break;
    case OPTION_RESERVE:
        buf_printf(out, "auto, off or a size of up to %lldG", (long long)o->max >> 30);
        break;
    case OPTION_NUMBER:
        buf_printf(out, "a number of %lld to %lld", (long long)o->min, (long long)o->max);
        break;
    case OPTION_MODE:
        buf_add_str(out, "an octal mode of 0000 to 0777");
        break;
    case OPTION_BOOL:
        buf_add_str(out, "true or false");
        break;
    case OPTION_PORT:
        buf_add_str(out, "ADDRESS:PORT, with [ ] around an IPv6 address, or localhost:PORT");
        break;
    case OPTION_NETS:
        buf_printf(out, "an IP address, a network such as 10.0.0.0/8, or a list of up to %d of them",
                   IP_NETS_MAX);
        break;
    case OPTION_HOSTS:
        buf_printf(out, "a host name without a port, or a list of up to %d of them", (int)o->max);
        break;
    case OPTION_COMMAND:
        buf_add_str(out, "a program and its arguments");
        break;
    case OPTION_TIMES:
        buf_printf(out, "a list of 1 to %d times of ", RETRY_STEPS_MAX);
        add_times(out, o);
        break;
    case OPTION_KINDS:
        buf_add_str(out, "[default], [all] or a list of kinds of update");
        break;
    case OPTION_EXPIRE:
        buf_add_str(out, "off, auto or a mapping of kinds of update to times");
        break;
    }
}

void option_add_applies(struct buf *out, const struct option *o)
{
    if (o->deliver) {
        buf_add_str(out, "deliver: ");
        add_words(out, deliver_words, o->deliver);
    }
    if (o->intake) {
        buf_add_str(out, "intake: ");
        add_words(out, intake_words, o->intake);
    }
}

bool option_applies(const struct option *o, const struct bot_config *bot)
{
    return !bot || ((!o->deliver || (o->deliver & BIT(bot->deliver))) &&
                    (!o->intake || (o->intake & BIT(bot->intake))));
}

const char *option_default(const struct option *o, const struct bot_config *bot)
{
    if (o->def_by_deliver[0])
        return o->def_by_deliver[bot ? bot->deliver : DELIVER_EXEC];
    return o->def;
}

void option_add_default(struct buf *out, const struct option *o)
{
    if (o->def)
        buf_add_str(out, o->def);
    for (size_t i = 0; i < DELIVER_MODES && o->def_by_deliver[i]; i++)
        buf_printf(out, "%s%s (%s)", i ? ", " : "", o->def_by_deliver[i], deliver_words[i]);
}
