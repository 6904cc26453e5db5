# Requests and their answers.
noinst_LIBRARIES += libserve.a
libserve_a_CPPFLAGS = $(AM_CPPFLAGS) $(YAJL_CFLAGS) $(OPENSSL_CFLAGS)
libserve_a_SOURCES = \
	src/serve/api.c src/serve/api.h src/serve/api_call.h \
	src/serve/api_alert.c \
	src/serve/api_admin.c \
	src/serve/api_bulk.c \
	src/serve/api_calls.c \
	src/serve/api_import.c \
	src/serve/api_list.c \
	src/serve/api_params.c src/serve/api_params.h \
	src/serve/checkpoint.c src/serve/checkpoint.h \
	src/serve/compact.c src/serve/compact.h \
	src/serve/browser.c src/serve/browser.h \
	src/serve/dropin.c src/serve/dropin.h src/serve/dropin_bot.h \
	src/serve/dropin_answer.c src/serve/dropin_answer.h \
	src/serve/dropin_consumer.c \
	src/serve/dropin_filter.c src/serve/dropin_filter.h \
	src/serve/dropin_local.c \
	src/serve/dropin_proxy.c \
	src/serve/dropin_request.c src/serve/dropin_request.h \
	src/serve/dropin_updates.c \
	src/serve/exchange.c src/serve/exchange.h \
	src/serve/handover.c src/serve/handover.h \
	src/serve/lease.c src/serve/lease.h \
	src/serve/metrics.c src/serve/ready.c \
	src/serve/network.c src/serve/network.h \
	src/serve/page.c src/serve/page.h src/serve/page_assets.h \
	src/serve/socket.c src/serve/socket.h \
	src/serve/tail.c src/serve/tail.h

# The status page becomes part of the program.
PAGE_FILES = \
	src/serve/page/index.html \
	src/serve/page/icon.svg \
	src/serve/page/page.css \
	src/serve/page/api.js \
	src/serve/page/bulk.js \
	src/serve/page/dialog.js \
	src/serve/page/dom.js \
	src/serve/page/event.js \
	src/serve/page/json.js \
	src/serve/page/list.js \
	src/serve/page/main.js \
	src/serve/page/overview.js \
	src/serve/page/words.js
nodist_libserve_a_SOURCES = page-assets.c
EXTRA_DIST += src/serve/page/embed $(PAGE_FILES)
CLEANFILES += page-assets.c

page-assets.c: src/serve/page/embed $(PAGE_FILES)
	$(AM_V_GEN)files= && \
	for f in $(PAGE_FILES); do files="$$files $(top_srcdir)/$$f"; done && \
	sh $(top_srcdir)/src/serve/page/embed $$files > $@.tmp && mv $@.tmp $@
