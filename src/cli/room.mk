# The command line: one file a command.
noinst_LIBRARIES += libcli.a
libcli_a_CPPFLAGS = $(AM_CPPFLAGS)
libcli_a_SOURCES = \
	src/cli/act.c src/cli/act.h \
	src/cli/alert_test.c \
	src/cli/ask.c src/cli/ask.h \
	src/cli/backup.c \
	src/cli/check.c \
	src/cli/cli.c src/cli/command.h \
	src/cli/compact.c \
	src/cli/config.c \
	src/cli/discard.c \
	src/cli/drill.c \
	src/cli/export.c \
	src/cli/handover.c \
	src/cli/import.c \
	src/cli/init.c \
	src/cli/list.c \
	src/cli/mask.c src/cli/mask.h \
	src/cli/output.c \
	src/cli/pause.c \
	src/cli/reborn.c src/cli/reborn.h \
	src/cli/repair.c \
	src/cli/replay.c \
	src/cli/request.c src/cli/request.h \
	src/cli/restore.c \
	src/cli/run.c \
	src/cli/show.c src/cli/show.h \
	src/cli/status.c \
	src/cli/still.c src/cli/still.h \
	src/cli/tail.c \
	src/cli/verify.c src/cli/verify.h \
	src/cli/version.c \
	src/cli/webhook.c src/cli/webhook.h
