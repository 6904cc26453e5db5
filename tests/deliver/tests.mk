# tests/deliver: children and deliverers against real processes and a small HTTP server, the slots on a scripted spool
# (of src/spool only gather.c is linked). `handler` is the worker of these tests.
DELIVER_LIBS = libdeliver.a libtelegram.a libspool.a libnet.a libproc.a libwire.a libcore.a libbase.a $(LIBS_PURE) $(EV_LIBS) \
	$(CARES_LIBS) $(OPENSSL_LIBS) -lcmocka
DELIVER_RIG = tests/deliver/fake_spool.c tests/deliver/fake_spool.h tests/deliver/rig.c tests/deliver/rig.h
DELIVER_SERVER = tests/deliver/server.c tests/deliver/server.h

if HAVE_CMOCKA
check_PROGRAMS += \
	tests/deliver/handler \
	tests/deliver/test-answer \
	tests/deliver/test-call \
	tests/deliver/test-children \
	tests/deliver/test-exec \
	tests/deliver/test-http \
	tests/deliver/test-proc \
	tests/deliver/test-worker \
	tests/deliver/test-worker-takes
endif

tests_deliver_handler_SOURCES = tests/deliver/handler.c
tests_deliver_test_answer_SOURCES = tests/deliver/test-answer.c
tests_deliver_test_answer_LDADD = libdeliver.a libwire.a libcore.a libbase.a $(YAJL_LIBS) -lcmocka
tests_deliver_test_call_SOURCES = tests/deliver/test-call.c $(DELIVER_RIG) $(DELIVER_SERVER)
tests_deliver_test_call_LDADD = $(DELIVER_LIBS)
tests_deliver_test_children_SOURCES = tests/deliver/test-children.c $(DELIVER_RIG)
tests_deliver_test_children_LDADD = $(DELIVER_LIBS)
tests_deliver_test_exec_SOURCES = tests/deliver/test-exec.c $(DELIVER_RIG)
tests_deliver_test_exec_LDADD = $(DELIVER_LIBS)
tests_deliver_test_http_SOURCES = tests/deliver/test-http.c $(DELIVER_RIG) $(DELIVER_SERVER)
tests_deliver_test_http_LDADD = $(DELIVER_LIBS)
tests_deliver_test_proc_SOURCES = tests/deliver/test-proc.c
tests_deliver_test_proc_LDADD = libproc.a libbase.a -lcmocka
tests_deliver_test_worker_SOURCES = tests/deliver/test-worker.c $(DELIVER_RIG)
tests_deliver_test_worker_LDADD = $(DELIVER_LIBS)
# With a worker.c of its own, in place of the library's.
tests_deliver_test_worker_takes_SOURCES = tests/deliver/test-worker-takes.c src/deliver/worker.c $(DELIVER_RIG)
tests_deliver_test_worker_takes_CPPFLAGS = $(AM_CPPFLAGS) -DTAKES_MS=1500
tests_deliver_test_worker_takes_LDADD = $(DELIVER_LIBS)
