noinst_LIBRARIES += libintake.a
libintake_a_CPPFLAGS = $(AM_CPPFLAGS)
libintake_a_SOURCES = \
	src/intake/before.c src/intake/before.h \
	src/intake/giveback.c src/intake/giveback.h \
	src/intake/poll.c src/intake/poll.h \
	src/intake/trouble.c src/intake/trouble.h \
	src/intake/watch.c src/intake/watch.h \
	src/intake/webhook.c src/intake/webhook.h
