# Bytes, pure: parsers and writers.
noinst_LIBRARIES += libwire.a
libwire_a_CPPFLAGS = $(AM_CPPFLAGS) $(YAJL_CFLAGS) $(LLHTTP_CFLAGS)
libwire_a_SOURCES = \
	src/wire/envelope_json.c src/wire/envelope_json.h \
	src/wire/event_json.c src/wire/event_json.h \
	src/wire/event_line.c \
	src/wire/forwarded.c src/wire/forwarded.h \
	src/wire/http.c src/wire/http.h \
	src/wire/http_hop.c src/wire/http_hop.h \
	src/wire/call.c src/wire/call.h \
	src/wire/json.c src/wire/json.h \
	src/wire/json_member.c \
	src/wire/keys.c src/wire/keys.h \
	src/wire/metrics.c src/wire/metrics.h \
	src/wire/multipart.c src/wire/multipart.h \
	src/wire/records.c src/wire/records.h \
	src/wire/socks5.c src/wire/socks5.h \
	src/wire/url.c src/wire/url.h
