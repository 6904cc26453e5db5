# An hour of mixed load with faults (SOAK_SECONDS); it is no part of `make check`, but a short one of broken daemons is.
check_PROGRAMS += tests/soak/leaks.so
tests_soak_leaks_so_SOURCES = tests/soak/leaks.c
tests_soak_leaks_so_CPPFLAGS = -D_GNU_SOURCE -U_FORTIFY_SOURCE
tests_soak_leaks_so_CFLAGS = $(AM_CFLAGS) -fPIC -fno-sanitize=all
tests_soak_leaks_so_LDFLAGS = -shared
EXTRA_DIST += tests/soak/soak.py tests/soak/test_soak.py

.PHONY: soak
soak: tgspool tests/botapi/tgspool-botapi
	$(AM_V_at)python='$(PYTHON3)'; builddir='$(top_builddir)' PYTHONDONTWRITEBYTECODE=1 \
		$${python:-python3} $(top_srcdir)/tests/soak/soak.py
