# tests/fuzz: one target a parser, fuzz-NAME.c with its corpus in corpus/NAME. Each is always built with replay.c as its
# main(), so that `make check` runs the corpus; configured with --enable-fuzzers (clang), also with libFuzzer as
# libfuzz-NAME, to be run as
#     tests/fuzz/libfuzz-http -max_total_time=60 tests/fuzz/corpus/http
# A new target is a name in both lists of programs and two blocks below.
FUZZ_CORE = libcore.a libbase.a $(YAJL_LIBS) $(YAML_LIBS)
FUZZ_WIRE = libwire.a libcore.a libbase.a $(LLHTTP_LIBS) $(YAJL_LIBS)
FUZZ_CALL = libspool.a $(FUZZ_WIRE)
FUZZ_DELIVER = libdeliver.a $(FUZZ_WIRE)
FUZZ_SERVE = libserve.a $(FUZZ_WIRE) $(OPENSSL_LIBS)
FUZZ_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/fuzz
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer

check_PROGRAMS += \
	tests/fuzz/fuzz-call \
	tests/fuzz/fuzz-config \
	tests/fuzz/fuzz-dropin \
	tests/fuzz/fuzz-filter \
	tests/fuzz/fuzz-http \
	tests/fuzz/fuzz-json \
	tests/fuzz/fuzz-multipart \
	tests/fuzz/fuzz-record \
	tests/fuzz/fuzz-socks5 \
	tests/fuzz/fuzz-update \
	tests/fuzz/fuzz-url \
	tests/fuzz/fuzz-worker

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
noinst_PROGRAMS += \
	tests/fuzz/libfuzz-call \
	tests/fuzz/libfuzz-config \
	tests/fuzz/libfuzz-dropin \
	tests/fuzz/libfuzz-filter \
	tests/fuzz/libfuzz-http \
	tests/fuzz/libfuzz-json \
	tests/fuzz/libfuzz-multipart \
	tests/fuzz/libfuzz-record \
	tests/fuzz/libfuzz-socks5 \
	tests/fuzz/libfuzz-update \
	tests/fuzz/libfuzz-url \
	tests/fuzz/libfuzz-worker

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
endif

EXTRA_DIST += tests/fuzz/corpus tests/fuzz/config.dict
