# Children: start, pipes, end of a process group. Knows no loop.
noinst_LIBRARIES += libproc.a
libproc_a_CPPFLAGS = $(AM_CPPFLAGS)
libproc_a_SOURCES = \
	src/proc/env.c src/proc/env.h \
	src/proc/exitfd.c src/proc/exitfd.h \
	src/proc/files.c src/proc/files.h \
	src/proc/group.c src/proc/group.h \
	src/proc/orphans.c src/proc/orphans.h \
	src/proc/proc.c src/proc/proc.h \
	src/proc/stat.c src/proc/stat.h
