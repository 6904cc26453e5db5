# Tests of the net room: programs that drive it, and pytest with the peers.
TESTS_NET_LIBS = libnet.a libwire.a libcore.a libbase.a $(LLHTTP_LIBS) $(YAJL_LIBS) $(YAML_LIBS) $(EV_LIBS) \
	$(CARES_LIBS) $(OPENSSL_LIBS)

check_PROGRAMS += tests/net/probe-client
tests_net_probe_client_SOURCES = tests/net/probe-client.c
tests_net_probe_client_CPPFLAGS = $(AM_CPPFLAGS) $(CARES_CFLAGS)
# The name server is the test's.
tests_net_probe_client_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ares_init_options
tests_net_probe_client_LDADD = $(TESTS_NET_LIBS)
check_PROGRAMS += tests/net/probe-server
tests_net_probe_server_SOURCES = tests/net/probe-server.c
tests_net_probe_server_LDADD = $(TESTS_NET_LIBS)
EXTRA_DIST += \
	tests/net/abuse.py \
	tests/net/peers.py \
	tests/net/ports.py \
	tests/net/test_http_client.py \
	tests/net/test_server.py

# The loop, the streams, and the HTTP server; rig.c is the server's stage.
if HAVE_CMOCKA
check_PROGRAMS += tests/net/test-http-rude tests/net/test-http-server tests/net/test-loop tests/net/test-stream
tests_net_test_http_rude_SOURCES = tests/net/test-http-rude.c tests/net/rig.c tests/net/rig.h tests/unit/unit.h
tests_net_test_http_rude_LDADD = $(TESTS_NET_LIBS) -lcmocka
tests_net_test_http_server_SOURCES = tests/net/test-http-server.c tests/net/rig.c tests/net/rig.h tests/unit/unit.h
tests_net_test_http_server_LDADD = $(TESTS_NET_LIBS) -lcmocka
tests_net_test_loop_SOURCES = tests/net/test-loop.c tests/unit/unit.h
tests_net_test_loop_LDADD = $(TESTS_NET_LIBS) -lcmocka
tests_net_test_stream_SOURCES = tests/net/test-stream.c tests/unit/unit.h
tests_net_test_stream_LDADD = $(TESTS_NET_LIBS) -lcmocka
endif
