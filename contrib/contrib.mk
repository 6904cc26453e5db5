# For the system around: the systemd units, the user, the completion for bash, the Debian package.
EXTRA_DIST += contrib/tgspool.sysusers contrib/deb-check debian/changelog debian/control debian/copyright debian/rules \
	debian/source/format debian/tgspool.postinst debian/tgspool.postrm debian/tgspool.yaml
EXTRA_DIST += contrib/tgspool-backup.service.in contrib/tgspool-backup.timer
EXTRA_DIST += contrib/tgspool.service.in contrib/tgspool.bash-completion
EXTRA_DIST += contrib/demo/demo contrib/demo/handler
EXTRA_DIST += contrib/examples/README.md contrib/examples/order-postgresql.sh contrib/examples/order-sqlite.py
EXTRA_DIST += contrib/grafana/tgspool.json contrib/prometheus/tgspool.rules.yml
EXTRA_DIST += contrib/prometheus/tgspool.rules.test.yml contrib/prometheus/tgspool.scrape.yml
# Scripts for alerts.command; they look for alert.sh beside them.
alertsdir = $(docdir)/examples/alerts
dist_alerts_SCRIPTS = \
	contrib/alerts/bark \
	contrib/alerts/dingtalk \
	contrib/alerts/feishu \
	contrib/alerts/mail \
	contrib/alerts/ntfy \
	contrib/alerts/serverchan \
	contrib/alerts/wecom
dist_alerts_DATA = contrib/alerts/README.md contrib/alerts/alert.sh
EXTRA_DIST += contrib/install-deps contrib/start contrib/test
CLEANFILES += contrib/tgspool.conf contrib/tgspool-backup.service contrib/tgspool.service contrib/tgspool

# Where packages keep examples: among the units it would be in force at once.
dist_example_DATA += contrib/tgspool.service.d/handlers.conf
systemdsystemunit_DATA = contrib/tgspool.service contrib/tgspool-backup.service contrib/tgspool-backup.timer
bashcompletion_DATA = contrib/tgspool
sysusers_DATA = contrib/tgspool.conf

# The paths of this installation are put in by make, which knows their final values.
contrib/%.service: contrib/%.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) contrib && \
	sed -e 's|@bindir[@]|$(bindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' -e 's|@docdir[@]|$(docdir)|g' \
		$(top_srcdir)/contrib/$*.service.in > $@.tmp && mv $@.tmp $@

# bash looks for a file named like the command.
contrib/tgspool: contrib/tgspool.bash-completion
	$(AM_V_GEN)$(MKDIR_P) contrib && cp $(top_srcdir)/contrib/tgspool.bash-completion $@

contrib/tgspool.conf: contrib/tgspool.sysusers
	$(AM_V_GEN)$(MKDIR_P) contrib && cp $(top_srcdir)/contrib/tgspool.sysusers $@

# Builds the Debian package from what a release holds, in the directory deb/, and looks at what is in it.
deb-check: distdir
	rm -rf deb && $(MKDIR_P) deb && mv $(distdir) deb/
	cd deb/$(distdir) && MAKEFLAGS= dpkg-buildpackage -us -uc -b
	$(top_srcdir)/contrib/deb-check deb
.PHONY: deb-check
