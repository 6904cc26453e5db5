// What the bots share: they write down which update they begin and end, by the serial number in its text.
"use strict";
const fs = require("fs");

const env = process.env;
exports.token = env.BOT_TOKEN;
exports.apiRoot = env.BOT_API_ROOT;
exports.port = Number(env.BOT_PORT || 0);
exports.secret = env.BOT_SECRET;
const ms = Number(env.BOT_HANDLER_MS || 0);

function record(...words) {
  fs.appendFileSync(env.BOT_RECORD, words.join(" ") + "\n");
}
exports.record = record;

// Handles one message, some longer than others.
exports.handle = async (message) => {
  const serial = /n=(\d+)/.exec(message.text)[1];
  record("start", serial, message.chat.id);
  if (ms) await new Promise((done) => setTimeout(done, ms * (1 + (serial % 7))));
  record("end", serial, message.chat.id);
};

// What ends or disturbs polling: a conflict is told from the rest.
exports.failed = (error) => {
  const text = String(error && error.message ? error.message : error);
  record(/409/.test(text) && /terminated by other getUpdates request/.test(text) ? "conflict" : "error",
         text.replaceAll(exports.token, "TOKEN").replace(/\s+/g, " "));
};

// Ends by SIGTERM through the library's own stop.
exports.onStop = (stop) => process.once("SIGTERM", async () => {
  await stop();
  record("stopped");
});
