noinst_LIBRARIES += libintake.a
libintake_a_CPPFLAGS = $(AM_CPPFLAGS)
libintake_a_SOURCES =
