# Meaning, pure: no file, socket, clock, libev, RocksDB or OpenSSL.
noinst_LIBRARIES += libcore.a
libcore_a_CPPFLAGS = $(AM_CPPFLAGS) $(YAJL_CFLAGS) $(YAML_CFLAGS)
libcore_a_SOURCES = \
	src/core/alert.c src/core/alert.h src/core/alert_text.c src/core/alert_text.h \
	src/core/alerts.c src/core/alerts.h \
	src/core/backoff.c src/core/backoff.h \
	src/core/breaker.c src/core/breaker.h \
	src/core/config.h src/core/options.c src/core/options.h \
	src/core/option_alerts.c \
	src/core/option_command.c src/core/option_command.h \
	src/core/option_listen.c src/core/option_show.c src/core/option_table.c \
	src/core/option_value.c src/core/option_value.h \
	src/core/option_yaml.c src/core/option_yaml.h \
	src/core/envelope.c src/core/envelope.h \
	src/core/event.c src/core/event.h \
	src/core/gaps.c src/core/gaps.h \
	src/core/given_back.h \
	src/core/histogram.c src/core/histogram.h \
	src/core/kinds.c src/core/kinds.h \
	src/core/yajl_memory.c src/core/yajl_memory.h \
	src/core/lane.c src/core/lane.h \
	src/core/outcome.c src/core/outcome.h \
	src/core/standing.c src/core/standing.h \
	src/core/update.c src/core/update.h
