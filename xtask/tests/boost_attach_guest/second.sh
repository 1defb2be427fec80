# The next boot: both caches are warm, and give what the disks have.
. ./lib.sh
mount /dev/vm/state $points/state
mount /dev/vm/stick $points/stick
attach one
compare one
attach two
mount "$(device two)" $points/two
before=$(field two hits)
python3 blocks.py skewed $points/two/data 300 2 0
echo two.cut.hits $(($(field two hits) - before))
umount $points/two
e2fsck -fn "$(device two)" >/run/checked 2>&1 && echo two.checked 0 || echo two.checked $?
compare two
