# The Bot API server of the tests and of the demo. It links base/ only, so that it does not share the daemon's
# mistakes; the demo needs it, so plain `make` builds it.
noinst_PROGRAMS += tests/botapi/tgspool-botapi
tests_botapi_tgspool_botapi_SOURCES = \
	tests/botapi/args.c tests/botapi/args.h \
	tests/botapi/bot.c tests/botapi/bot.h \
	tests/botapi/conn.c tests/botapi/conn.h \
	tests/botapi/control.c tests/botapi/control.h \
	tests/botapi/fault.c tests/botapi/fault.h \
	tests/botapi/flood.c tests/botapi/flood.h \
	tests/botapi/link.c tests/botapi/link.h \
	tests/botapi/main.c \
	tests/botapi/make_update.c tests/botapi/make_update.h \
	tests/botapi/queue.c tests/botapi/queue.h \
	tests/botapi/sender.c tests/botapi/sender.h
tests_botapi_tgspool_botapi_CPPFLAGS = $(AM_CPPFLAGS) $(LLHTTP_CFLAGS) $(OPENSSL_CFLAGS) $(YAJL_CFLAGS)
tests_botapi_tgspool_botapi_CFLAGS = $(AM_CFLAGS) -pthread
tests_botapi_tgspool_botapi_LDADD = libbase.a $(LLHTTP_LIBS) $(OPENSSL_LIBS) $(YAJL_LIBS) -lpthread
