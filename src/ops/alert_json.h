/* An alert as it is sent: the JSON that commands and URLs get (design.md section 10), and the text of a message. */
#ifndef OPS_ALERT_JSON_H
#define OPS_ALERT_JSON_H

#include "base/buf.h"
#include "core/alert.h"

/* Appends one line without its end:
 *     {"alert","bot": string or null,"state": "firing" | "over","value","since","message","next"} */
void alert_add_json(struct buf *out, const struct alert *a);
/* Appends two or three lines for people. */
void alert_add_text(struct buf *out, const struct alert *a);

#endif
