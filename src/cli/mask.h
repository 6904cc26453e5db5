/* Payloads for people's eyes: what messages say is hidden, what an event is stays to be seen. Pure. */
#ifndef CLI_MASK_H
#define CLI_MASK_H

#include "wire/json.h"

/* Writes a value as JSON. Unless `reveal`, every string that is not known to be harmless by its member's name
 * (ids, types, kinds, language codes) becomes "<N chars>"; numbers, booleans and structure stay, but for
 * phone numbers and places. */
void mask_write(struct json_out *j, const struct json *v, bool reveal);

#endif
