# cost.sh TERRACE DIRECTORY DISK cached|alone: what the cache costs where it has nothing, before a disk
# of this machine. Files in DIRECTORY: rate_s, read_us and write_us, a line for each request.
set -e
export LC_ALL=C
terrace=$1 directory=$2 device=$3 name=terrace-bench-$$
stick=
end() {
    set +e
    "$terrace" boost detach "$name" >/dev/null 2>&1
    umount "$directory/stick" 2>/dev/null
    [ -z "$stick" ] || losetup -d "$stick"
    umount "$directory/ram" 2>/dev/null
    rmdir "$directory/ram" "$directory/stick" 2>/dev/null
}
trap end EXIT
trap 'exit 1' INT TERM HUP
if [ "$4" = cached ]; then
    mkdir -p "$directory/ram" "$directory/stick"
    mount -t tmpfs -o size=200m ram "$directory/ram"
    truncate -s 160M "$directory/ram/stick"
    mkfs.ext4 -q -F "$directory/ram/stick"
    stick=$(losetup -f --show "$directory/ram/stick")
    mount "$stick" "$directory/stick"
    "$terrace" boost attach "$name" --backing "$device" --cache "$directory/stick/cache" \
        --size 96m --state "$directory/state" >&2
    device=$(readlink -f "/run/terrace/boost/$name/device")
fi
use() { python3 "$directory/use.py" "$@"; }
use rate "$device" 64 >"$directory/rate_s"
use random "$device" 300 1 r 0.5 "$directory/read_us"
use random "$device" 600 2 w 0.5 "$directory/write_us"
