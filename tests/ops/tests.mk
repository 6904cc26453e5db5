# tests/ops: alerts without destinations.
OPS_LIBS = libops.a libtelegram.a libnet.a libproc.a libwire.a libcore.a libbase.a $(LIBS_PURE) $(EV_LIBS) $(CARES_LIBS) \
	$(OPENSSL_LIBS) -lcmocka

if HAVE_CMOCKA
check_PROGRAMS += tests/ops/test-alert-sender
endif

tests_ops_test_alert_sender_SOURCES = tests/ops/test-alert-sender.c
tests_ops_test_alert_sender_LDADD = $(OPS_LIBS)
