/* The envelope in JSON: for workers' lines and for the lease API. */
#include "wire/envelope_json.h"

void envelope_json(struct json_out *j, const struct envelope *e)
{
    for (int f = 0; f < ENVELOPE_FIELDS; f++) {
        if (!e->has[f])
            continue;
        json_key(j, envelope_names[f].json);
        if (envelope_names[f].number)
            json_raw(j, slice_str(e->value[f]));
        else
            json_text(j, slice_str(e->value[f]));
    }
}
