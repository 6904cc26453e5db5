// grammY as a webhook bot, whose replies ride in the answers to the webhook.
"use strict";
const http = require("http");
const { Bot, webhookCallback } = require("grammy");
const common = require("./common.js");

const bot = new Bot(common.token, {
  client: { apiRoot: common.apiRoot, canUseWebhookReply: (method) => method === "sendMessage" },
});
bot.on("message", async (ctx) => {
  await common.handle(ctx.message);
  await ctx.reply("reply to " + /n=(\d+)/.exec(ctx.message.text)[1]);
});
http.createServer(webhookCallback(bot, "http", { secretToken: common.secret }))
  .listen(common.port, "127.0.0.1", () => common.record("ready"));
