# Handing events to handlers: the slots of a box, and one file for each kind of deliverer.
noinst_LIBRARIES += libdeliver.a
libdeliver_a_CPPFLAGS = $(AM_CPPFLAGS)
libdeliver_a_SOURCES = \
	src/deliver/answer.c src/deliver/answer.h \
	src/deliver/call.c \
	src/deliver/children.c src/deliver/children.h \
	src/deliver/config.c src/deliver/config.h \
	src/deliver/errline.c src/deliver/errline.h \
	src/deliver/exec.c \
	src/deliver/http.c \
	src/deliver/slot.h \
	src/deliver/slots.c src/deliver/slots.h \
	src/deliver/worker.c
