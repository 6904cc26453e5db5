# tests/botapi
