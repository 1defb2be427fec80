# After the cut: what has a name is whole, and the same command ends with all of it. Then a stick
# is pulled out midway, two copies to it wait for each other, it is ejected, a stick with FAT gets
# what FAT cannot hold, files are copied to a fake stick, which keeps a part of them, and files that
# are scattered on a disk with a head are read.
cd /run || exit 9
sums() { (cd "$1" && find . -type f -not -path '*/.terrace-copy*' -exec md5sum {} + | sort -k2); }
sums /bench/tree >expected
sort expected >sorted
mount -t tmpfs points /mnt
for n in 1 2 3 4 5 6; do
    mkdir /mnt/d$n
    mount /dev/vm/d$n /mnt/d$n || echo d$n.mount failed
    case $n in
        1 | 3 | 5) source=/bench/tree top=/mnt/d$n/into/tree ;;
        *) source=/bench/tree/. top=/mnt/d$n/into ;;
    esac
    if [ -e "$top" ]; then sums "$top"; fi >found
    echo d$n.named $(wc -l <found)
    echo d$n.broken $(sort found | comm -23 - sorted | wc -l)
    terrace copy $source /mnt/d$n/into/ >said 2>&1
    echo d$n.status $?
    grep -q 'from an earlier run' said && echo d$n.resumed 1
    [ "$(sums "$top")" = "$(cat expected)" ] && echo d$n.equal 1
    ls -A /mnt/d$n/into | grep -c terrace-copy | sed "s/^/d$n.hidden /"
    umount /mnt/d$n
    e2fsck -fn /dev/vm/d$n >/dev/null 2>&1
    echo d$n.checked $?
done

mkfs.ext4 -q -F /dev/vm/stick
mkdir /mnt/stick
mount /dev/vm/stick /mnt/stick
terrace copy --now /bench/tree /mnt/stick/ >out 2>said &
copy=$!
while [ "$(awk '{print $7}' /sys/block/$(basename "$(readlink -f /dev/vm/stick)")/stat)" -lt 9000 ]; do :; done
vm-ctl unplug stick
wait $copy
echo stick.status $?
sed 's/^/stick.said /' said
umount -l /mnt/stick
vm-ctl plug stick
e2fsck -fy /dev/vm/stick >/dev/null 2>&1
echo stick.fsck $?
mount /dev/vm/stick /mnt/stick && terrace copy --now /bench/tree /mnt/stick/ >/dev/null
echo stick.again $?
[ "$(sums /mnt/stick/tree)" = "$(cat expected)" ] && echo stick.equal 1

rm -rf /mnt/stick/tree
head -c 24M /dev/zero >one
head -c 17M /dev/zero >two
terrace copy one /mnt/stick/ >/dev/null 2>&1 &
first=$!
until ls -d /mnt/stick/.terrace-copy* >/dev/null 2>&1; do :; done
terrace copy two /mnt/stick/ >/dev/null 2>said &
second=$!
wait $first
echo queue.first $?
[ -e /mnt/stick/two ] || echo queue.waited 1
wait $second
echo queue.second $?
grep -c "waits for process $first (" said | sed 's/^/queue.named /'

sleep 1000 </mnt/stick/one &
holder=$!
terrace copy --eject expected /mnt/stick/ >out 2>said
echo eject.held $?
grep -c "$holder (sleep)" said | sed 's/^/eject.named /'
sed 's/^/eject.said /' said
grep -c ' /mnt/stick ' /proc/mounts | sed 's/^/eject.mounted /'
kill $holder
wait $holder
terrace copy --eject --verify sorted /mnt/stick/ >out 2>said
echo eject.status $?
tr '\n' ' ' <out | tr -s ' ' | grep -c 'is safe to unplug' | sed 's/^/eject.safe /'
grep -c ' /mnt/stick ' /proc/mounts | sed 's/^/eject.left /'

# As sticks are sold: with FAT, which was made elsewhere.
mount_fake() { mount -t vfat /dev/vm/fake /mnt/fake; }
fat() {
    mkdir odd odd/below
    for name in plain a:b README readme below/one; do echo "$name" >"odd/$name"; done
    truncate -s 4G odd/huge
    ln -s plain odd/link
    mkfifo odd/pipe
    mount_fake
    terrace copy --now /run/odd /mnt/fake/ >out 2>said
    echo fat.refused $?
    tr -s '\n ' ' ' <said | sed 's/^/fat.said /'
    echo
    ls -A /mnt/fake | wc -l | sed 's/^/fat.touched /'
    terrace copy --dry-run /run/odd /mnt/fake/ >out
    echo fat.dry $?
    grep -c 'does not fit: ' out | sed 's/^/fat.listed /'
    terrace copy --now --skip-unfit /run/odd /mnt/fake/ >out 2>said
    echo fat.skipping $?
    grep -c 'not copied: ' out | sed 's/^/fat.left_out /'
    cat out said | tr -s '\n ' ' ' | sed 's/^/fat.page /'
    echo
    echo fat.names $(LC_ALL=C ls /mnt/fake/odd)
    [ "$(cat /mnt/fake/odd/plain /mnt/fake/odd/below/one)" = "$(cat odd/plain odd/below/one)" ] &&
        echo fat.equal 1
    rm -rf /mnt/fake/odd odd
    umount /mnt/fake
}
fake() {
    mount_fake
    terrace copy --now /bench/tree /mnt/fake/ >/dev/null 2>&1
    echo fake.trusted $?
    umount /mnt/fake
    mount_fake
    sums /mnt/fake/tree | sort | comm -12 - sorted | wc -l | sed 's/^/fake.kept /'
    rm -rf /mnt/fake/tree
    umount /mnt/fake
    mount_fake
    terrace copy --verify --now /bench/tree /mnt/fake/ >out 2>said
    echo fake.verified $?
    cat out said | tr -s '\n ' ' ' | sed 's/^/fake.said /'
    echo
    find /mnt/fake/tree -name 'file*' | wc -l | sed 's/^/fake.named /'
    umount /mnt/fake
    mount_fake
    sums /mnt/fake/tree 2>/dev/null | sort | comm -23 - sorted | wc -l | sed 's/^/fake.wrong /'
    umount /mnt/fake
}
if [ -e /dev/vm/fake ]; then
    mkdir /mnt/fake
    fat
    fake
fi
