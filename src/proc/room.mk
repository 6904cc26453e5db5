noinst_LIBRARIES += libproc.a
libproc_a_CPPFLAGS = $(AM_CPPFLAGS)
libproc_a_SOURCES =
