#!/bin/busybox sh
# First process of the guest: lays the scratch disk over the read-only root image and starts init there.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

fail() {
    echo "terrace-vm: $*" >/dev/console
    poweroff -f
}

# Sets $found to the virtio disk with this serial number, which may take a moment to appear.
find_disk() {
    tries=0
    while [ $tries -lt 400 ]; do
        for serial in /sys/block/vd*/serial; do
            if [ "$(cat "$serial" 2>/dev/null)" = "$1" ]; then
                found=${serial%/serial}
                found=/dev/${found##*/}
                return
            fi
        done
        tries=$((tries + 1))
        sleep 0.05
    done
    fail "no disk $1"
}

while read -r module; do insmod "/modules/$module"; done </modules/order
find_disk terrace-root
mount -t ext4 -o ro,noatime "$found" /root || fail "cannot mount the root image"
find_disk terrace-scratch
mount -t ext4 -o noatime "$found" /scratch || fail "cannot mount the scratch disk"
mount -t overlay -o lowerdir=/root,upperdir=/scratch/upper,workdir=/scratch/work overlay /new ||
    fail "cannot lay the scratch disk over the root image"
for tree in proc sys dev; do mount -o move /$tree /new/$tree; done
exec switch_root /new /sbin/terrace-init
