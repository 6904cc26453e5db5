# Benchmarks: programs that print figures. They are no tests.
EXTRA_DIST += tests/bench/bench.py

.PHONY: bench-intake bench-backlog
bench-intake bench-backlog: tgspool tests/botapi/tgspool-botapi
	$(AM_V_at)python=$(PYTHON3); builddir='$(top_builddir)' PYTHONDONTWRITEBYTECODE=1 \
		$${python:-python3} $(top_srcdir)/tests/bench/bench.py $@ $(BENCH_ARGS)
