// telegraf, polling by bot.launch().
"use strict";
const { Telegraf } = require("telegraf");
const common = require("./common.js");

const bot = new Telegraf(common.token, { telegram: { apiRoot: common.apiRoot } });
bot.on("message", (ctx) => common.handle(ctx.message));
common.onStop(() => bot.stop("SIGTERM"));
bot.launch(() => common.record("ready")).catch((error) => {
  common.failed(error);
  process.exit(1);
});
