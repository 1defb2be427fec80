#!/bin/bash
# Process 1 of the guest: names the disks, runs the command, hands out its status and /out.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LANG=C.UTF-8

mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o size=50% tmp /tmp
mkdir -p /dev/pts /dev/shm /dev/vm /dev/virtio-ports
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
ln -sf /proc/self/fd /dev/fd
busybox ip link set lo up
busybox hostname terrace-vm

# Ports are created by the host in an order of its own; they are known by name.
for _ in {1..400}; do
    for name in /sys/class/virtio-ports/*/name; do
        [ -e "$name" ] || continue
        port=${name%/name}
        ln -sf "/dev/${port##*/}" "/dev/virtio-ports/$(<"$name")"
    done
    [ -e /dev/virtio-ports/status ] && [ -e /dev/virtio-ports/out ] &&
        [ -e /dev/virtio-ports/stdout ] && [ -e /dev/virtio-ports/stderr ] && break
    sleep 0.05
done

tell() { echo "$*" >/dev/virtio-ports/status; }

fail() {
    tell "FAIL $*"
    sleep 60
    busybox poweroff -f
}

. /usr/lib/terrace-vm/disks.sh
. /etc/terrace-vm/config
for module in "${MODULES[@]}"; do modprobe "$module" || fail "no module $module in this kernel"; done
for disk in "${DISKS[@]}"; do
    name_disk "${disk%:*}" "${disk#*:}" || fail "disk ${disk%:*} did not appear"
done

cd /bench || fail "no /bench"
tell READY
timeout --kill-after=5 "$TIMEOUT_S" setsid --wait bash /etc/terrace-vm/command \
    </dev/null >/dev/virtio-ports/stdout 2>/dev/virtio-ports/stderr
status=$?
if [ -n "$TAKE_OUT" ]; then tar -C /out -cf /dev/virtio-ports/out .; fi
sync
tell "EXIT $status"
sleep 60
busybox poweroff -f
