/* Text that comes from outside: strict numbers, and strings made fit to show. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

/* A whole decimal number, with an optional '-', no blanks, no '+', no leading zeros check. Returns 0, or -1
 * if s is not one or is outside min..max. */
int text_to_i64(struct slice s, int64_t min, int64_t max, int64_t *out);

/* A length of time as people write it in the config and in query arguments: a number of seconds, or a number
 * followed by ms, s, m, h or d. Returns 0 and milliseconds, or -1. */
int text_to_ms(struct slice s, int64_t *ms);
/* "12.345" in thousandths; more decimals are cut. Returns 0 or -1. */
int text_to_thousandths(struct slice s, int64_t *out);
/* As text_to_ms, and seconds may have decimals. */
int text_seconds(struct slice s, int64_t *ms);
/* The shortest of these spellings, e.g. "90s", "3d", "20ms". Returns out. */
char *text_from_ms(int64_t ms, char out[32]);

/* A size: a number of bytes, or a number followed by K, M or G (powers of 1024). Returns 0, or -1. */
int text_to_size(struct slice s, int64_t *bytes);

/* A size for people: "512 KB", "120 MB", "1.9 GB" (of 1024). out holds at least 32 bytes. Returns out. */
char *text_bytes(int64_t bytes, char out[32]);

/* RFC 3339 in UTC with milliseconds, "2026-11-29T17:46:08.123Z". out holds at least 32 bytes. Returns out. */
char *text_time(int64_t unix_ms, char out[32]);
/* An age for people: "850ms", "12s", "5m", "3h20m", "4d2h". Returns out. */
char *text_age(int64_t ms, char out[32]);

/* Length of the well-formed UTF-8 character at p, which has n > 0 bytes (RFC 3629, section 4), or 0. */
size_t text_utf8_len(const void *p, size_t n);

/* Appends s with what is not UTF-8 replaced by U+FFFD, and control characters (but tab and newline if
 * `lines`) by a blank, at most max bytes, never cutting a character. */
void text_add_clean(struct buf *b, struct slice s, size_t max, bool lines);

/* Replaces everything that looks like a Telegram token (digits, ':', 30 or more of [A-Za-z0-9_-]) by
 * "<token>", in place. */
void text_scrub_tokens(struct buf *b);

/* How many slips lie between two names: letters put in, left out, changed, or swapped with a neighbour. Names
 * of more than 40 bytes are 40 apart. For "did you mean". */
unsigned text_distance(struct slice a, struct slice b);

/* Whether both say the same; NULL is the same as NULL only. */
bool text_same(const char *a, const char *b);

/* Whether s is a bot's short name: [A-Za-z0-9_-]{1,32}. */
bool text_is_bot_name(struct slice s);

#endif
