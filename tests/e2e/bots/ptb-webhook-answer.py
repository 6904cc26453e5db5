"""python-telegram-bot (13 of Debian 12) behind a small web server of one's own: its Dispatcher handles the update, and the
reply goes into the webhook's answer as a call, made by the library's Bot."""
import http.server
import json
import os
import re
import threading
import time

import telegram
import telegram.ext
from telegram.utils.helpers import DefaultValue

lock = threading.Lock()
RECORD = os.open(os.environ["BOT_RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def record(*words):
    os.write(RECORD, (" ".join(str(w) for w in words) + "\n").encode())


class AnsweringBot(telegram.Bot):
    """Keeps the call that a handler makes, instead of sending it."""

    kept = None

    def _post(self, endpoint, data=None, timeout=None, api_kwargs=None):
        given = {k: v.value if isinstance(v, DefaultValue) else v for k, v in {**(data or {}), **(api_kwargs or {})}.items()}
        self.kept = {"method": endpoint, **{k: v for k, v in given.items() if v is not None}}
        return {"message_id": 1, "date": int(time.time()), "chat": {"id": data["chat_id"], "type": "private"}}


def on_message(update, context):
    serial = int(re.search(r"n=(\d+)", update.message.text).group(1))
    record("start", serial, update.message.chat.id)
    update.message.reply_text(f"reply {serial}")
    record("end", serial, update.message.chat.id)


bot = AnsweringBot(os.environ["BOT_TOKEN"])
dispatcher = telegram.ext.Dispatcher(bot, None, workers=0, use_context=True)
dispatcher.add_handler(telegram.ext.MessageHandler(telegram.ext.Filters.all, on_message))


class Hook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:  # for `kept`
            bot.kept = None
            dispatcher.process_update(telegram.Update.de_json(json.loads(body), bot))
            answer = json.dumps(bot.kept).encode() if bot.kept else b""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["BOT_PORT"])), Hook)
record("ready")
server.serve_forever()
