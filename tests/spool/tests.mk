# Spool tests: a real store in a directory of its own, a clock that the test moves, a scripted deliverer.
SPOOL_LIBS = libspool.a libstore.a libwire.a libcore.a libbase.a $(YAJL_LIBS) $(ROCKSDB_LIBS) $(OPENSSL_LIBS) \
	$(ZLIB_LIBS) -lcmocka
SPOOL_WORLD = tests/spool/world.c tests/spool/world.h
SPOOL_COPY = tests/spool/copy.c tests/spool/copy.h $(SPOOL_WORLD)
SPOOL_LOGS = tests/spool/logs.c tests/spool/logs.h $(SPOOL_COPY)
SPOOL_VERBS = tests/spool/verbs.c tests/spool/verbs.h $(SPOOL_WORLD)
SPOOL_MODEL = tests/spool/model.c tests/spool/model.h $(SPOOL_WORLD)

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/spool/test-ages \
	tests/spool/test-archive \
	tests/spool/test-backlog \
	tests/spool/test-calls \
	tests/spool/test-compact \
	tests/spool/test-damage \
	tests/spool/test-disk \
	tests/spool/test-failures \
	tests/spool/test-foreign \
	tests/spool/test-keys \
	tests/spool/test-manifest \
	tests/spool/test-migrate \
	tests/spool/test-model \
	tests/spool/test-outcomes \
	tests/spool/test-overlay \
	tests/spool/test-people \
	tests/spool/test-repair \
	tests/spool/test-restart \
	tests/spool/test-restored \
	tests/spool/test-retain \
	tests/spool/test-serve \
	tests/spool/test-space \
	tests/spool/test-stall \
	tests/spool/test-stepped \
	tests/spool/test-ticks \
	tests/spool/test-torn \
	tests/spool/test-verify
endif

tests_spool_test_ages_SOURCES = tests/spool/test-ages.c $(SPOOL_WORLD)
tests_spool_test_ages_LDADD = $(SPOOL_LIBS)
tests_spool_test_archive_SOURCES = tests/spool/test-archive.c
tests_spool_test_archive_LDADD = libops.a libbase.a $(ZLIB_LIBS) -lcmocka
tests_spool_test_backlog_SOURCES = tests/spool/test-backlog.c $(SPOOL_WORLD)
tests_spool_test_backlog_LDADD = $(SPOOL_LIBS)
tests_spool_test_calls_SOURCES = tests/spool/test-calls.c $(SPOOL_VERBS)
tests_spool_test_calls_LDADD = $(SPOOL_LIBS)
tests_spool_test_compact_SOURCES = tests/spool/test-compact.c $(SPOOL_WORLD)
tests_spool_test_compact_LDADD = $(SPOOL_LIBS)
tests_spool_test_damage_SOURCES = tests/spool/test-damage.c $(SPOOL_COPY)
tests_spool_test_damage_LDADD = $(SPOOL_LIBS)
tests_spool_test_disk_SOURCES = tests/spool/test-disk.c
tests_spool_test_disk_LDADD = libops.a libstore.a libbase.a -lcmocka
tests_spool_test_failures_SOURCES = tests/spool/test-failures.c $(SPOOL_WORLD)
tests_spool_test_failures_LDADD = $(SPOOL_LIBS)
tests_spool_test_foreign_SOURCES = tests/spool/test-foreign.c $(SPOOL_LOGS)
tests_spool_test_foreign_LDADD = $(SPOOL_LIBS)
tests_spool_test_keys_SOURCES = tests/spool/test-keys.c $(SPOOL_VERBS)
tests_spool_test_keys_LDADD = $(SPOOL_LIBS)
tests_spool_test_manifest_SOURCES = tests/spool/test-manifest.c $(SPOOL_LOGS)
tests_spool_test_manifest_LDADD = $(SPOOL_LIBS)
tests_spool_test_migrate_SOURCES = tests/spool/test-migrate.c $(SPOOL_WORLD)
tests_spool_test_migrate_LDADD = $(SPOOL_LIBS)
tests_spool_test_model_SOURCES = tests/spool/test-model.c $(SPOOL_MODEL)
tests_spool_test_model_LDADD = $(SPOOL_LIBS)
tests_spool_test_outcomes_SOURCES = tests/spool/test-outcomes.c $(SPOOL_WORLD)
tests_spool_test_outcomes_LDADD = $(SPOOL_LIBS)
tests_spool_test_overlay_SOURCES = tests/spool/test-overlay.c
tests_spool_test_overlay_LDADD = libstore.a libbase.a -lcmocka
tests_spool_test_people_SOURCES = tests/spool/test-people.c $(SPOOL_WORLD)
tests_spool_test_people_LDADD = $(SPOOL_LIBS)
tests_spool_test_repair_SOURCES = tests/spool/test-repair.c $(SPOOL_WORLD)
tests_spool_test_repair_LDADD = $(SPOOL_LIBS)
tests_spool_test_restart_SOURCES = tests/spool/test-restart.c $(SPOOL_WORLD)
tests_spool_test_restart_LDADD = $(SPOOL_LIBS)
tests_spool_test_restored_SOURCES = tests/spool/test-restored.c $(SPOOL_WORLD)
tests_spool_test_restored_LDADD = $(SPOOL_LIBS)
tests_spool_test_retain_SOURCES = tests/spool/test-retain.c $(SPOOL_VERBS)
tests_spool_test_retain_LDADD = $(SPOOL_LIBS)
tests_spool_test_serve_SOURCES = tests/spool/test-serve.c $(SPOOL_VERBS)
tests_spool_test_serve_LDADD = $(SPOOL_LIBS)
tests_spool_test_space_SOURCES = tests/spool/test-space.c $(SPOOL_WORLD)
tests_spool_test_space_LDADD = $(SPOOL_LIBS)
tests_spool_test_stall_SOURCES = tests/spool/test-stall.c $(SPOOL_WORLD)
tests_spool_test_stall_LDADD = $(SPOOL_LIBS)
tests_spool_test_stepped_SOURCES = tests/spool/test-stepped.c $(SPOOL_MODEL)
tests_spool_test_stepped_LDADD = $(SPOOL_LIBS)
tests_spool_test_ticks_SOURCES = tests/spool/test-ticks.c $(SPOOL_MODEL)
tests_spool_test_ticks_LDADD = $(SPOOL_LIBS)
tests_spool_test_torn_SOURCES = tests/spool/test-torn.c $(SPOOL_LOGS)
tests_spool_test_torn_LDADD = $(SPOOL_LIBS)
tests_spool_test_verify_SOURCES = tests/spool/test-verify.c $(SPOOL_WORLD)
tests_spool_test_verify_LDADD = $(SPOOL_LIBS)
