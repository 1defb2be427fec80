# hdd.sh TURNS MIB across|within: one file from disk to disk, or within one disk.
. /bench/lib.sh
turns=$1 size=$2 what=$3
for disk in a b; do make_ext4 $disk; done
direct='bs=1M status=none'
dd if=/dev/zero of=/mnt/a/file count="$size" oflag=direct $direct
for turn in $(seq "$turns"); do
    echo "turn $turn of $turns"
    clean /mnt/b/copy
    if [ "$what" = across ]; then
        read_rate read /mnt/a/file "${size}M" --direct
        rate write /mnt/b/rate "${size}M" --direct
        cold
    fi
    for name in $(in_turn "$turn" terrace cp); do
        clean /mnt/a/copy /mnt/b/copy
        case $what in
            across) copy_by "$name" across b /mnt/b /mnt/a/file /mnt/b/copy ;;
            within) copy_by "$name" within a /mnt/a /mnt/a/file /mnt/a/copy ;;
        esac
    done
done
