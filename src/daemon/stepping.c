#include "daemon/stepping.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "spool/spool.h"

#define EVERY SECONDS(10)
#define TELL MINUTES(1)

static void tell(struct stepping *s, int64_t ahead)
{
    char age[32];

    s->told = ahead;
    if (llabs(ahead) < TELL)
        log_info(NULL, "the clock stands again where it stood at the start");
    else
        log_warn(NULL,
                 "the clock was set %s by %s since the start: this goes on by the old one%s; next: "
                 "systemctl restart tgspool",
                 ahead < 0 ? "back" : "forward", text_age(llabs(ahead), age),
                 ahead < -SPOOL_CLOCK_TOO_FAR_MS ? " and removes nothing" : "");
}

int64_t stepping_tick(struct stepping *s, struct spool *sp, int64_t now)
{
    if (now < s->at)
        return s->at;
    s->at = now + EVERY;
    int64_t ahead = clock_wall_ms() - now;
    spool_clock_ahead(sp, -ahead);
    if (llabs(ahead - s->told) >= TELL)
        tell(s, ahead);
    return s->at;
}
