# memory.sh SET MIB OPERATIONS SKEW: a set is used while the machine is recorded; what the kernel counted and what the
# recording says come out. SET: file, anonymous or both.
set -e
export LC_ALL=C
kind=$1 mib=$2 operations=$3 skew=$4
mount -t tmpfs points /mnt
mkdir /mnt/data

data() {
    mkfs.ext4 -q -F -N 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/vm/data
    mount -o noatime /dev/vm/data /mnt/data
    dd if=/dev/zero of=/mnt/data/set bs=1M count="$1" oflag=direct status=none
}
swap() {
    mkswap -q /dev/vm/swap
    swapon /dev/vm/swap
}

case $kind in
    file) data "$mib"; words="file /mnt/data/set $mib $operations $skew" ;;
    anonymous) swap; words="anonymous $mib $operations $skew" ;;
    both)
        data "$mib"
        swap
        words="file /mnt/data/set $mib $operations $skew anonymous $mib $operations $skew"
        ;;
esac
python3 -c pass

counters() {
    awk '/^(workingset_refault_(file|anon)|pswpin|pswpout|pgsteal_file) / { print $1, $2 }' /proc/vmstat
    awk -F '[ =]' '$1 == "some" { print "io_us", $NF }' /proc/pressure/io
    awk -F '[ =]' '$1 == "some" { print "memory_us", $NF }' /proc/pressure/memory
    awk '{ printf "up_us %.0f\n", $1 * 1000000 }' /proc/uptime
}
sync
echo 3 >/proc/sys/vm/drop_caches
counters >/run/before
terrace record -o /out/set.trec >/out/said 2>&1 &
recorder=$!
sleep 3
python3 /bench/set.py $words
kill -TERM $recorder
wait $recorder
counters >/run/after
awk 'NR == FNR { before[$1] = $2; next } { print $1, $2 - before[$1] }' /run/before /run/after >/out/results
awk '/^MemTotal/ { print "memory_kib", $2 }' /proc/meminfo >>/out/results
cat /out/results
