/* tgspool config: what is in force and where it comes from; and the list of all options, out of the table. */
#include "cli/command.h"
#include "core/options.h"
#include "daemon/configfile.h"
#include "wire/json.h"

/* ---- the list of options ------------------------------------------------------------------------ */

static void json_text_of(struct json_out *j, const char *key,
                         void (*add)(struct buf *, const struct option *), const struct option *o)
{
    struct buf b = BUF_EMPTY;

    add(&b, o);
    json_kv_text(j, key, buf_slice(&b));
    buf_free(&b);
}

static void option_json(struct json_out *j, const struct option *o)
{
    json_object(j);
    json_kv_cstr(j, "section", option_section_name(o->section));
    json_kv_cstr(j, "name", o->name);
    json_kv_bool(j, "planned", o->planned);
    if (!o->planned) {
        json_text_of(j, "accepts", option_add_accepts, o);
        json_text_of(j, "applies", option_add_applies, o);
        json_text_of(j, "default", option_add_default, o);
        json_kv_bool(j, "reloadable", o->reloadable || o->section == SECTION_BOTS);
        json_kv_cstr(j, "text", o->text);
    }
    json_object_end(j);
}

static void options_json(struct buf *out)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_key(&j, "options");
    json_array(&j);
    for (size_t i = 0; option_at(i); i++)
        option_json(&j, option_at(i));
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(out, '\n');
}

static void options_text(struct buf *out)
{
    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        struct buf b = BUF_EMPTY;
        if (o->planned)
            continue;
        buf_printf(out, "%s.%s%s\n", option_section_name(o->section),
                   o->section == SECTION_BOTS ? "NAME." : "", o->name);
        option_add_accepts(&b, o);
        buf_add_str(&b, "; default: ");
        size_t start = b.n;
        option_add_default(&b, o);
        if (b.n == start)
            buf_add_str(&b, "none");
        if (o->deliver || o->intake) {
            buf_add_str(&b, "; only with ");
            option_add_applies(&b, o);
        }
        if (!o->reloadable)
            buf_add_str(&b, "; a change needs a restart");
        cli_add_wrapped(out, buf_str(&b));
        cli_add_wrapped(out, o->text);
        buf_free(&b);
    }
}

/* ---- the config in force ------------------------------------------------------------------------ */

static void value_json(struct json_out *j, const struct option_value *v)
{
    bool many = v->shape == SHAPE_LIST, map = v->shape == SHAPE_MAP;

    if (v->shape == SHAPE_NONE)
        json_null(j);
    if (many)
        json_array(j);
    if (map)
        json_object(j);
    for (size_t i = 0; i < v->n; i++) {
        if (map)
            json_key(j, v->item[i].key);
        if (v->shape == SHAPE_NUMBER)
            json_raw(j, slice_str(v->item[i].text));
        else
            json_cstr(j, v->item[i].text);
    }
    if (many)
        json_array_end(j);
    if (map)
        json_object_end(j);
}

/* The options of a section that apply, as members "name": {"value", "from", "line"}. */
static void section_json(struct json_out *j, const struct config *c, enum option_section s,
                         const struct bot_config *bot)
{
    json_object(j);
    for (size_t i = 0; option_at(i); i++) {
        const struct option *o = option_at(i);
        struct option_value v;
        if (o->section != s || o->planned || !option_applies(o, bot))
            continue;
        struct config_mark at = option_set_at(o, c, bot);
        json_key(j, o->name);
        json_object(j);
        json_key(j, "value");
        option_get(o, c, bot, &v);
        value_json(j, &v);
        option_value_clear(&v);
        json_kv_cstr(j, "from", at.line ? "file" : "default");
        if (at.line)
            json_kv_uint(j, "line", at.line);
        json_object_end(j);
    }
    json_object_end(j);
}

static void config_json(const struct config *c, struct buf *out)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_kv_cstr(&j, "file", c->path);
    for (enum option_section s = 0; s < SECTION_BOTS; s++) {
        if (option_section_is_planned(s))
            continue;
        json_key(&j, option_section_name(s));
        section_json(&j, c, s, NULL);
    }
    json_key(&j, option_section_name(SECTION_BOTS));
    json_object(&j);
    for (size_t i = 0; i < c->n_bots; i++) {
        json_key(&j, c->bots[i].name);
        section_json(&j, c, SECTION_BOTS, &c->bots[i]);
    }
    json_object_end(&j);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(out, '\n');
}

static int config_run(struct cli *cli, int argc, char **argv)
{
    struct buf out = BUF_EMPTY;
    struct err e = ERR_NONE;

    (void)argc, (void)argv;
    if (cli_flag(cli, "options")) {
        if (cli->json)
            options_json(&out);
        else
            options_text(&out);
    } else {
        struct config *c = configfile_read(cli->config_path, &e);
        if (!c)
            return cli_fail_err(&e);
        if (cli->json)
            config_json(c, &out);
        else
            config_add_yaml(&out, c, true);
        for (size_t i = 0; i < c->n_warnings; i++)
            cli_warn("tgspool config --options", "%s", c->warnings[i]);
        config_free(c);
    }
    cli_put(buf_slice(&out));
    buf_free(&out);
    return cli_finish(EX_OK);
}

static const struct cli_option config_options[] = {{"options", NULL, "list every option instead"},
                                                   {NULL, NULL, NULL}};

const struct command command_config = {
    .name = "config",
    .arguments = "",
    .summary = "show the configuration in force, or all options",
    .usage = "Prints the configuration as tgspool understands it, defaults filled in, each\n"
             "line with the line of the file that it comes from. The output is a config file\n"
             "that means the same. Secrets are not in it: it names the files that hold them.\n"
             "\n"
             "With --options: every option with what it accepts, its default, when it applies\n"
             "and whether a reload (SIGHUP) is enough for a change.\n",
    .options = config_options,
    .min_arguments = 0,
    .max_arguments = 0,
    .run = config_run,
};
