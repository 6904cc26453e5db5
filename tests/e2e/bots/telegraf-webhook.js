// telegraf as a webhook bot, whose replies ride in the answers to the webhook.
"use strict";
const http = require("http");
const { Telegraf } = require("telegraf");
const common = require("./common.js");

const bot = new Telegraf(common.token, { telegram: { apiRoot: common.apiRoot, webhookReply: true } });
bot.on("message", async (ctx) => {
  await common.handle(ctx.message);
  const serial = Number(/n=(\d+)/.exec(ctx.message.text)[1]);
  // of the few methods that telegraf puts into answers, the one that can carry a number; the rest goes by the API root
  await ctx.deleteMessage(serial);
  await ctx.reply("reply to " + serial);
});
http.createServer(bot.webhookCallback("/hook", { secretToken: common.secret }))
  .listen(common.port, "127.0.0.1", () => common.record("ready"));
