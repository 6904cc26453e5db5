# tests/intake: the poll against a scripted Bot API client and spool; the Bot API client against a scripted HTTP
# client; the webhook door against a scripted listener. What they stand in for is not linked.
INTAKE_RIG = tests/intake/rig.c tests/intake/rig.h
INTAKE_LIBS = libintake.a libtelegram.a libwire.a libcore.a libbase.a $(YAJL_LIBS) -lcmocka

if HAVE_CMOCKA
check_PROGRAMS += tests/intake/test-poll tests/intake/test-poll-waits tests/intake/test-trouble tests/intake/test-botapi \
	tests/intake/test-notify tests/intake/test-watch tests/intake/test-webhook
tests_intake_test_poll_SOURCES = tests/intake/test-poll.c $(INTAKE_RIG)
tests_intake_test_poll_LDADD = $(INTAKE_LIBS)
tests_intake_test_poll_waits_SOURCES = tests/intake/test-poll-waits.c $(INTAKE_RIG)
tests_intake_test_poll_waits_LDADD = $(INTAKE_LIBS)
tests_intake_test_trouble_SOURCES = tests/intake/test-trouble.c
tests_intake_test_trouble_LDADD = libintake.a libbase.a -lcmocka
tests_intake_test_botapi_SOURCES = tests/intake/test-botapi.c
tests_intake_test_botapi_LDADD = libtelegram.a libwire.a libcore.a libbase.a $(YAJL_LIBS) -lcmocka
tests_intake_test_watch_SOURCES = tests/intake/test-watch.c $(INTAKE_RIG)
tests_intake_test_watch_LDADD = $(INTAKE_LIBS)
tests_intake_test_webhook_SOURCES = tests/intake/test-webhook.c
tests_intake_test_webhook_LDADD = $(INTAKE_LIBS)
tests_intake_test_notify_SOURCES = tests/intake/test-notify.c
tests_intake_test_notify_LDADD = libdaemon.a libbase.a -lcmocka
endif
