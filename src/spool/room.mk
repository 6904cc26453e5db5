noinst_LIBRARIES += libspool.a
libspool_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) $(YAJL_CFLAGS)
libspool_a_SOURCES =
