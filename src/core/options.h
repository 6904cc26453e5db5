/* The table of options: every option of tgspool.yaml is one row, and from the rows come parsing, defaults,
 * `tgspool config`, the man page's list and the check of the sample file. config_parse and its kin are
 * declared in core/config.h. */
#ifndef CORE_OPTIONS_H
#define CORE_OPTIONS_H

#include "base/buf.h"
#include "core/config.h"

enum option_section { SECTION_SPOOL, SECTION_LISTEN, SECTION_ALERTS, SECTION_LOG, SECTION_BOTS, SECTIONS };

enum option_type {
    OPTION_PATH,    /* char *: an absolute path of min..max bytes */
    OPTION_TEXT,    /* char * */
    OPTION_NAME,    /* char *: [A-Za-z0-9_.-], as of a file or an environment variable */
    OPTION_URL,     /* char *: http or https */
    OPTION_WORD,    /* an enum */
    OPTION_SYNC,    /* enum sync_mode at the offset; sync_ms is set with it */
    OPTION_TIME,    /* int64_t milliseconds */
    OPTION_SIZE,    /* int64_t bytes */
    OPTION_RESERVE, /* int64_t bytes, or RESERVE_AUTO */
    OPTION_NUMBER,  /* unsigned */
    OPTION_MODE,    /* unsigned, written in octal */
    OPTION_BOOL,    /* bool */
    OPTION_PORT,    /* char *: HOST:PORT to listen on, as ip_port_parse takes it */
    OPTION_NETS,    /* struct ip_nets */
    OPTION_HOSTS,   /* char **: host names; NULL: none */
    OPTION_COMMAND, /* char ** */
    OPTION_TIMES,   /* struct retry_schedule, its steps */
    OPTION_KINDS,   /* char **; n_allowed_updates is set with it */
    OPTION_EXPIRE,  /* enum expire_mode; expire_rules are set with it */
};

#define DELIVER_MODES 5

struct option {
    enum option_section section;
    const char *name;
    enum option_type type;
    size_t offset;            /* of the field in struct config, or in struct bot_config for SECTION_BOTS */
    int64_t min, max;         /* of the value, or of a text's length */
    int64_t step;             /* the value is a multiple of it; 0: any */
    const char *const *words; /* of OPTION_WORD, by the enum's value; NULL-terminated */
    const char *const *planned_words;
    const char *def;                           /* as it would stand in the file; NULL: none */
    const char *def_by_deliver[DELIVER_MODES]; /* instead of def, where it depends on the bot's deliver */
    bool reloadable;
    bool planned; /* of a later version: only section and name are set */
    bool secret;  /* names where a secret is: a value given here may be the secret itself, so is not shown */
    unsigned deliver; /* bits 1 << enum deliver_mode for which it applies; 0: all */
    unsigned intake;  /* likewise for enum intake_mode */
    const char *text; /* one or more sentences for the man page */
};

/* Rows one by one, those of a section together: NULL past the end. */
const struct option *option_at(size_t i);
const struct option *option_find(enum option_section section, struct slice name);
const char *option_section_name(enum option_section s);
/* Whether all of its options are of a later version. */
bool option_section_is_planned(enum option_section s);
/* What is accepted, e.g. "a time of 1s to 12h". */
void option_add_accepts(struct buf *out, const struct option *o);
/* When it applies, e.g. "deliver: exec or worker"; nothing if always. */
void option_add_applies(struct buf *out, const struct option *o);
bool option_applies(const struct option *o, const struct bot_config *bot);
/* The default as it would stand in the file, or NULL; `bot` may be NULL. */
const char *option_default(const struct option *o, const struct bot_config *bot);
/* The default for people: nothing if there is none; "2 (exec), 1 (worker), ..." where it depends. */
void option_add_default(struct buf *out, const struct option *o);

/* A value read back from a config, as text: what `tgspool config` shows and reload compares. */
enum option_shape { SHAPE_NONE, SHAPE_TEXT, SHAPE_NUMBER, SHAPE_LIST, SHAPE_MAP };

struct option_item {
    char *key; /* of SHAPE_MAP */
    char *text;
};

struct option_value {
    enum option_shape shape;
    struct option_item *item; /* one, but for SHAPE_LIST and SHAPE_MAP */
    size_t n;
};

/* `bot` is NULL for the sections that are not a bot's. To be cleared. */
void option_get(const struct option *o, const struct config *c, const struct bot_config *bot,
                struct option_value *out);
void option_value_clear(struct option_value *v);
/* Appends the value as YAML that parses back to it; nothing for SHAPE_NONE. */
void option_value_add_yaml(struct buf *out, const struct option_value *v);

/* Appends a config file that means the same, with all defaults spelled out; what does not apply is left out.
 * `sources`: a comment on each line says where the value comes from. */
void config_add_yaml(struct buf *out, const struct config *c, bool sources);

/* Where the file sets an option; line 0: it does not. */
struct config_mark option_set_at(const struct option *o, const struct config *c,
                                 const struct bot_config *bot);
/* An error about what an option of a bot, or with bot NULL of another section, leads to, with PATH:LINE:COLUMN
 * (of the bot's section if the option is not set). The text in e is kept behind it. Returns -1. */
int option_err_prefix(struct err *e, const struct config *c, const struct bot_config *bot, const char *name);

#endif
