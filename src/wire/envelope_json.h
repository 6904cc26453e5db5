/* The envelope as members of a JSON object. */
#ifndef WIRE_ENVELOPE_JSON_H
#define WIRE_ENVELOPE_JSON_H

#include "core/envelope.h"
#include "wire/json.h"

/* Writes its fields, by their JSON names, into the object that is open. */
void envelope_json(struct json_out *j, const struct envelope *e);

#endif
