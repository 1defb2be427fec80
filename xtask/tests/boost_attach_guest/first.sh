# The stick of a disk in use is pulled out and put in again; then that cache is ended, and the power
# is cut while another disk is read and written through its own.
. ./lib.sh
for disk in one two stick state; do make_ext4 $disk; done
mount /dev/vm/state $points/state
mount /dev/vm/stick $points/stick
attach one
mount "$(device one)" $points/one
verified $points/one 1
until_it "one is warm" has_hits one 150
vm-ctl unplug stick
until_it "the pull is noticed" is_off one
off=$(field one hits)
# Regions that the stick has are written meanwhile.
sleep 2
echo one.off.hits $(($(field one hits) - off))
umount -l $points/stick
vm-ctl plug stick
mount /dev/vm/stick $points/stick
until_it "the stick is found" is_on one
on=$(field one hits)
until_it "one is read from the stick again" has_hits one $((on + 150))
echo one.on.hits $(($(field one hits) - on))
# Nearly all memory is taken meanwhile.
service=$(field one process)
echo one.short.mib "$(python3 blocks.py short /proc/meminfo 6)"
[ "$(field one process)" = "$service" ] && echo one.short.service same
on=$(field one hits)
until_it "one is read from the stick when memory was short" has_hits one $((on + 50))
end_verified one
umount $points/one
compare one

attach two
mount "$(device two)" $points/two
python3 blocks.py make $points/two/data 4
sync
python3 blocks.py skewed $points/two/data 1200 1 0
before=$(field two hits)
python3 blocks.py skewed $points/two/data 300 2 0
echo two.hits $(($(field two hits) - before))
python3 blocks.py skewed $points/two/data 1000000 3 10 &
sleep 3
vm-ctl cut
