# The go-live checks of `tgspool drill`: a Bot API server on loopback, scratch daemons, and what they are put through.
noinst_LIBRARIES += libdrill.a
libdrill_a_CPPFLAGS = $(AM_CPPFLAGS)
libdrill_a_SOURCES = \
	src/drill/checks_alarm.c \
	src/drill/checks_handler.c \
	src/drill/checks_intake.c \
	src/drill/consumer.c \
	src/drill/drill.c src/drill/drill.h \
	src/drill/dropin.c \
	src/drill/handler.c \
	src/drill/inside.h \
	src/drill/probe.c \
	src/drill/pull.c \
	src/drill/record.c src/drill/record.h \
	src/drill/scratch.c \
	src/drill/scratch_ask.c \
	src/drill/scratch_daemon.c \
	src/drill/sender.c \
	src/drill/server.c src/drill/server.h
