noinst_LIBRARIES += libdaemon.a
libdaemon_a_CPPFLAGS = $(AM_CPPFLAGS)
libdaemon_a_SOURCES = \
	src/daemon/alerting.c src/daemon/alerting.h \
	src/daemon/bots.c src/daemon/bots.h \
	src/daemon/configfile.c src/daemon/configfile.h \
	src/daemon/daemon.c src/daemon/daemon.h \
	src/daemon/happened.c src/daemon/happened.h \
	src/daemon/listeners.c src/daemon/listeners.h \
	src/daemon/notify.c src/daemon/notify.h \
	src/daemon/reload.c src/daemon/reload.h \
	src/daemon/secrets.c src/daemon/secrets.h \
	src/daemon/stepping.c src/daemon/stepping.h \
	src/daemon/unstarted.c src/daemon/unstarted.h \
	src/daemon/watching.c src/daemon/watching.h
