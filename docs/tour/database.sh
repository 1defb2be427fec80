#!/bin/sh
# A PostgreSQL in a control group with little memory, as in a container, and four clients that read
# rows in no order. Needs root, PostgreSQL with its account `postgres`, and 1 GiB of disk.
#
#   sh database.sh start DIRECTORY   makes DIRECTORY, which must not exist, and starts all there
#   sh database.sh limit DIRECTORY BYTES   changes the limit of the group
#   sh database.sh stop DIRECTORY    stops all, and removes the group and DIRECTORY
#
# DIRECTORY is in a place where only root can make files.
#
# The group is DIRECTORY/group, a link.
set -eu
LIMIT=$((96 << 20))
action=$1 directory=$2
group=$directory/group
programs=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)

as_postgres() { setpriv --reuid postgres --regid postgres --init-groups "$@"; }

# The parent of the new group: below the own one where memory is in a hierarchy of its own.
parent() {
    if [ -d /sys/fs/cgroup/memory ]; then
        echo "/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)"
    else
        echo /sys/fs/cgroup
    fi
}

# The kernel refuses a limit while it cannot drop enough: what is not on the disk yet is written first.
limit() {
    sync
    for file in memory.limit_in_bytes memory.max; do
        [ -e "$group/$file" ] || continue
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            if echo "$1" 2>/dev/null >"$group/$file"; then break; fi
            sleep 1
        done
    done
}

start() {
    mkdir "$directory"
    chown postgres "$directory"
    as_postgres "$programs/initdb" -D "$directory/data" -A trust -N >/dev/null
    printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$directory'" \
        "shared_buffers = 16MB" "fsync = off" >>"$directory/data/postgresql.conf"
    made=$(parent)/terrace-tour-$$
    mkdir "$made"
    ln -s "$made" "$group"
    # Memory must be counted in the children of the root where that is not so yet: systemd has it so.
    [ -e "$made/memory.max" ] || [ -e "$made/memory.limit_in_bytes" ] || {
        echo "this machine does not count memory by group" >&2
        stop
        exit 3
    }
    sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$group" \
        setpriv --reuid postgres --regid postgres --init-groups \
        "$programs/pg_ctl" -w -s -D "$directory/data" -l "$directory/log" start
    export PGHOST="$directory"
    as_postgres "$programs/pgbench" -i -q -s 20 postgres >/dev/null 2>&1
    limit "$LIMIT"
    as_postgres "$programs/pgbench" -S -c 4 -T 3600 postgres >/dev/null 2>&1 &
    echo $! >"$directory/clients"
    echo "PostgreSQL runs in $made with a limit of $((LIMIT >> 20)) MiB."
}

stop() {
    [ ! -e "$directory/clients" ] || kill "$(cat "$directory/clients")" 2>/dev/null || true
    [ ! -e "$directory/data/postmaster.pid" ] ||
        as_postgres "$programs/pg_ctl" -w -s -D "$directory/data" -m immediate stop || true
    if [ -d "$group" ]; then
        made=$(readlink "$group")
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            rmdir "$made" 2>/dev/null && break
            sleep 0.5
        done
    fi
    rm -rf "$directory"
}

case $action in
    start) start ;;
    limit) limit "$3" ;;
    stop) stop ;;
    *) exit 2 ;;
esac
