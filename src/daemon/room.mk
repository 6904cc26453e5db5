noinst_LIBRARIES += libdaemon.a
libdaemon_a_CPPFLAGS = $(AM_CPPFLAGS)
libdaemon_a_SOURCES =
