# Spools of other versions of RocksDB, as other Debian releases have them. Takes minutes, the network and root: by hand.
EXTRA_DIST += tests/versions/exchange

.PHONY: versions
versions: distdir tgspool
	$(top_srcdir)/tests/versions/exchange $(abs_builddir)/$(distdir) $(abs_builddir)/tgspool $(VERSIONS_SUITE)
	rm -rf $(distdir)
