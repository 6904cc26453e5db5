# Bots by real libraries, and what npm installs for them.
EXTRA_DIST += \
	tests/e2e/bots/common.js \
	tests/e2e/bots/grammy-runner.js \
	tests/e2e/bots/grammy-webhook.js \
	tests/e2e/bots/grammy.js \
	tests/e2e/bots/node-telegram-bot-api.js \
	tests/e2e/bots/package-lock.json \
	tests/e2e/bots/package.json \
	tests/e2e/bots/ptb-webhook-answer.py \
	tests/e2e/bots/python-telegram-bot.py \
	tests/e2e/bots/telegraf-webhook.js \
	tests/e2e/bots/telegraf.js
