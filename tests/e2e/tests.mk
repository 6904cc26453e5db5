# End-to-end tests: pytest, the real daemon, the Bot API test server.
EXTRA_DIST += \
	tests/e2e/conftest.py \
	tests/e2e/harness.py \
	tests/e2e/test_botapi.py
