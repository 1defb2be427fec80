# What both scripts of the workloads share.
set -e
export LC_ALL=C
postgres=/usr/lib/postgresql/15/bin
mount -t tmpfs points /mnt
mkdir -p /mnt/data

# PostgreSQL refuses root. Its usual settings but for processes that come and go by themselves.
as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"; }
start_postgres() {
    as_user $postgres/pg_ctl start -s -w -t 120 -D /mnt/data/postgres -l /mnt/data/postgres/log \
        -o '-k /mnt/data/postgres -c listen_addresses= -c autovacuum=off'
}
stop_postgres() { as_user $postgres/pg_ctl stop -s -m fast -D /mnt/data/postgres; }
ask_postgres() { $postgres/psql -h /mnt/data/postgres -U postgres -XAtq; }

# 32 rows are a piece: one in a page of SQLite, two in a page of PostgreSQL.
row_bytes=4000
