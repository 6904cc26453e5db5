# RocksDB and the committer. Only db.c and its parts include rocksdb/c.h.
noinst_LIBRARIES += libstore.a
libstore_a_CPPFLAGS = $(AM_CPPFLAGS) $(YAJL_CFLAGS)
libstore_a_SOURCES = \
	src/store/commit.c src/store/commit.h \
	src/store/backup.c src/store/backup.h src/store/backup_list.c src/store/backup_list.h \
	src/store/checkpoint.c src/store/checkpoint.h \
	src/store/db.c src/store/db.h src/store/db_compact.c src/store/db_files.c src/store/db_handle.h \
	src/store/dir.c src/store/dir.h \
	src/store/marker.c src/store/marker.h \
	src/store/swap.c src/store/swap.h \
	src/store/overlay.c src/store/overlay.h \
	src/store/log_filter.c src/store/log_filter.h \
	src/store/log_index.c src/store/log_index.h src/store/log_mark.c src/store/log_mark.h \
	src/store/log_reader.c src/store/log_reader.h \
	src/store/log_piece.c src/store/log_piece.h src/store/log_tail.c src/store/log_tail.h \
	src/store/repair.c src/store/repair.h \
	src/store/reserve.c src/store/reserve.h
