noinst_LIBRARIES += libtelegram.a
libtelegram_a_CPPFLAGS = $(AM_CPPFLAGS)
libtelegram_a_SOURCES = \
	src/telegram/botapi.c src/telegram/botapi.h \
	src/telegram/webhook_info.c
