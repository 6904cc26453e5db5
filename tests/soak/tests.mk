# An hour of mixed load with faults (SOAK_SECONDS); it is no part of `make check`.
EXTRA_DIST += tests/soak/soak.py

.PHONY: soak
soak: tgspool tests/botapi/tgspool-botapi
	$(AM_V_at)python='$(PYTHON3)'; builddir='$(top_builddir)' PYTHONDONTWRITEBYTECODE=1 \
		$${python:-python3} $(top_srcdir)/tests/soak/soak.py
