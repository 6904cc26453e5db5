/* Answers in the Bot API's form. Pure. */
#ifndef SERVE_DROPIN_ANSWER_H
#define SERVE_DROPIN_ANSWER_H

#include <stdint.h>

#include "base/buf.h"

/* {"ok":false,"error_code":code,"description":...} */
void dropin_error(struct buf *out, int code, const char *description);
/* {"ok":true,"result":value}, with a description if it is not NULL. value is JSON. */
void dropin_result(struct buf *out, const char *value, const char *description);

/* An update under the id it is served by: its bytes as they came, but for that number. */
void dropin_update(struct buf *out, struct slice update, int64_t served_id);

#endif
