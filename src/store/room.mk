# RocksDB and the committer. db.c is the only file that includes rocksdb/c.h.
noinst_LIBRARIES += libstore.a
libstore_a_CPPFLAGS = $(AM_CPPFLAGS)
libstore_a_SOURCES = \
	src/store/commit.c src/store/commit.h \
	src/store/db.c src/store/db.h \
	src/store/dir.c src/store/dir.h \
	src/store/overlay.c src/store/overlay.h \
	src/store/reserve.c src/store/reserve.h
