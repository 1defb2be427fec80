# usb.sh TURNS MIB FILE_SYSTEM: files to a stick, and a copy that is interrupted.
. /bench/lib.sh
turns=$1 size=$2 kind=$3
modprobe "$kind" 2>/dev/null || :
case $kind in
    vfat) mkfs.vfat -F 32 /dev/vm/stick >/dev/null ;;
    exfat) mkfs.exfat /dev/vm/stick >/dev/null ;;
esac
if [ "$kind" = ext4 ]; then
    make_ext4 stick
    options=--direct
else
    mkdir /mnt/stick
    mount -t "$kind" /dev/vm/stick /mnt/stick
    # A direct write goes through the cache there.
    options=
fi
mkdir /run/files
for file in $(seq 12); do
    dd if=/dev/zero of=/run/files/file"$file" bs=1M count=$((size / 12)) status=none
done
for turn in $(seq "$turns"); do
    echo "turn $turn of $turns"
    clean /mnt/stick/files
    rate stick /mnt/stick/rate "${size}M" $options
    for name in $(in_turn "$turn" terrace cp rsync); do
        clean /mnt/stick/files
        copy_by "$name" stick stick /mnt/stick /run/files /mnt/stick/
    done
    clean /mnt/stick/files
    watch interrupted.terrace stick /mnt/stick 4 terrace copy --now /run/files /mnt/stick/
    rm -rf /mnt/stick/.terrace-copy*
done
