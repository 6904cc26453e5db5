noinst_LIBRARIES += libcli.a
libcli_a_CPPFLAGS = $(AM_CPPFLAGS)
libcli_a_SOURCES =
