EXTRA_DIST += doc/architecture.md doc/format.md doc/migration.md doc/operations.md
