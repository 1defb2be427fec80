# memory.sh SET MIB OPERATIONS SKEW: a set is used while the machine is recorded; what the kernel
# counted and the recording come out. SET: file, anonymous, both, sqlite or postgres.
. /bench/lib.sh
kind=$1 mib=$2 operations=$3 skew=$4
mkswap /dev/vm/swap >/dev/null
swapon /dev/vm/swap
if [ "$kind" != anonymous ]; then
    mount -o noatime /dev/vm/data /mnt/data
fi

use() {
    case $kind in
        file) python3 /bench/set.py file /mnt/data/set "$@" ;;
        anonymous) python3 /bench/set.py anonymous "$@" ;;
        both) python3 /bench/set.py file /mnt/data/set "$@" anonymous "$@" ;;
        sqlite) python3 /bench/set.py queries "$@" | sqlite3 /mnt/data/set >/run/answers ;;
        postgres) python3 /bench/set.py queries "$@" | ask_postgres >/run/answers ;;
    esac
}

counters() {
    awk '/^(workingset_refault_(file|anon)|pswpin|pswpout|pgsteal_file) / { print $1, $2 }' \
        /proc/vmstat
    awk -F '[ =]' '$1 == "full" { print "io_us", $NF }' /proc/pressure/io
    awk -F '[ =]' '$1 == "some" { print "some_io_us", $NF }' /proc/pressure/io
    awk -F '[ =]' '$1 == "some" { print "memory_us", $NF }' /proc/pressure/memory
    awk '{ printf "up_us %.0f\n", $1 * 1000000 }' /proc/uptime
}

[ "$kind" = postgres ] && start_postgres
# Programs are in memory when the recording begins, nothing of the set is.
python3 -c pass
sync
echo 3 >/proc/sys/vm/drop_caches
terrace record -o /out/set.trec >/out/said 2>&1 &
recorder=$!
sleep 3
counters >/run/before
use "$mib" "$operations" "$skew"
counters >/run/after
kill -TERM $recorder
wait $recorder
[ "$kind" = postgres ] && stop_postgres
awk 'NR == FNR { before[$1] = $2; next } { print $1, $2 - before[$1] }' /run/before /run/after \
    >/out/results
awk '/^MemTotal/ { print "memory_kib", $2 }' /proc/meminfo >>/out/results
