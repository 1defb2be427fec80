# hit.sh TERRACE DIRECTORY hit|capacity: a cache in memory, on loop devices of its own in DIRECTORY.
# hit: microseconds of a read of 4 KiB that it answers, and of one of its loop device (medians).
# capacity: bytes that it holds of a disk full of programs for each byte that it may use.
set -e
export LC_ALL=C
terrace=$1 directory=$2 name=terrace-bench-$$
volume= stick=
end() {
    set +e
    "$terrace" boost detach "$name" >/dev/null 2>&1
    umount "$directory/stick" 2>/dev/null
    [ -z "$stick" ] || losetup -d "$stick"
    [ -z "$volume" ] || losetup -d "$volume"
    umount "$directory/ram" 2>/dev/null
    rm -rf "$directory"
}
trap end EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$directory/ram" "$directory/stick" "$directory/files"
mount -t tmpfs -o size=700m ram "$directory/ram"

# read_us DEVICE SECONDS: the median of random reads, one at a time.
read_us() {
    fio --name=r --filename="$1" --readonly --rw=randread --bs=4k --direct=1 --ioengine=psync \
        --size=32m --time_based --runtime="$2" --output-format=json \
        | python3 -c 'import json, sys
print(json.load(sys.stdin)["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"] / 1000)'
}

case $3 in
    hit) disk_mib=128 cache_mib=96 ;;
    capacity) disk_mib=1024 cache_mib=256 ;;
esac
truncate -s ${disk_mib}M "$directory/volume"
truncate -s $((cache_mib + 64))M "$directory/ram/stick"
mkfs.ext4 -q -F "$directory/volume"
volume=$(losetup -f --show "$directory/volume")
mount "$volume" "$directory/files"
# As much as there is room for.
cp -a /usr/bin /usr/lib "$directory/files/" 2>/dev/null || true
umount "$directory/files"
losetup -d "$volume"
volume=$(losetup -f --show --direct-io=on "$directory/volume")
mkfs.ext4 -q -F "$directory/ram/stick"
stick=$(losetup -f --show "$directory/ram/stick")
mount "$stick" "$directory/stick"
"$terrace" boost attach "$name" --backing "$volume" --cache "$directory/stick/cache" \
    --size ${cache_mib}m --state "$directory/state" >&2
device=$(readlink -f "/run/terrace/boost/$name/device")
case $3 in
    hit)
        read_us "$device" 20 >/dev/null
        echo "hit_us $(read_us "$device" 5)"
        echo "loop_us $(read_us "$stick" 5)"
        ;;
    capacity)
        for _ in 1 2 3; do
            fio --name=r --filename="$device" --readonly --rw=randread --bs=16k --direct=1 \
                --ioengine=psync --numjobs=4 --offset_increment=25% --size=25% --output=/dev/null
        done
        "$terrace" boost status "$name" --json | python3 -c 'import json, sys
cache = json.load(sys.stdin)["caches"][0]
print("held", cache["cached_bytes"] / cache["cache_bytes"])'
        ;;
esac
