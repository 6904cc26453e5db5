noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	src/base/base64.c src/base/base64.h \
	src/base/bytes.c src/base/bytes.h \
	src/base/buf.c src/base/buf.h \
	src/base/clock.c src/base/clock.h \
	src/base/err.c src/base/err.h \
	src/base/failpoint.c src/base/failpoint.h \
	src/base/file.c src/base/file.h \
	src/base/ip.c src/base/ip.h \
	src/base/list.h \
	src/base/log.c src/base/log.h \
	src/base/mem.c src/base/mem.h \
	src/base/process.c src/base/process.h \
	src/base/random.c src/base/random.h \
	src/base/text.c src/base/text.h \
	src/base/tree.c src/base/tree.h
