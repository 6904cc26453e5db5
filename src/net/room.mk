# The loop and everything that talks over a socket.
noinst_LIBRARIES += libnet.a
libnet_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) $(CARES_CFLAGS) $(LLHTTP_CFLAGS)
libnet_a_SOURCES = \
	src/net/http_client.h \
	src/net/http_server.h \
	src/net/loop.c src/net/loop.h
