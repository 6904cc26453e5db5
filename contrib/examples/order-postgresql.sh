#!/bin/sh
# A handler for `deliver: exec` that takes orders into PostgreSQL: the business change and the mark that it was made are
# one transaction, here even one statement. However often the update comes, and wherever a try of it was killed, there is
# one order.
#
#     command: /usr/local/lib/shop/order-postgresql.sh "dbname=shop user=shop"
#
# Exit 0: done. 65: this update can never be handled. 69: the database cannot be reached, which is no fault of the update.
set -eu
database=$1
update=$(cat)

# Values go to psql as variables, which it quotes (:'name'): nothing of a message ever becomes SQL.
psql_quiet() {
    PGCONNECT_TIMEOUT=10 psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 \
        --set key="$TGSPOOL_KEY" --set update="$update" "$database"
}

status=0
psql_quiet <<'SQL' || status=$?
SET client_min_messages = warning;
BEGIN;
-- Two that make the tables at the same moment would fail: CREATE ... IF NOT EXISTS does not wait for the other.
DO $$ BEGIN PERFORM pg_advisory_xact_lock(20261129); END $$;
CREATE TABLE IF NOT EXISTS handled (key text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, item text NOT NULL, count int NOT NULL CHECK (count > 0));
COMMIT;

BEGIN;
-- No row comes back where the mark was there already; a second try at the same time waits here for the first one.
WITH words AS (
    SELECT regexp_match(:'update'::json -> 'message' ->> 'text', '^/order (\S+) (\S+)$') AS w
), mark AS (
    INSERT INTO handled (key) SELECT :'key' FROM words WHERE w IS NOT NULL ON CONFLICT DO NOTHING RETURNING key
)
INSERT INTO orders (item, count) SELECT w[1], w[2]::int FROM words, mark;
COMMIT;
SQL

case $status in
0) exit 0 ;;
2) exit 69 ;; # psql could not connect, or lost its connection
3) exit 65 ;; # the statement was refused: psql has said why
*) exit "$status" ;;
esac
