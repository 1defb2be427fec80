# Functions of the guest's own scripts that find disks by their names.

# The serial number of a block device, wherever its bus keeps it.
serial_of() {
    local block=/sys/block/$1 device
    if [ -e "$block/serial" ]; then cat "$block/serial"; return; fi
    if [ -e "$block/device/serial" ]; then cat "$block/device/serial"; return; fi
    device=$(readlink -f "$block/device")
    while [ "$device" != / ] && [ -n "$device" ]; do
        if [ -e "$device/idVendor" ]; then cat "$device/serial"; return; fi
        device=${device%/*}
    done
    [ -e "$block/device/vpd_pg80" ] && tail -c +5 "$block/device/vpd_pg80" | tr -d '\0'
}

# Links /dev/vm/NAME to the disk with that serial number, waiting until it appears.
name_disk() {
    local name=$1 rotational=$2 block kernel_name
    for _ in {1..400}; do
        for block in /sys/block/{vd,sd,nvme}*; do
            kernel_name=${block##*/}
            if [ -e "/dev/$kernel_name" ] && [ "$(serial_of "$kernel_name" | tr -d ' ')" = "$name" ]; then
                echo "$rotational" >"$block/queue/rotational"
                ln -sfn "../$kernel_name" "/dev/vm/$name"
                return 0
            fi
        done
        sleep 0.05
    done
    return 1
}
