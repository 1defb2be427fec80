# flash.sh REQUESTS SKEW: skewed reads of a disk behind bcache on a stick; what was asked for comes
# out, with the reads that reached the disk.
set -e
export LC_ALL=C
requests=$1 skew=$2
disk=$(readlink -f /dev/vm/disk) stick=$(readlink -f /dev/vm/stick)
# With fewer than a thousand buckets it does not start.
bucket=$(($(blockdev --getsize64 "$stick") / 1024))
make-bcache --wipe-bcache --bucket $bucket -B "$disk" -C "$stick" >/dev/null
for device in "$stick" "$disk"; do
    echo "$device" >/sys/fs/bcache/register 2>/dev/null || true
done
for _ in {1..100}; do
    [ -b /dev/bcache0 ] && break
    sleep 0.1
done
[ -b /dev/bcache0 ] || exit 9
cache=/sys/block/bcache0/bcache
[ -e $cache/cache ] || { dmesg | grep bcache >&2; exit 9; }
echo writethrough >$cache/cache_mode
# All of it is cached, however slow the stick is.
echo 0 >$cache/sequential_cutoff
for kind in read write; do echo 0 >$cache/cache/congested_${kind}_threshold_us; done
bytes=$(blockdev --getsize64 /dev/bcache0)
reads() { awk '{ print $1, $3 / 8 }' "/sys/block/${disk##*/}/stat"; }
reads >/run/before
fio --name=z --filename=/dev/bcache0 --readonly --rw=randread --bs=4k --direct=1 --ioengine=psync \
    --size=$((bytes / 1048576))M --random_distribution=zipf:"$skew" --norandommap --randrepeat=1 \
    --randseed=42 --number_ios="$requests" --io_size=100g --write_iolog=/out/requests \
    --output=/out/fio
reads >/run/after
paste -d ' ' /run/before /run/after | awk -v requests="$requests" '{
    print "requests", requests
    print "disk_requests", $3 - $1
    print "disk_pages", $4 - $2 }' >/out/results
# The room that the cache has, for a note.
for name in nbuckets bucket_size; do
    echo "$name $(numfmt --from=iec "$(tr k K <$cache/cache/cache0/$name)")" >>/out/results
done
