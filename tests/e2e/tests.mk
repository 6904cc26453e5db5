# End-to-end tests: pytest, the real daemon, the Bot API test server.
EXTRA_DIST += \
	tests/e2e/bots/common.js \
	tests/e2e/bots/grammy-runner.js \
	tests/e2e/bots/grammy-webhook.js \
	tests/e2e/bots/grammy.js \
	tests/e2e/bots/node-telegram-bot-api.js \
	tests/e2e/bots/package-lock.json \
	tests/e2e/bots/package.json \
	tests/e2e/bots/python-telegram-bot.py \
	tests/e2e/bots/telegraf-webhook.js \
	tests/e2e/bots/telegraf.js \
	tests/e2e/conftest.py \
	tests/e2e/harness.py \
	tests/e2e/test_botapi.py \
	tests/e2e/test_commands.py \
	tests/e2e/test_config.py \
	tests/e2e/test_crash.py \
	tests/e2e/test_daemon.py \
	tests/e2e/test_deliver.py \
	tests/e2e/test_examples.py \
	tests/e2e/test_handover_command.py \
	tests/e2e/test_dropin.py \
	tests/e2e/test_intake.py \
	tests/e2e/test_libraries.py \
	tests/e2e/test_proxy.py \
	tests/e2e/test_webhook_command.py \
	tests/e2e/test_handover.py \
	tests/e2e/test_webhook.py
