# Unit tests: one program a module. What a program links is the proof of what its module needs: tests of base
# link nothing but base, tests of core and wire only the pure rooms below them.
UNIT_BASE = libbase.a -lcmocka
UNIT_CORE = libcore.a libbase.a $(YAJL_LIBS) $(YAML_LIBS) -lcmocka
UNIT_WIRE = libwire.a libcore.a libbase.a $(YAJL_LIBS) $(LLHTTP_LIBS) -lcmocka

EXTRA_DIST += tests/unit/unit.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/unit/test-alerts \
	tests/unit/test-backoff \
	tests/unit/test-breaker \
	tests/unit/test-buf \
	tests/unit/test-bytes \
	tests/unit/test-call \
	tests/unit/test-configfile \
	tests/unit/test-err \
	tests/unit/test-event \
	tests/unit/test-failpoint \
	tests/unit/test-file \
	tests/unit/test-forwarded \
	tests/unit/test-gaps \
	tests/unit/test-histogram \
	tests/unit/test-http \
	tests/unit/test-ip \
	tests/unit/test-json \
	tests/unit/test-kinds \
	tests/unit/test-lane \
	tests/unit/test-line \
	tests/unit/test-list \
	tests/unit/test-log \
	tests/unit/test-metrics \
	tests/unit/test-multipart \
	tests/unit/test-options \
	tests/unit/test-outcome \
	tests/unit/test-socks5 \
	tests/unit/test-text \
	tests/unit/test-tree \
	tests/unit/test-update \
	tests/unit/test-url
endif

tests_unit_test_alerts_SOURCES = tests/unit/test-alerts.c
tests_unit_test_alerts_LDADD = $(UNIT_CORE)
tests_unit_test_backoff_SOURCES = tests/unit/test-backoff.c
tests_unit_test_backoff_LDADD = $(UNIT_CORE)
tests_unit_test_breaker_SOURCES = tests/unit/test-breaker.c
tests_unit_test_breaker_LDADD = $(UNIT_CORE)
tests_unit_test_buf_SOURCES = tests/unit/test-buf.c
tests_unit_test_buf_LDADD = $(UNIT_BASE)
tests_unit_test_bytes_SOURCES = tests/unit/test-bytes.c
tests_unit_test_bytes_LDADD = $(UNIT_BASE)
tests_unit_test_call_SOURCES = tests/unit/test-call.c
tests_unit_test_call_LDADD = $(UNIT_WIRE)
tests_unit_test_configfile_SOURCES = tests/unit/test-configfile.c
tests_unit_test_configfile_LDADD = libdaemon.a libproc.a libwire.a $(UNIT_CORE)
tests_unit_test_err_SOURCES = tests/unit/test-err.c
tests_unit_test_err_LDADD = $(UNIT_BASE)
tests_unit_test_event_SOURCES = tests/unit/test-event.c
tests_unit_test_event_LDADD = $(UNIT_CORE)
tests_unit_test_tree_SOURCES = tests/unit/test-tree.c
tests_unit_test_tree_LDADD = $(UNIT_BASE)
tests_unit_test_failpoint_SOURCES = tests/unit/test-failpoint.c
tests_unit_test_failpoint_LDADD = $(UNIT_BASE)
tests_unit_test_file_SOURCES = tests/unit/test-file.c
tests_unit_test_file_LDADD = $(UNIT_BASE)
tests_unit_test_gaps_SOURCES = tests/unit/test-gaps.c
tests_unit_test_gaps_LDADD = $(UNIT_CORE)
tests_unit_test_histogram_SOURCES = tests/unit/test-histogram.c
tests_unit_test_histogram_LDADD = $(UNIT_CORE)
tests_unit_test_metrics_SOURCES = tests/unit/test-metrics.c
tests_unit_test_metrics_LDADD = $(UNIT_WIRE)
tests_unit_test_ip_SOURCES = tests/unit/test-ip.c
tests_unit_test_ip_LDADD = $(UNIT_BASE)
tests_unit_test_kinds_SOURCES = tests/unit/test-kinds.c
tests_unit_test_kinds_LDADD = $(UNIT_CORE)
tests_unit_test_lane_SOURCES = tests/unit/test-lane.c
tests_unit_test_lane_LDADD = $(UNIT_CORE)
tests_unit_test_list_SOURCES = tests/unit/test-list.c
tests_unit_test_list_LDADD = $(UNIT_BASE)
tests_unit_test_log_SOURCES = tests/unit/test-log.c
tests_unit_test_log_LDADD = $(UNIT_BASE)
tests_unit_test_line_SOURCES = tests/unit/test-line.c
tests_unit_test_line_LDADD = $(UNIT_WIRE)
tests_unit_test_multipart_SOURCES = tests/unit/test-multipart.c
tests_unit_test_multipart_LDADD = $(UNIT_WIRE)
tests_unit_test_options_SOURCES = tests/unit/test-options.c
tests_unit_test_options_LDADD = $(UNIT_CORE)
tests_unit_test_outcome_SOURCES = tests/unit/test-outcome.c
tests_unit_test_outcome_LDADD = $(UNIT_CORE)
tests_unit_test_socks5_SOURCES = tests/unit/test-socks5.c
tests_unit_test_socks5_LDADD = $(UNIT_WIRE)
tests_unit_test_text_SOURCES = tests/unit/test-text.c
tests_unit_test_text_LDADD = $(UNIT_BASE)
tests_unit_test_update_SOURCES = tests/unit/test-update.c
tests_unit_test_update_LDADD = $(UNIT_CORE)
tests_unit_test_forwarded_SOURCES = tests/unit/test-forwarded.c
tests_unit_test_forwarded_LDADD = $(UNIT_WIRE)
tests_unit_test_http_SOURCES = tests/unit/test-http.c
tests_unit_test_http_LDADD = $(UNIT_WIRE)
tests_unit_test_json_SOURCES = tests/unit/test-json.c
tests_unit_test_json_LDADD = $(UNIT_WIRE)
tests_unit_test_url_SOURCES = tests/unit/test-url.c
tests_unit_test_url_LDADD = $(UNIT_WIRE)
