/* Reads secrets and checks their form, so that a wrong file is told of before anything is sent anywhere. */
#include "daemon/secrets.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/options.h"
#include "proc/env.h"
#include "wire/url.h"

#define TOKEN_SECRET_MIN 30
#define HEADER_SECRET_MAX 256
#define BEARER_MIN 16
#define BEARER_MAX 256
#define SECRET_FILE_MAX 4096
#define TOKEN_FORM "accepted: digits, a colon, and 30 or more of A-Z a-z 0-9 _ -, as @BotFather gives it"

/* ---- forms -------------------------------------------------------------------------------------- */

/* How many bytes at the start of s are of the alphabet of tokens. */
static size_t token_span(struct slice s)
{
    size_t i = 0;
    while (i < s.n && (isalnum((unsigned char)s.p[i]) || s.p[i] == '_' || s.p[i] == '-'))
        i++;
    return i;
}

bool secrets_parse_token(struct slice text, int64_t *bot_id)
{
    const char *colon = text.n ? memchr(text.p, ':', text.n) : NULL;
    if (!colon)
        return false;
    struct slice id = slice_make(text.p, (size_t)(colon - text.p));
    struct slice secret = slice_make(colon + 1, text.n - id.n - 1);
    return id.n > 0 && id.p[0] != '-' && text_to_i64(id, 1, INT64_MAX, bot_id) == 0 &&
           secret.n >= TOKEN_SECRET_MIN && token_span(secret) == secret.n;
}

/* The token and its secret half: either in a line of the log would give the bot away. */
static void hide_token(const char *token)
{
    log_add_secret(slice_str(token));
    log_add_secret(slice_str(strchr(token, ':') + 1));
}

/* ---- reading ------------------------------------------------------------------------------------ */

/* A file of $CREDENTIALS_DIRECTORY. systemd keeps that directory private; the files' own modes depend on its
 * version.
 */
static int read_credential(const char *name, struct buf *out, struct err *e)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY"); /* hidden from children by proc/env */

    if (!dir)
        return err_set(e, EX_CONFIG,
                       "$CREDENTIALS_DIRECTORY is not set; start tgspool from a unit with LoadCredential=");
    char *path = xasprintf("%s/%s", dir, name);
    int rc = file_read(path, SECRET_FILE_MAX, out, e);
    free(path);
    while (out->n && isspace((unsigned char)out->p[out->n - 1]))
        out->p[--out->n] = '\0';
    if (rc == 0 && out->n == 0)
        return err_set(e, EX_CONFIG, "the credential %s is empty", name);
    return rc;
}

/* Hidden from all handlers from now on, also from those of other bots. */
static int read_env(const char *name, struct buf *out, struct err *e)
{
    const char *value = getenv(name);

    proc_env_hide(name);
    if (!value || !*value)
        return err_set(e, EX_CONFIG, "the environment variable %s is %s", name, value ? "empty" : "not set");
    buf_add_str(out, value);
    return 0;
}

/* The text of the bot's token; the option that it is read by, and what that names. */
static int read_token_text(const struct bot_config *bot, struct buf *out, const char **option,
                           const char **place, struct err *e)
{
    *place = bot->token_file         ? bot->token_file
             : bot->token_credential ? bot->token_credential
                                     : bot->token_env;
    if (bot->token_file) {
        *option = "token_file";
        return file_read_secret(bot->token_file, out, e);
    }
    if (bot->token_credential) {
        *option = "token_credential";
        return read_credential(bot->token_credential, out, e);
    }
    *option = "token_env";
    return read_env(bot->token_env, out, e);
}

int secrets_read_token(const struct config *c, const struct bot_config *bot, char **token, int64_t *bot_id,
                       struct err *e)
{
    struct buf b = BUF_EMPTY;
    const char *option, *place;

    int rc = read_token_text(bot, &b, &option, &place, e);
    if (rc == 0 && !secrets_parse_token(buf_slice(&b), bot_id))
        rc = err_set(e, EX_CONFIG, "what %s holds is not a bot token; " TOKEN_FORM, place);
    if (rc < 0) {
        buf_free(&b);
        e->exit_code = EX_CONFIG;
        return option_err_prefix(e, c, bot, option);
    }
    *token = buf_steal(&b);
    hide_token(*token);
    return 0;
}

/* The password of a URL as it stands in its file, still percent-encoded, and the URL with it. */
static void hide_login(const struct buf *url)
{
    const char *at = strrchr(buf_str(url), '@');

    if (!at)
        return;
    log_add_secret(buf_slice(url));
    const char *user = strstr(url->p, "://") + 3, *colon = strchr(user, ':');
    if (colon && colon < at)
        log_add_secret(slice_make(colon + 1, (size_t)(at - colon - 1)));
}

#define URL_SECRET_MIN 12 /* a shorter path says nothing, and may be a word of the log */
#define SCHEME(s) (1u << (s))

/* A private file with a URL of one of these schemes. */
static int read_url(const char *path, unsigned schemes, const char *accepted, struct buf *out, struct err *e)
{
    struct url u;
    int rc = 0;

    if (file_read_secret(path, out, e) < 0 || url_parse(buf_str(out), &u, e) < 0)
        return -1;
    if (!(schemes & SCHEME(u.scheme)))
        rc = err_set(e, EX_CONFIG, "%s holds a URL of another kind; accepted: %s", path, accepted);
    else if (u.password)
        log_add_secret(slice_str(u.password));
    url_free(&u);
    if (rc == 0)
        hide_login(out);
    return rc;
}

/* The proxy's URL, which must be one that net/ can use. */
static int read_proxy(const char *path, char **out, struct err *e)
{
    struct buf b = BUF_EMPTY;
    int rc = read_url(path, SCHEME(URL_HTTP) | SCHEME(URL_SOCKS5) | SCHEME(URL_SOCKS5H),
                      "http://, socks5:// or socks5h://, then [USER:PASSWORD@]HOST[:PORT]", &b, e);

    if (rc == 0)
        *out = buf_steal(&b);
    buf_free(&b);
    return rc;
}

/* Where alerts go: whoever knows the URL can send there. */
static int read_alert_url(const char *path, char **out, struct err *e)
{
    struct buf b = BUF_EMPTY;
    int rc = read_url(path, SCHEME(URL_HTTP) | SCHEME(URL_HTTPS),
                      "http:// or https://, then [USER:PASSWORD@]HOST[:PORT][/PATH]", &b, e);

    if (rc == 0) {
        const char *path_of_url = strchr(strstr(b.p, "://") + 3, '/');
        if (path_of_url && strlen(path_of_url) >= URL_SECRET_MIN)
            log_add_secret(slice_str(path_of_url));
        log_add_secret(buf_slice(&b));
        *out = buf_steal(&b);
    }
    buf_free(&b);
    return rc;
}

/* ---- forms of what else a file may hold: whether s is of it ------------------------------------- */

static bool is_header_secret(struct slice s)
{
    return s.n <= HEADER_SECRET_MAX && token_span(s) == s.n;
}

static bool is_alias(struct slice s)
{
    int64_t id;
    return secrets_parse_token(s, &id);
}

/* RFC 6750, section 2.1: b64token. */
static bool is_bearer(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && !strchr("-._~+/=", s.p[i]))
            return false;
    return s.n >= BEARER_MIN && s.n <= BEARER_MAX;
}

struct form {
    bool (*fits)(struct slice s);
    const char *accepted;
};

static const struct form header_secret = {is_header_secret, "1 to 256 of A-Z a-z 0-9 _ -"};
static const struct form alias = {is_alias, "digits, a colon, and 30 or more of A-Z a-z 0-9 _ -"};
static const struct form bearer = {is_bearer, "16 to 256 of A-Z a-z 0-9 - . _ ~ + / ="};

/* A private file of that form; path NULL: none, and *out stays NULL. */
static int read_form(const char *path, const struct form *form, char **out, struct err *e)
{
    struct buf b = BUF_EMPTY;

    if (!path)
        return 0;
    int rc = file_read_secret(path, &b, e);
    if (rc == 0 && !form->fits(buf_slice(&b)))
        rc = err_set(e, EX_CONFIG, "the secret in %s is not one; accepted: %s", path, form->accepted);
    if (rc < 0) {
        buf_free(&b);
        return -1;
    }
    log_add_secret(buf_slice(&b));
    *out = buf_steal(&b);
    return 0;
}

int secrets_read_api_token(const struct config *c, char **out, struct err *e)
{
    *out = NULL;
    if (read_form(c->api_token_file, &bearer, out, e) == 0)
        return 0;
    e->exit_code = EX_CONFIG;
    return option_err_prefix(e, c, NULL, "api_token_file");
}

int secrets_read_alerts(const struct config *c, struct alert_secrets *out, struct err *e)
{
    const char *option = "url_file";
    int rc = 0;

    *out = (struct alert_secrets){0};
    if (c->alert_url_file)
        rc = read_alert_url(c->alert_url_file, &out->url, e);
    if (rc == 0 && c->alert_proxy_file) {
        option = "proxy_file";
        rc = read_proxy(c->alert_proxy_file, &out->proxy_url, e);
    }
    if (rc == 0)
        return 0;
    secrets_clear_alerts(out);
    e->exit_code = EX_CONFIG;
    return option_err_prefix(e, c, NULL, option);
}

void secrets_clear_alerts(struct alert_secrets *s)
{
    free(s->url);
    free(s->proxy_url);
    *s = (struct alert_secrets){0};
}

int secrets_read(const struct config *c, const struct bot_config *bot, struct bot_secrets *out, struct err *e)
{
    const struct {
        const char *option, *path;
        const struct form *form;
        char **out;
    } rows[] = {
        {"url_secret_file", bot->url_secret_file, &header_secret, &out->url_secret},
        {"webhook_secret_file", bot->webhook_secret_file, &header_secret, &out->webhook_secret},
        {"dropin_token_file", bot->dropin_token_file, &alias, &out->dropin_token},
        {"pull_token_file", bot->pull_token_file, &bearer, &out->pull_token},
    };
    const char *option = "proxy_file";
    int rc = 0;

    *out = (struct bot_secrets){0};
    file_stamp(bot->ca_file, out->ca_stamp);
    if (secrets_read_token(c, bot, &out->token, &out->bot_id, e) < 0)
        return -1;
    if (bot->proxy_file)
        rc = read_proxy(bot->proxy_file, &out->proxy_url, e);
    for (size_t i = 0; i < ARRAY_LEN(rows) && rc == 0; i++) {
        option = rows[i].option;
        rc = read_form(rows[i].path, rows[i].form, rows[i].out, e);
    }
    if (rc < 0) {
        secrets_clear(out);
        e->exit_code = EX_CONFIG;
        return option_err_prefix(e, c, bot, option);
    }
    if (out->dropin_token)
        log_add_secret(slice_str(strchr(out->dropin_token, ':') + 1));
    return 0;
}

void secrets_clear(struct bot_secrets *s)
{
    char *const all[] = {s->token,          s->proxy_url,    s->url_secret,
                         s->webhook_secret, s->dropin_token, s->pull_token};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        free(all[i]);
    *s = (struct bot_secrets){0};
}
