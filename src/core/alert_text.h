/* The words of alerts: what happened, and the command to run. */
#ifndef CORE_ALERT_TEXT_H
#define CORE_ALERT_TEXT_H

#include "core/alerts.h"

/* What the words are made of; what an alert is not about may stay unset. Borrowed. */
struct alert_text {
    const struct alert_bot *bot;
    int64_t oldest_ms, quiet_ms;
    const char *store_why, *corruption_why, *disk_why;
    bool at_start; /* the daemon does not start for that */
    bool gone;     /* the bot left the config */
};

/* Writes message and next of an alert whose other members are set. */
void alert_write_text(struct alert *a, const struct alert_text *t, int64_t now);

#endif
