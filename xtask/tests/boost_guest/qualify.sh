# Qualifies sound sticks with FAT, exFAT and ext4, one with a burst, two fakes whose next file begins
# behind what they have, one that is full, one that is read-only, and one that is pulled out while its
# file is written.
mount -t tmpfs points /mnt
field() { tr -d ' \n' <out | grep -o "\"$2\":[^,}]*" | head -n 1 | tr -d '"' | sed "s/.*:/$1 /"; }

# What one command said and what it left.
tell() {
    for name in outcome answer aliases_read is_restored damaged_place written_bytes bus; do
        field "$1.$name" $name
    done
    grep -c '^terrace:' said | sed "s/^/$1.lines /"
    sed "s/^/$1.said /" said
    ls -A "/mnt/$1" | grep -vc lost+found | sed "s/^/$1.left /"
}

try() {
    name=$1
    shift
    terrace boost qualify "/mnt/$name" --for /dev/vm/hdd "$@" --json >out 2>said
    echo "$name.status $?"
    tell "$name"
}

place() {
    mkdir "/mnt/$1"
    mount -t "$2" "/dev/vm/$1" "/mnt/$1"
}

mkfs.ext4 -q -F /dev/vm/ext4
for kind in vfat exfat ext4; do
    place $kind $kind
    # exFAT says where the second block will be that is tried, behind 16 MiB.
    try $kind --size 20m --budget 4s
done

mkfs.ext4 -q -F -O ^has_journal /dev/vm/burst
place burst ext4
try burst --size 32m --budget 10s
tr -d ' \n' <out | grep -o '"burst":{"bytes":[0-9]*' | sed 's/.*:/burst.bytes /'
tr -d ' \n' <out | grep -o '"sustained_write":{"median":[0-9]*' | sed 's/.*:/burst.lasting /'

for fake in wraps forgets; do
    dd if=/dev/vm/$fake of=before bs=1M count=32 2>/dev/null
    place $fake vfat
    try $fake --size 16m --budget 5s | tee tried
    damaged=$(sed -n "s/^$fake.damaged_place \([0-9]*\)$/\1/p" tried)
    # One that forgets has no other place.
    [ "$damaged" ] || continue
    echo 3 >/proc/sys/vm/drop_caches
    dd if=/dev/vm/$fake of=one skip=$((damaged / 512)) count=8 2>/dev/null
    dd if=before of=two skip=$((damaged / 512)) count=8 2>/dev/null
    [ "$(md5sum <one)" = "$(md5sum <two)" ] && echo $fake.equal 1
done

# Full to the last megabyte.
mkdir /mnt/full /mnt/readonly
mount --bind /mnt/vfat /mnt/full
dd if=/dev/zero of=/mnt/full/photos bs=1M 2>/dev/null
ls -A /mnt/full | wc -l | sed 's/^/full.there /'
try full --size 16m --budget 5s
mount -o remount,ro /mnt/exfat
mount --bind /mnt/exfat /mnt/readonly
ls -A /mnt/readonly | wc -l | sed 's/^/readonly.there /'
try readonly --size 16m --budget 5s

mkfs.ext4 -q -F /dev/vm/pulled
place pulled ext4
terrace boost qualify /mnt/pulled --size 64m --budget 60s --json >out 2>said &
run=$!
stat="/sys/block/$(basename "$(readlink -f /dev/vm/pulled)")/stat"
begin=$(awk '{print $7}' "$stat")
while [ "$(awk '{print $7}' "$stat")" -lt $((begin + 16000)) ]; do :; done
vm-ctl unplug pulled
wait $run
echo pulled.status $?
umount -l /mnt/pulled
vm-ctl plug pulled
mount /dev/vm/pulled /mnt/pulled
tell pulled
df /mnt/pulled | tail -n 1 | awk '{print "pulled.used", $3}'
