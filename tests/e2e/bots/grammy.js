// grammY, polling by bot.start().
"use strict";
const { Bot } = require("grammy");
const common = require("./common.js");

const bot = new Bot(common.token, { client: { apiRoot: common.apiRoot } });
bot.on("message", (ctx) => common.handle(ctx.message));
common.onStop(() => bot.stop());
bot.start({ onStart: () => common.record("ready"), timeout: 5 }).catch((error) => {
  common.failed(error);
  process.exit(1);
});
