/* The open batch against the plainest model there is: an array that is searched from its start. */
#include "../unit/unit.h"

#include "store/overlay.h"

struct row {
    char key[8], value[64];
    bool there, deleted;
};

#define ROWS 64

static uint32_t seed;

static unsigned below(unsigned n)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
}

/* Every row of the model, in order, and nothing else. */
static void assert_same(const struct overlay *o, const struct row *rows)
{
    const struct overlay_entry *e = overlay_first(o), *before = NULL;
    size_t n = 0, bytes = 0;

    for (size_t i = 0; i < ROWS; i++) {
        const struct overlay_entry *found = overlay_find(o, slice_str(rows[i].key));
        const struct overlay_entry *at = overlay_seek(o, slice_str(rows[i].key));
        assert_ptr_equal(at, e);
        assert_ptr_equal(overlay_before(o, slice_str(rows[i].key)), before);
        if (!rows[i].there) {
            assert_null(found);
            continue;
        }
        assert_non_null(e);
        assert_ptr_equal(found, e);
        assert_slice(overlay_key(e), rows[i].key);
        assert_int_equal(overlay_deleted(e), rows[i].deleted);
        assert_slice(overlay_value(e), rows[i].deleted ? "" : rows[i].value);
        bytes += strlen(rows[i].key) + (rows[i].deleted ? 0 : strlen(rows[i].value));
        n++;
        before = e;
        e = overlay_next(e);
    }
    assert_null(e);
    assert_ptr_equal(overlay_before(o, slice_str("99")), before);
    assert_int_equal(overlay_count(o), n);
    assert_int_equal(overlay_bytes(o), bytes);
}

static void random_operations(void **state)
{
    struct overlay *o = overlay_new();
    struct row rows[ROWS] = {{.there = false}};

    (void)state;
    for (seed = 1; seed < 4; seed++) {
        uint32_t first = seed;
        memset(rows, 0, sizeof(rows));
        for (size_t i = 0; i < ROWS; i++)
            snprintf(rows[i].key, sizeof(rows[i].key), "%02zu", i);
        for (int i = 0; i < 2000; i++) {
            struct row *r = &rows[below(ROWS)];
            r->there = true;
            r->deleted = below(3) == 0;
            if (r->deleted) {
                overlay_delete(o, slice_str(r->key));
            } else {
                memset(r->value, 0, sizeof(r->value));
                memset(r->value, 'a' + (int)below(26), below(sizeof(r->value)));
                overlay_put(o, slice_str(r->key), slice_str(r->value));
            }
            if (i % 50 == 0)
                assert_same(o, rows);
        }
        assert_same(o, rows);
        overlay_clear(o);
        assert_int_equal(overlay_count(o), 0);
        assert_null(overlay_first(o));
        seed = first;
    }
    overlay_free(o);
}

static void keys_are_ordered_as_bytes(void **state)
{
    struct overlay *o = overlay_new();
    static const struct slice sorted[] = {{"", 0},     {"\0", 1},   {"\0\0", 2}, {"\0\1", 2},
                                          {"a", 1},    {"a\0", 2},  {"aa", 2},   {"b", 1},
                                          {"\x7f", 1}, {"\x80", 1}, {"\xff", 1}, {"\xff\xff", 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++) /* put in another order */
        overlay_put(o, sorted[i * 5 % ARRAY_LEN(sorted)], slice_str("v"));
    const struct overlay_entry *e = overlay_first(o);
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++, e = overlay_next(e))
        assert_true(slice_eq(overlay_key(e), sorted[i]));
    assert_null(e);
    overlay_free(o);
}

/* Pieces larger than a chunk, and a value that grows. */
static void large_values(void **state)
{
    struct overlay *o = overlay_new();
    char *large = xmalloc(300000);

    (void)state;
    for (size_t n = 1; n <= 300000; n *= 3) {
        memset(large, 'x', n);
        overlay_put(o, slice_str("k"), slice_make(large, n));
        overlay_put(o, slice_str("other"), slice_str("small"));
        assert_true(slice_eq(overlay_value(overlay_find(o, slice_str("k"))), slice_make(large, n)));
    }
    assert_slice(overlay_value(overlay_find(o, slice_str("other"))), "small");
    free(large);
    overlay_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(keys_are_ordered_as_bytes),
        cmocka_unit_test(large_values),
    };
    return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
