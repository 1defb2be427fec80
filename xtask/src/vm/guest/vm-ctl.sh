#!/bin/bash
# vm-ctl unplug NAME: the host takes the disk away, as if someone pulled it out.
if [ "$1" != unplug ] || [ -z "$2" ] || [ $# != 2 ]; then
    echo "usage: vm-ctl unplug NAME" >&2
    exit 2
fi
device=$(readlink -f "/dev/vm/$2")
[ -e "$device" ] || { echo "vm-ctl: no disk $2" >&2; exit 1; }
echo "UNPLUG $2" >/dev/virtio-ports/status
for _ in {1..200}; do
    [ -e "$device" ] || exit 0
    sleep 0.05
done
echo "vm-ctl: disk $2 is still there" >&2
exit 1
