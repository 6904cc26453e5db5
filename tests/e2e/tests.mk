# End-to-end tests: pytest, the real daemon, the Bot API test server.
EXTRA_DIST += \
	tests/e2e/harness.py \
	tests/e2e/test_backup.py \
	tests/e2e/test_abuse.py \
	tests/e2e/test_access.py \
	tests/e2e/test_alert_scripts.py \
	tests/e2e/test_alerts.py \
	tests/e2e/test_alert_kinds.py \
	tests/e2e/test_botapi.py \
	tests/e2e/test_calls.py \
	tests/e2e/test_commands.py \
	tests/e2e/test_config.py \
	tests/e2e/test_crash.py \
	tests/e2e/test_daemon.py \
	tests/e2e/test_deliver.py \
	tests/e2e/test_disk.py \
	tests/e2e/test_drill.py \
	tests/e2e/test_examples.py \
	tests/e2e/test_handover_command.py \
	tests/e2e/test_dropin.py \
	tests/e2e/test_intake.py \
	tests/e2e/matrix.py \
	tests/e2e/matrix_acts.py \
	tests/e2e/matrix_handlers.py \
	tests/e2e/matrix_promises.py \
	tests/e2e/matrix_run.py \
	tests/e2e/test_boundaries.py \
	tests/e2e/test_matrix.py \
	tests/e2e/test_metrics.py \
	tests/e2e/test_libraries.py \
	tests/e2e/test_page.py \
	tests/e2e/test_proxy.py \
	tests/e2e/test_retain.py \
	tests/e2e/test_reload.py \
	tests/e2e/test_running.py \
	tests/e2e/test_time.py \
	tests/e2e/test_units.py \
	tests/e2e/test_webhook_command.py \
	tests/e2e/test_handover.py \
	tests/e2e/test_webhook.py

check_PROGRAMS += tests/e2e/stepped_clock.so
tests_e2e_stepped_clock_so_SOURCES = tests/e2e/stepped_clock.c
tests_e2e_stepped_clock_so_CPPFLAGS = -D_GNU_SOURCE -U_FORTIFY_SOURCE
tests_e2e_stepped_clock_so_CFLAGS = $(AM_CFLAGS) -fPIC -fno-sanitize=all
tests_e2e_stepped_clock_so_LDFLAGS = -shared

include $(top_srcdir)/tests/e2e/bots/tests.mk

# Every cell of the crash matrix, which takes a quarter of an hour; `make check` takes a sample. CELLS="POINT ..." chooses.
.PHONY: matrix
matrix: tgspool tests/botapi/tgspool-botapi
	$(AM_V_at)python='$(PYTHON3)'; srcdir='$(top_srcdir)' builddir='$(top_builddir)' PYTHONDONTWRITEBYTECODE=1 \
		$${python:-python3} $(top_srcdir)/tests/e2e/matrix.py $(CELLS)
