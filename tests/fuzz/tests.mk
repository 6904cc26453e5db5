# tests/fuzz: one target a parser, fuzz-NAME.c with its corpus in corpus/NAME. Each is always built with replay.c as its
# main(), so that `make check` runs the corpus; configured with --enable-fuzzers (clang), also with libFuzzer as
# libfuzz-NAME, for `make fuzz` (FUZZ_SECONDS=3600 each; tests/fuzz/run says more).
# A new target is a name in both lists of programs, two blocks below, shapes in shapes.py, and a dictionary in run.
FUZZ_CORE = libcore.a libbase.a $(YAJL_LIBS) $(YAML_LIBS)
FUZZ_WIRE = libwire.a libcore.a libbase.a $(LLHTTP_LIBS) $(YAJL_LIBS)
FUZZ_CALL = libspool.a $(FUZZ_WIRE)
FUZZ_STORE = libstore.a $(FUZZ_WIRE)
FUZZ_OPS = libops.a libbase.a $(ZLIB_LIBS)
FUZZ_DELIVER = libdeliver.a $(FUZZ_WIRE)
FUZZ_SERVE = libserve.a libspool.a $(FUZZ_WIRE) $(OPENSSL_LIBS)
FUZZ_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer

check_PROGRAMS += \
	tests/fuzz/fuzz-archive \
	tests/fuzz/fuzz-backup \
	tests/fuzz/fuzz-browser \
	tests/fuzz/fuzz-call \
	tests/fuzz/fuzz-config \
	tests/fuzz/fuzz-dropin \
	tests/fuzz/fuzz-filter \
	tests/fuzz/fuzz-http \
	tests/fuzz/fuzz-json \
	tests/fuzz/fuzz-log \
	tests/fuzz/fuzz-metrics \
	tests/fuzz/fuzz-multipart \
	tests/fuzz/fuzz-record \
	tests/fuzz/fuzz-socks5 \
	tests/fuzz/fuzz-update \
	tests/fuzz/fuzz-url \
	tests/fuzz/fuzz-worker

tests_fuzz_fuzz_archive_SOURCES = tests/fuzz/fuzz-archive.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_archive_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_archive_LDADD = $(FUZZ_OPS)
tests_fuzz_fuzz_backup_SOURCES = tests/fuzz/fuzz-backup.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_backup_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_backup_LDADD = $(FUZZ_STORE)
tests_fuzz_fuzz_browser_SOURCES = tests/fuzz/fuzz-browser.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_browser_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_browser_LDADD = $(FUZZ_SERVE)
tests_fuzz_fuzz_call_SOURCES = tests/fuzz/fuzz-call.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_call_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_call_LDADD = $(FUZZ_CALL)
tests_fuzz_fuzz_config_SOURCES = tests/fuzz/fuzz-config.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_config_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_config_LDADD = $(FUZZ_CORE)
tests_fuzz_fuzz_dropin_SOURCES = tests/fuzz/fuzz-dropin.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_dropin_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_dropin_LDADD = $(FUZZ_SERVE)
tests_fuzz_fuzz_filter_SOURCES = tests/fuzz/fuzz-filter.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_filter_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_filter_LDADD = $(FUZZ_SERVE)
tests_fuzz_fuzz_http_SOURCES = tests/fuzz/fuzz-http.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_http_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_http_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_json_SOURCES = tests/fuzz/fuzz-json.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_json_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_json_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_log_SOURCES = tests/fuzz/fuzz-log.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_log_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_log_LDADD = $(FUZZ_STORE)
tests_fuzz_fuzz_metrics_SOURCES = tests/fuzz/fuzz-metrics.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_metrics_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_metrics_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_multipart_SOURCES = tests/fuzz/fuzz-multipart.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_multipart_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_multipart_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_record_SOURCES = tests/fuzz/fuzz-record.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_record_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_record_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_socks5_SOURCES = tests/fuzz/fuzz-socks5.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_socks5_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_socks5_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_update_SOURCES = tests/fuzz/fuzz-update.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_update_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_update_LDADD = $(FUZZ_CORE)
tests_fuzz_fuzz_url_SOURCES = tests/fuzz/fuzz-url.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_url_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_url_LDADD = $(FUZZ_WIRE)
tests_fuzz_fuzz_worker_SOURCES = tests/fuzz/fuzz-worker.c tests/fuzz/replay.c tests/fuzz/fuzz.h
tests_fuzz_fuzz_worker_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_worker_LDADD = $(FUZZ_DELIVER)

if FUZZERS
LIBFUZZ = \
	tests/fuzz/libfuzz-archive \
	tests/fuzz/libfuzz-backup \
	tests/fuzz/libfuzz-browser \
	tests/fuzz/libfuzz-call \
	tests/fuzz/libfuzz-config \
	tests/fuzz/libfuzz-dropin \
	tests/fuzz/libfuzz-filter \
	tests/fuzz/libfuzz-http \
	tests/fuzz/libfuzz-json \
	tests/fuzz/libfuzz-log \
	tests/fuzz/libfuzz-metrics \
	tests/fuzz/libfuzz-multipart \
	tests/fuzz/libfuzz-record \
	tests/fuzz/libfuzz-socks5 \
	tests/fuzz/libfuzz-update \
	tests/fuzz/libfuzz-url \
	tests/fuzz/libfuzz-worker
EXTRA_PROGRAMS += $(LIBFUZZ) tests/fuzz/libfuzz-broken
tests_fuzz_libfuzz_broken_SOURCES = tests/fuzz/broken.c
tests_fuzz_libfuzz_broken_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_broken_LDFLAGS = $(FUZZ_LINK)

tests_fuzz_libfuzz_archive_SOURCES = tests/fuzz/fuzz-archive.c
tests_fuzz_libfuzz_archive_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_archive_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_archive_LDADD = $(FUZZ_OPS)
tests_fuzz_libfuzz_backup_SOURCES = tests/fuzz/fuzz-backup.c
tests_fuzz_libfuzz_backup_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_backup_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_backup_LDADD = $(FUZZ_STORE)
tests_fuzz_libfuzz_browser_SOURCES = tests/fuzz/fuzz-browser.c
tests_fuzz_libfuzz_browser_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_browser_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_browser_LDADD = $(FUZZ_SERVE)
tests_fuzz_libfuzz_call_SOURCES = tests/fuzz/fuzz-call.c
tests_fuzz_libfuzz_call_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_call_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_call_LDADD = $(FUZZ_CALL)
tests_fuzz_libfuzz_config_SOURCES = tests/fuzz/fuzz-config.c
tests_fuzz_libfuzz_config_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_config_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_config_LDADD = $(FUZZ_CORE)
tests_fuzz_libfuzz_dropin_SOURCES = tests/fuzz/fuzz-dropin.c
tests_fuzz_libfuzz_dropin_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_dropin_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_dropin_LDADD = $(FUZZ_SERVE)
tests_fuzz_libfuzz_filter_SOURCES = tests/fuzz/fuzz-filter.c
tests_fuzz_libfuzz_filter_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_filter_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_filter_LDADD = $(FUZZ_SERVE)
tests_fuzz_libfuzz_http_SOURCES = tests/fuzz/fuzz-http.c
tests_fuzz_libfuzz_http_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_http_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_http_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_json_SOURCES = tests/fuzz/fuzz-json.c
tests_fuzz_libfuzz_json_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_json_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_json_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_log_SOURCES = tests/fuzz/fuzz-log.c
tests_fuzz_libfuzz_log_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_log_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_log_LDADD = $(FUZZ_STORE)
tests_fuzz_libfuzz_metrics_SOURCES = tests/fuzz/fuzz-metrics.c
tests_fuzz_libfuzz_metrics_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_metrics_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_metrics_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_multipart_SOURCES = tests/fuzz/fuzz-multipart.c
tests_fuzz_libfuzz_multipart_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_multipart_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_multipart_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_record_SOURCES = tests/fuzz/fuzz-record.c
tests_fuzz_libfuzz_record_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_record_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_record_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_socks5_SOURCES = tests/fuzz/fuzz-socks5.c
tests_fuzz_libfuzz_socks5_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_socks5_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_socks5_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_update_SOURCES = tests/fuzz/fuzz-update.c
tests_fuzz_libfuzz_update_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_update_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_update_LDADD = $(FUZZ_CORE)
tests_fuzz_libfuzz_url_SOURCES = tests/fuzz/fuzz-url.c
tests_fuzz_libfuzz_url_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_url_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_url_LDADD = $(FUZZ_WIRE)
tests_fuzz_libfuzz_worker_SOURCES = tests/fuzz/fuzz-worker.c
tests_fuzz_libfuzz_worker_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_libfuzz_worker_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_libfuzz_worker_LDADD = $(FUZZ_DELIVER)

fuzz: $(LIBFUZZ) tests/fuzz/libfuzz-broken
	$(AM_V_at)python='$(PYTHON3)'; $${python:-python3} $(top_srcdir)/tests/fuzz/run
else
fuzz:
	@echo 'fuzz: this build has no fuzzers; in a directory of its own:'
	@echo '  ../configure --enable-fuzzers --enable-asan --enable-ubsan CC=clang && make fuzz'
	@exit 1
endif
.PHONY: fuzz

EXTRA_DIST += tests/fuzz/corpus tests/fuzz/run tests/fuzz/shapes.py tests/fuzz/broken.c \
	tests/fuzz/binary.dict tests/fuzz/config.dict tests/fuzz/http.dict tests/fuzz/json.dict tests/fuzz/multipart.dict \
	tests/fuzz/text.dict
