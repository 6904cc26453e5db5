#!/usr/bin/env python3
"""A handler for `deliver: exec` that takes orders into SQLite: the business change and the mark that it was made are one
transaction. However often the update comes, and wherever a try of it was killed, there is one order.

    command: /usr/local/lib/shop/order-sqlite.py /var/lib/shop/shop.db

Exit 0: done. 65: this update can never be handled. Anything else: try again later.
"""
import json
import os
import sqlite3
import sys

SCHEMA = """
CREATE TABLE IF NOT EXISTS handled (key TEXT PRIMARY KEY, at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, count INTEGER NOT NULL CHECK (count > 0));
"""


def handle(db, key, text):
    word, item, count = text.split()
    with db:  # one transaction: committed at its end, rolled back by an exception
        db.execute("BEGIN IMMEDIATE")  # two tries of one update cannot both see it unhandled
        if db.execute("INSERT OR IGNORE INTO handled (key) VALUES (?)", (key,)).rowcount == 0:
            return  # an earlier try came this far
        db.execute("INSERT INTO orders (item, count) VALUES (?, ?)", (item, int(count)))


def main():
    update = json.load(sys.stdin)
    text = update.get("message", {}).get("text", "")
    if not text.startswith("/order "):
        return 0
    db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
    db.execute("PRAGMA synchronous = FULL")  # tgspool will not say it again once we have said that it is done
    db.executescript(SCHEMA)
    try:
        handle(db, os.environ["TGSPOOL_KEY"], text)
    except (ValueError, sqlite3.IntegrityError) as e:
        print(f"this is no order: {e}", file=sys.stderr)
        return 65
    return 0


if __name__ == "__main__":
    sys.exit(main())
