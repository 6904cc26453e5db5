# Requests and their answers.
noinst_LIBRARIES += libserve.a
libserve_a_CPPFLAGS = $(AM_CPPFLAGS) $(YAJL_CFLAGS) $(OPENSSL_CFLAGS)
libserve_a_SOURCES = \
	src/serve/api.c src/serve/api.h src/serve/api_call.h \
	src/serve/api_admin.c \
	src/serve/api_bulk.c \
	src/serve/api_event.c src/serve/api_event.h \
	src/serve/api_import.c \
	src/serve/api_line.c \
	src/serve/api_list.c \
	src/serve/api_params.c src/serve/api_params.h \
	src/serve/handover.c src/serve/handover.h \
	src/serve/lease.c src/serve/lease.h \
	src/serve/socket.c src/serve/socket.h \
	src/serve/tail.c src/serve/tail.h
