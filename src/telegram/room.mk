noinst_LIBRARIES += libtelegram.a
libtelegram_a_CPPFLAGS = $(AM_CPPFLAGS)
libtelegram_a_SOURCES =
