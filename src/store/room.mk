noinst_LIBRARIES += libstore.a
libstore_a_CPPFLAGS = $(AM_CPPFLAGS)
libstore_a_SOURCES =
