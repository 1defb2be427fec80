# A disk behind bcache on a stick, and one behind dm-cache: pieces are read and written, and what
# the kernel counted and `terrace boost receipt` says come out.
set -e
export LC_ALL=C
disk=$(readlink -f /dev/vm/disk) stick=$(readlink -f /dev/vm/stick)
disk2=$(readlink -f /dev/vm/disk2) stick2=$(readlink -f /dev/vm/stick2)
written_to() { awk '{ print $7 * 512 }' "/sys/block/${1##*/}/stat"; }
receipt() { terrace boost receipt --json >"/out/$1.json"; }

python3 superblock.py "$disk" "$stick"
made=$(written_to "$stick")
for device in "$stick" "$disk"; do echo "$device" >/sys/fs/bcache/register; done
bcache=/sys/block/bcache0/bcache
for _ in {1..100}; do
    [ -e $bcache/cache ] && break
    sleep 0.1
done
[ -e $bcache/cache ] || { dmesg | grep -i bcache >&2; exit 9; }
# All of it is cached, however slow the stick is.
echo 0 >$bcache/sequential_cutoff
for kind in read write; do echo 0 >$bcache/cache/congested_${kind}_threshold_us; done

# There is no udev that would make the nodes.
export DM_DISABLE_UDEV=1
meta=16384 block=64
dmsetup create meta --table "0 $meta linear $stick2 0"
dmsetup create blocks --table "0 $(($(blockdev --getsz "$stick2") - meta)) linear $stick2 $meta"
dd if=/dev/zero of=/dev/mapper/meta bs=4096 count=1 oflag=direct status=none
dmsetup create cached --table "0 $(blockdev --getsz "$disk2") cache /dev/mapper/meta \
/dev/mapper/blocks $disk2 $block 1 writeback smq 0"
dirty() { dmsetup status --noflush cached | awk -v bytes=$((block * 512)) '{ print $14 * bytes }'; }

receipt unused
python3 use.py read /dev/bcache0 0 300 4096 3 >/run/bcache
# What is read once is not kept by its policy; a block that is written whole is.
python3 use.py read /dev/mapper/cached 0 200 4096 1 >/run/cold
receipt cold
python3 use.py write /dev/mapper/cached 400 150 $((block * 512)) 1 >/run/written
dirty_before=$(dirty)
receipt dirty
dirty_after=$(dirty)
python3 use.py read /dev/mapper/cached 400 150 4096 9 >/run/warm
# The kernel adds up its counts of bcache each 14 seconds.
total=$bcache/stats_total
for _ in {1..200}; do
    [ $(($(<$total/cache_hits) + $(<$total/cache_misses))) -ge 900 ] && break
    sleep 0.1
done
receipt used
terrace boost receipt >/out/page
{
    echo "bcache_written $(($(written_to "$stick") - made))"
    for name in hits misses; do echo "bcache_$name $(<$total/cache_$name)"; done
    echo "dm_written $(written_to "$stick2")"
    dmsetup status --noflush cached | awk '{ print "dm_hits", $8; print "dm_misses", $9 }'
    echo "dirty_before $dirty_before"
    echo "dirty_after $dirty_after"
    for name in bcache cold warm; do awk -v name=$name '{ print name NR, $1 }' /run/$name; done
} >/out/results
