#!/bin/sh
# scripts/with-postgres.sh COMMAND...: runs a command with a private Postgres and ends it afterwards.
#
# The command finds it in DATABASE_URL (for sqlx) and FENCEPOST_TEST_DATABASE_URL (for the harness). If the latter is set already,
# that server is used. Postgres refuses to run as root, so as root it runs under the package's user, or nobody.
set -eu
if [ -n "${FENCEPOST_TEST_DATABASE_URL:-}" ]; then
  DATABASE_URL=$FENCEPOST_TEST_DATABASE_URL
  export DATABASE_URL
  exec "$@"
fi

bin=
for candidate in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -rn) $(dirname "$(command -v initdb || echo /none/initdb)"); do
  if [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ]; then
    bin=$candidate
    break
  fi
done
if [ -z "$bin" ]; then
  echo "no Postgres binaries; run scripts/install.sh, or set FENCEPOST_TEST_DATABASE_URL" >&2
  exit 1
fi

folder=$(mktemp -d -t fencepost-pg-XXXXXX)
user=
if [ "$(id -u)" -eq 0 ]; then
  user=postgres
  id "$user" >/dev/null 2>&1 || user=nobody
  chown "$user" "$folder"
fi
as_user() {
  if [ -n "$user" ]; then
    (cd "$folder" && exec setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@")
  else
    (cd "$folder" && exec "$@")
  fi
}
stop() {
  as_user "$bin/pg_ctl" stop -D "$folder/data" -m immediate -s >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

as_user "$bin/initdb" -D "$folder/data" -U fencepost -A trust -E UTF8 --locale=C --no-sync >"$folder/initdb.log" 2>&1 || {
  cat "$folder/initdb.log" >&2
  exit 1
}
# A free port is found by trying: another process may take it between the look and the use.
tries=0
until port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000)) &&
  as_user "$bin/pg_ctl" start -D "$folder/data" -l "$folder/postgres.log" -s -w -t 60 \
    -o "-h 127.0.0.1 -p $port -k $folder -c max_connections=300 -c fsync=off -c synchronous_commit=off -c full_page_writes=off"; do
  tries=$((tries + 1))
  if [ "$tries" -ge 5 ]; then
    cat "$folder/postgres.log" >&2
    exit 1
  fi
done
FENCEPOST_TEST_DATABASE_URL=postgres://fencepost@127.0.0.1:$port/postgres
DATABASE_URL=$FENCEPOST_TEST_DATABASE_URL
export FENCEPOST_TEST_DATABASE_URL DATABASE_URL
"$@"
