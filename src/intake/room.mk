noinst_LIBRARIES += libintake.a
libintake_a_CPPFLAGS = $(AM_CPPFLAGS)
libintake_a_SOURCES = \
	src/intake/poll.c src/intake/poll.h \
	src/intake/trouble.c src/intake/trouble.h
