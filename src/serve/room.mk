noinst_LIBRARIES += libserve.a
libserve_a_CPPFLAGS = $(AM_CPPFLAGS)
libserve_a_SOURCES =
