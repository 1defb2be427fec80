# A disk behind a cache on a stick: engine is boost, bcache, dm-cache or none. The device that
# programs use is $device; it has ext4 with one file, $data. On a machine that is no guest, POINTS,
# OUT, DISK, STICK and NAME say where all is.
set -e
export LC_ALL=C DM_DISABLE_UDEV=1
points=${POINTS:-/run/points} out=${OUT:-/out} name=${NAME:-c}
disk=$(readlink -f "${DISK:-/dev/vm/disk}") stick=$(readlink -f "${STICK:-/dev/vm/stick}")
mkdir -p $points
mount -t tmpfs points $points
mkdir -p $points/volume $points/stick $points/state
data=$points/volume/data
cache=$points/stick/cache state=$points/state/boost

make_ext4() { mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$1"; }

terrace_attach() {
    mount "$stick" $points/stick
    # It is there in the next boot of a guest.
    [ ! -b /dev/vm/state ] || mount /dev/vm/state $points/state
    terrace boost attach $name --backing "$disk" --cache $cache --size "$size" --state $state >&2
    device=$(readlink -f /run/terrace/boost/$name/device)
}

terrace_detach() { terrace boost detach $name >&2; }

bcache_register() {
    for member in "$stick" "$disk"; do
        echo "$member" >/sys/fs/bcache/register 2>/dev/null || true
    done
    for _ in {1..100}; do
        [ -e /sys/block/bcache0/bcache/cache ] && break
        sleep 0.1
    done
    device=/dev/bcache0
    echo writethrough >/sys/block/bcache0/bcache/cache_mode
    # All of it is cached, however slow the stick is.
    echo 0 >/sys/block/bcache0/bcache/sequential_cutoff
    for kind in read write; do
        echo 0 >/sys/block/bcache0/bcache/cache/congested_${kind}_threshold_us
    done
}

dm_attach() {
    meta=16384
    dmsetup create meta --table "0 $meta linear $stick 0"
    dmsetup create blocks --table "0 $(($(blockdev --getsz "$stick") - meta)) linear $stick $meta"
    dd if=/dev/zero of=/dev/mapper/meta bs=4096 count=1 oflag=direct status=none
    dmsetup create cached --table "0 $(blockdev --getsz "$disk") cache /dev/mapper/meta \
/dev/mapper/blocks $disk 64 1 writethrough smq 0"
    device=/dev/mapper/cached
}

# The disk with its file, and the cache before it, empty.
make() {
    local mib=$1
    # bcache has its own head on the disk: it is made before the file system.
    if [ "$engine" = bcache ]; then
        make-bcache --wipe-bcache --bucket $(($(blockdev --getsize64 "$stick") / 1024)) \
            -B "$disk" -C "$stick" >/dev/null
        bcache_register
        device_made=$device
    else
        device_made=$disk
    fi
    make_ext4 "$device_made"
    mount "$device_made" $points/volume
    python3 use.py make $data "$mib"
    umount $points/volume
    case $engine in
        boost)
            make_ext4 "$stick"
            [ ! -b /dev/vm/state ] || make_ext4 /dev/vm/state
            terrace_attach
            ;;
        # What was written while it was made is dropped from its stick.
        bcache)
            echo 1 >/sys/block/bcache0/bcache/detach
            for _ in {1..100}; do [ -e /sys/block/bcache0/bcache/cache ] || break; sleep 0.1; done
            set_of=$(ls -d /sys/fs/bcache/*-*)
            echo 1 >"$set_of/stop"
            sleep 1
            wipefs -qa "$stick"
            make-bcache --wipe-bcache --bucket $(($(blockdev --getsize64 "$stick") / 1024)) \
                -C "$stick" >/dev/null
            echo "$stick" >/sys/fs/bcache/register
            sleep 0.5
            basename "$(ls -d /sys/fs/bcache/*-*)" >/sys/block/bcache0/bcache/attach
            bcache_register
            ;;
        dm-cache) dm_attach ;;
        none) device=$disk ;;
    esac
    mount "$device" $points/volume
}

written_to() { awk '{ print $7 * 512 }' "/sys/block/$(basename "$1")/stat"; }
