# tests/lint: a script; tests/run-suites starts it.
EXTRA_DIST += tests/lint/lint tests/lint/rooms.txt
EXTRA_DIST += tests/lint/failpoints.py
