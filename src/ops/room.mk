# What keeps the whole running: alerts, the archive, the disk.
noinst_LIBRARIES += libops.a
libops_a_CPPFLAGS = $(AM_CPPFLAGS)
libops_a_SOURCES = \
	src/ops/alert_channels.h \
	src/ops/alert_command.c \
	src/ops/alert_json.c src/ops/alert_json.h \
	src/ops/alert_post.c src/ops/alert_post.h \
	src/ops/alert_sender.c src/ops/alert_sender.h \
	src/ops/alert_telegram.c \
	src/ops/alert_url.c \
	src/ops/archive.c src/ops/archive.h \
	src/ops/archive_file.c src/ops/archive_file.h \
	src/ops/disk.c src/ops/disk.h
