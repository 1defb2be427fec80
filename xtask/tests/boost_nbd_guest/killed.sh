# Attaches a cache by NBD, works on ext4 over it with a load that verifies what it reads, and kills
# the process that serves five times.
mount -t tmpfs points /mnt
mkdir /mnt/stick /mnt/host /mnt/disk
for name in stick host; do
    mkfs.ext4 -q -F /dev/vm/$name
    mount /dev/vm/$name /mnt/$name
done
mkfs.ext4 -q -F /dev/vm/disk
process() { terrace boost status nbd --json 2>/dev/null | sed -n 's/.*"process": \([0-9]*\).*/\1/p'; }

terrace boost attach nbd --backing /dev/vm/disk --cache /mnt/stick/cache --size 16m \
    --state /mnt/host/state --export nbd --resend-after 5s >plan 2>&1
echo "attach $?"
sed 's/^/plan /' plan
device=$(readlink /run/terrace/boost/nbd/device)
echo "device $device"
# A disk that cannot trim offers no trim.
name=${device#/dev/}
echo "discard $(cat /sys/block/$name/queue/discard_max_bytes)"
echo "disk_discard $(cat /sys/class/block/$(basename "$(readlink -f /dev/vm/disk)")/queue/discard_max_bytes)"
mount "$device" /mnt/disk
terrace boost detach nbd >said 2>&1
echo "detach_mounted $? $(cat said)"

fio --name=load --directory=/mnt/disk --size=8m --numjobs=2 --bs=4k --rw=randrw --direct=1 \
    --ioengine=psync --time_based --runtime=70 --verify=crc32c --verify_backlog=32 \
    --verify_fatal=1 --randseed=7 --minimal >fio.out 2>fio.err &
load=$!
kills=0
while [ $kills -lt 5 ]; do
    sleep 8
    old=$(process)
    kill -KILL "$old" || break
    kills=$((kills + 1))
    turn=0
    new=$(process)
    while [ -z "$new" ] || [ "$new" = "$old" ]; do
        turn=$((turn + 1))
        [ $turn -gt 200 ] && break
        sleep 0.1
        new=$(process)
    done
    echo "successor $([ -n "$new" ] && [ "$new" != "$old" ] && echo yes)"
done
# Killed before its end it would say nothing.
wait $load
echo "load $?"
echo "kills $kills"
echo "jobs $(wc -l <fio.out)"
sed 's/^/fio.err /' fio.err
dmesg | grep -c "I/O error, dev $name" | sed 's/^/io_errors /'
umount /mnt/disk
echo "umount $?"
terrace boost detach nbd >said 2>&1
echo "detach $? $(cat said)"
e2fsck -fn /dev/vm/disk >fsck 2>&1
echo "fsck $?"
echo "left $(cat /sys/block/$name/backend 2>/dev/null)"
