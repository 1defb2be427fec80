# build.sh SET MIB: the disk of a workload, once for all guests.
. /bench/lib.sh
kind=$1 mib=$2
rows=$((mib * 256))
mkfs.ext4 -q -F -N 8192 -E lazy_itable_init=0,lazy_journal_init=0 /dev/vm/data
mount -o noatime /dev/vm/data /mnt/data
case $kind in
    file | both) dd if=/dev/zero of=/mnt/data/set bs=1M count="$mib" oflag=direct status=none ;;
    sqlite)
        sqlite3 /mnt/data/set "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;
            CREATE TABLE t(id INTEGER PRIMARY KEY, v BLOB);
            WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id + 1 < $rows)
            INSERT INTO t SELECT id, zeroblob($row_bytes) FROM n;"
        ;;
    postgres)
        install -d -o 65534 -g 65534 /mnt/data/postgres
        as_user $postgres/initdb --no-sync -A trust -U postgres -D /mnt/data/postgres >/dev/null
        start_postgres
        ask_postgres <<SQL
CREATE UNLOGGED TABLE t(id bigint PRIMARY KEY, v text);
ALTER TABLE t ALTER v SET STORAGE PLAIN;
INSERT INTO t SELECT id, repeat('x', $row_bytes) FROM generate_series(0, $rows - 1) AS id;
VACUUM ANALYZE t;
CHECKPOINT;
SQL
        stop_postgres
        ;;
esac
umount /mnt/data
