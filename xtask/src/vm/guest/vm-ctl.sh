#!/bin/bash
# vm-ctl unplug NAME: the host takes the disk away, as if someone pulled it out.
# vm-ctl plug NAME: it is put in again, perhaps under another name of the kernel.
# vm-ctl cut: the power fails now.
. /usr/lib/terrace-vm/disks.sh
. /etc/terrace-vm/config

case $1:$# in
    unplug:2 | plug:2 | cut:1) ;;
    *)
        echo "usage: vm-ctl unplug NAME | plug NAME | cut" >&2
        exit 2
        ;;
esac
if [ "$1" = cut ]; then
    echo CUT >/dev/virtio-ports/status
    # Nothing of this command runs any more.
    while :; do sleep 60; done
fi
for disk in "${DISKS[@]}"; do
    [ "${disk%:*}" = "$2" ] && rotational=${disk#*:}
done
[ -n "$rotational" ] || { echo "vm-ctl: no disk $2" >&2; exit 1; }
device=$(readlink -f "/dev/vm/$2")
if [ "$1" = plug ]; then
    [ -b "$device" ] && { echo "vm-ctl: disk $2 is not unplugged" >&2; exit 1; }
    echo "PLUG $2" >/dev/virtio-ports/status
    name_disk "$2" "$rotational" && exit 0
    echo "vm-ctl: disk $2 did not appear" >&2
    exit 1
fi
[ -e "$device" ] || { echo "vm-ctl: disk $2 is not there" >&2; exit 1; }
echo "UNPLUG $2" >/dev/virtio-ports/status
for _ in {1..200}; do
    [ -e "$device" ] || exit 0
    sleep 0.05
done
echo "vm-ctl: disk $2 is still there" >&2
exit 1
