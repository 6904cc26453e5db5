# Power cuts and faults of the disk: a layer under the daemon (LD_PRELOAD), a model of the disk, and rounds on it.
check_PROGRAMS += tests/power/power.so
tests_power_power_so_SOURCES = tests/power/power.c tests/power/journal.c tests/power/journal.h
tests_power_power_so_CPPFLAGS = -D_GNU_SOURCE -U_FORTIFY_SOURCE
tests_power_power_so_CFLAGS = $(AM_CFLAGS) -fPIC -fno-sanitize=all
tests_power_power_so_LDFLAGS = -shared
EXTRA_DIST += \
	tests/power/disk.py \
	tests/power/faults.py \
	tests/power/rounds.py \
	tests/power/stage.py \
	tests/power/test_faults.py \
	tests/power/test_limits.py \
	tests/power/test_power.py \
	tests/power/test_reads.py

# What takes longer than make check may: 200 rounds instead of 20; each fault at each of its places (see tests/logs).
power: $(check_PROGRAMS) tgspool
	$(AM_V_at)POWER_ROUNDS=200 PYTEST_ARGS='-k rounds' $(RUN_POWER)
faults: $(check_PROGRAMS) tgspool
	$(AM_V_at)FAULTS_ALL=1 PYTEST_ARGS='-s -k test_all' $(RUN_POWER)
RUN_POWER = SUITES=power SUITE_TIMEOUT=36000 srcdir='$(top_srcdir)' builddir='$(top_builddir)' PYTHON3='$(PYTHON3)' \
	$(top_srcdir)/tests/run-suites
.PHONY: power faults
