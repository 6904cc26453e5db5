// grammY under its concurrent runner.
"use strict";
const { Bot } = require("grammy");
const { run, sequentialize } = require("@grammyjs/runner");
const common = require("./common.js");

const bot = new Bot(common.token, { client: { apiRoot: common.apiRoot } });
bot.use(sequentialize((ctx) => String(ctx.chat.id)));
bot.on("message", (ctx) => common.handle(ctx.message));
const runner = run(bot, { runner: { fetch: { timeout: 5 }, silent: true } });
common.onStop(() => runner.stop());
common.record("ready");
runner.task().catch((error) => {
  common.failed(error);
  process.exit(1);
});
