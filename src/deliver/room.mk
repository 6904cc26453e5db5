noinst_LIBRARIES += libdeliver.a
libdeliver_a_CPPFLAGS = $(AM_CPPFLAGS)
libdeliver_a_SOURCES =
