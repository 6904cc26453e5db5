# The loop and everything that talks over a socket.
noinst_LIBRARIES += libnet.a
libnet_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) $(CARES_CFLAGS) $(LLHTTP_CFLAGS)
libnet_a_SOURCES = \
	src/net/child.c src/net/child.h \
	src/net/connect.c src/net/connect.h \
	src/net/dial.c src/net/dial.h \
	src/net/dns.c src/net/dns.h \
	src/net/http_call.c \
	src/net/http_call_read.c \
	src/net/http_client.c src/net/http_client.h \
	src/net/http_conn.c src/net/http_conn.h \
	src/net/http_read.c \
	src/net/http_reply.c \
	src/net/http_unread.c \
	src/net/http_origin.c src/net/http_origin.h \
	src/net/http_pool.c src/net/http_pool.h src/net/http_pool_in.h \
	src/net/http_server.c src/net/http_server.h \
	src/net/listen.c src/net/listen.h \
	src/net/loop.c src/net/loop.h \
	src/net/proxy.c src/net/proxy.h \
	src/net/stream.c src/net/stream.h \
	src/net/tcp.c src/net/tcp.h \
	src/net/tls.c src/net/tls.h src/net/tls_stream.h \
	src/net/tls_client.c \
	src/net/tls_server.c
