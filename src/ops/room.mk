# What keeps the whole running: the disk.
noinst_LIBRARIES += libops.a
libops_a_CPPFLAGS = $(AM_CPPFLAGS)
libops_a_SOURCES = \
	src/ops/disk.c src/ops/disk.h
