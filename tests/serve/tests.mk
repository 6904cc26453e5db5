# tests/serve: the api on a real spool (the stage of tests/spool), and its pure parts, which link only the rooms below
# them; the command line's pure parts, and the commands as a whole, in-process on a spool.
SERVE_PURE = libserve.a libwire.a libcore.a libbase.a $(YAJL_LIBS) $(OPENSSL_LIBS) -lcmocka
SERVE_SPOOL = libserve.a libspool.a libstore.a libwire.a libcore.a libbase.a $(YAJL_LIBS) $(ROCKSDB_LIBS) $(OPENSSL_LIBS) \
	-lcmocka
SERVE_STAGE = tests/serve/rig.c tests/serve/rig.h tests/spool/world.c tests/spool/world.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/serve/test-api \
	tests/serve/test-calls \
	tests/serve/test-checkpoint \
	tests/serve/test-commands \
	tests/serve/test-dropin \
	tests/serve/test-handover \
	tests/serve/test-lease \
	tests/serve/test-metrics \
	tests/serve/test-network \
	tests/serve/test-params \
	tests/serve/test-show \
	tests/serve/test-socket
tests_serve_test_api_SOURCES = tests/serve/test-api.c $(SERVE_STAGE)
tests_serve_test_api_LDADD = $(SERVE_SPOOL)
tests_serve_test_calls_SOURCES = tests/serve/test-calls.c $(SERVE_STAGE)
tests_serve_test_calls_LDADD = $(SERVE_SPOOL)
tests_serve_test_checkpoint_SOURCES = tests/serve/test-checkpoint.c $(SERVE_STAGE)
tests_serve_test_checkpoint_LDADD = $(SERVE_SPOOL)
tests_serve_test_commands_SOURCES = tests/serve/test-commands.c
tests_serve_test_commands_LDADD = $(ROOMS) $(LIBS_ALL) -lcmocka
tests_serve_test_dropin_SOURCES = tests/serve/test-dropin.c
tests_serve_test_dropin_LDADD = $(SERVE_PURE)
tests_serve_test_handover_SOURCES = tests/serve/test-handover.c $(SERVE_STAGE)
tests_serve_test_handover_LDADD = $(SERVE_SPOOL)
tests_serve_test_metrics_SOURCES = tests/serve/test-metrics.c $(SERVE_STAGE)
tests_serve_test_metrics_LDADD = $(SERVE_SPOOL)
tests_serve_test_lease_SOURCES = tests/serve/test-lease.c $(SERVE_STAGE)
tests_serve_test_lease_LDADD = $(SERVE_SPOOL)
tests_serve_test_network_SOURCES = tests/serve/test-network.c $(SERVE_STAGE)
tests_serve_test_network_LDADD = $(ROOMS) $(LIBS_ALL) -lcmocka
tests_serve_test_params_SOURCES = tests/serve/test-params.c
tests_serve_test_params_LDADD = $(SERVE_PURE)
tests_serve_test_show_SOURCES = tests/serve/test-show.c
tests_serve_test_show_LDADD = libcli.a libwire.a libcore.a libbase.a $(YAJL_LIBS) -lcmocka
tests_serve_test_socket_SOURCES = tests/serve/test-socket.c $(SERVE_STAGE)
tests_serve_test_socket_LDADD = $(ROOMS) $(LIBS_ALL) -lcmocka
endif
