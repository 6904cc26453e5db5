"""python-telegram-bot, as Debian 12 has it (13): polling, or its own webhook server."""
import os
import re
import threading
import time
import warnings

warnings.filterwarnings("ignore")

from telegram.error import Conflict  # noqa: E402
from telegram.ext import Filters, MessageHandler, Updater  # noqa: E402

lock = threading.Lock()


def record(*words):
    with lock, open(os.environ["BOT_RECORD"], "a", encoding="utf-8") as f:
        f.write(" ".join(str(w) for w in words) + "\n")


def handle(update, context):
    message = update.message
    serial = re.search(r"n=(\d+)", message.text).group(1)
    record("start", serial, message.chat.id)
    time.sleep(int(os.environ.get("BOT_HANDLER_MS", 0)) * (1 + int(serial) % 7) / 1000)
    if "BOT_PORT" in os.environ:
        message.reply_text(f"reply to {serial}")
    record("end", serial, message.chat.id)


def failed(update, context):
    text = str(context.error)
    conflict = isinstance(context.error, Conflict) and "terminated by other getUpdates request" in text
    record("conflict" if conflict else "error", text.replace(os.environ["BOT_TOKEN"], "TOKEN"))


updater = Updater(os.environ["BOT_TOKEN"], base_url=os.environ["BOT_API_ROOT"] + "/bot",
                  base_file_url=os.environ["BOT_API_ROOT"] + "/file/bot", use_context=True)
updater.dispatcher.add_handler(MessageHandler(Filters.text, handle))
updater.dispatcher.add_error_handler(failed)
if "BOT_PORT" in os.environ:
    port = int(os.environ["BOT_PORT"])
    updater.start_webhook(listen="127.0.0.1", port=port, url_path="hook", webhook_url=f"http://127.0.0.1:{port}/hook")
else:
    updater.start_polling(timeout=2)
record("ready")
updater.idle()
record("stopped")
