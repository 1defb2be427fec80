# Copies to six disks with write caches, each at a rate of its own, and cuts the power midway: some
# copies have just begun, some are at their end. Even disks get the files into a directory that
# exists, so each file gets its name by a rename of its own.
set -e
mount -t tmpfs points /mnt
for n in 1 2 3 4 5 6; do
    mkfs.ext4 -q -F /dev/vm/d$n
    mkdir /mnt/d$n
    mount /dev/vm/d$n /mnt/d$n
    mkdir /mnt/d$n/into
done
sync
for n in 1 2 3 4 5 6; do
    case $n in
        1 | 3 | 5) source=/bench/tree ;;
        *) source=/bench/tree/. ;;
    esac
    terrace copy --limit-rate $((n * n * 300))k $source /mnt/d$n/into/ >/dev/null 2>&1 &
done
while [ "$(find /mnt/d*/into -name 'file*' | wc -l)" -lt "$MOMENT" ]; do :; done
vm-ctl cut
