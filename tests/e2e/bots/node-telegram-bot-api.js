// node-telegram-bot-api, polling.
"use strict";
process.env.NTBA_FIX_350 = "1"; // a notice of the library that does not concern us
const TelegramBot = require("node-telegram-bot-api");
const common = require("./common.js");

const bot = new TelegramBot(common.token, {
  baseApiUrl: common.apiRoot,
  polling: { autoStart: true, params: { timeout: 2 } },
});
bot.on("message", common.handle);
bot.on("polling_error", common.failed);
common.onStop(() => bot.stopPolling());
common.record("ready");
