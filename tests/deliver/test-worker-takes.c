/* A worker that never reads its standard input. It is linked with a worker.c of its own, in which a child has less time to
 * read an event (TAKES_MS, in tests.mk). */
#include "../unit/unit.h"

#include "base/clock.h"
#include "deliver/slots.h"
#include "rig.h"

/* It outlives many leases, as one that starts slowly may; then it is ended, and the event has cost no try. */
static void one_that_never_reads(void **state)
{
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_WORKER);
    rig_handler(&r, "mute");
    fake_add(&r.box, slice_str("{\"update_id\":101}"));
    r.box.lease_ms = 100;
    rig_open(&r, NULL);
    int64_t began = clock_now();
    rig_run(&r, 1);
    assert_true(clock_now() - began >= TAKES_MS);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_UNAVAILABLE);
    assert_string_equal(r.box.outcomes[0].error, "the worker does not read events");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_that_never_reads)};

    return cmocka_run_group_tests_name("worker takes", tests, NULL, NULL);
}
