# The middle: accept, claim, complete and the rest, without a loop.
noinst_LIBRARIES += libspool.a
libspool_a_CPPFLAGS = $(AM_CPPFLAGS) $(OPENSSL_CFLAGS) $(YAJL_CFLAGS)
libspool_a_SOURCES = \
	src/spool/accept.c \
	src/spool/append.c \
	src/spool/box.c \
	src/spool/calls.c \
	src/spool/claim.c \
	src/spool/cursor.c \
	src/spool/finish.c \
	src/spool/gather.c src/spool/gather.h \
	src/spool/identity.c \
	src/spool/import.c \
	src/spool/internal.h \
	src/spool/lanes.c \
	src/spool/marks.c \
	src/spool/migrate.c \
	src/spool/note.c \
	src/spool/people.c \
	src/spool/query.c \
	src/spool/remember.c \
	src/spool/restored.c \
	src/spool/retain.c src/spool/retain.h \
	src/spool/retain_archive.c \
	src/spool/rows.c \
	src/spool/salvage.c \
	src/spool/salvage.h \
	src/spool/salvage_rows.c \
	src/spool/serve.c \
	src/spool/spool.c src/spool/spool.h \
	src/spool/stepped.c \
	src/spool/verify.c \
	src/spool/work.c
