/* How a bot's intake stands, in few words: what alerts, metrics and readiness go by. Made by daemon/bots. */
#ifndef CORE_STANDING_H
#define CORE_STANDING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"

/* How a poll failed: the labels of tgspool_poll_errors_total. */
enum poll_error {
    POLL_ERROR_NETWORK,    /* no answer, or half of one */
    POLL_ERROR_UNREADABLE, /* an answer that cannot be read */
    POLL_ERROR_TOKEN,      /* the token's file, read anew, gives none that can be used */
    POLL_ERROR_401,
    POLL_ERROR_404,
    POLL_ERROR_409,
    POLL_ERROR_429,
    POLL_ERROR_4XX, /* any other */
    POLL_ERROR_5XX,
    POLL_ERRORS
};
/* How webhooks of a bot were answered: the labels of tgspool_webhooks_total. */
enum hook_answer {
    HOOK_200, /* taken, durably */
    HOOK_400, /* no update in the body */
    HOOK_401, /* a wrong secret */
    HOOK_503, /* nothing could be taken: Telegram sends it again */
    HOOK_ANSWERS
};
const char *hook_answer_name(enum hook_answer a); /* "200", ... */

/* "network", "401", "5xx", ... */
const char *poll_error_name(enum poll_error e);

struct intake_standing {
    enum intake_mode mode;
    int64_t failing_since; /* 0: it works, or a person or the store holds it */
    bool for_a_person;     /* that will not pass by itself: the token, another program that takes the updates */
    char reason[256];      /* why it fails, as a sentence; "" if it does not */
    int64_t good_at;       /* of the latest good poll, or the latest webhook taken; 0: none since the start */
    int64_t pending;       /* updates that wait at Telegram; -1: not known */
    int64_t asked_at;      /* when that was so; 0: never */
    uint64_t errors[POLL_ERRORS];   /* polls that failed, since the start */
    uint64_t answers[HOOK_ANSWERS]; /* to webhooks, since the start */
};

#endif
