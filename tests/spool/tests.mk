# tests/spool
