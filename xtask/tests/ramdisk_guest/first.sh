# Under systemd: a RAM disk of which nothing was ever saved is filled, and the machine powers off.
echo first.seen "$(cat /run/seen)"
echo first.active "$(systemctl is-active terrace-ramdisk-ram.service)"
echo first.strict "$(systemctl is-active strict.service)"
echo first.saved "$(ls /store/ram | grep -c generation)"
# Twice, as a unit that stayed active would save the first time only.
for at in 1 2; do
    echo "before sleep $at" >/ram/note
    systemctl start suspend.target
done
echo first.slept $(cat /run/slept)
terrace ramdisk extract 3 note back --persist /store/ram >/dev/null
echo first.note "$(cat back/note)"
# A directory on the disk moves onto a RAM disk, and is kept by its name.
mkdir /store/moved
echo old >/store/moved/file
terrace ramdisk adopt /store/moved --size 64m --persist /store/moved-store >/dev/null
terrace ramdisk install moved >/dev/null
mkdir -p /store/units/local-fs.target.wants
units=/etc/systemd/system
cp -a $units/terrace-ramdisk-store-moved* /store/units
cp -a $units/local-fs.target.wants/terrace-ramdisk-store-moved* /store/units/local-fs.target.wants
systemctl start terrace-ramdisk-store-moved
echo new >/store/moved/file
echo first.known $(terrace ramdisk list | grep -c 'last saved')
mkdir -p /ram/tree
head -c "${MIB}M" /dev/urandom >/ram/tree/large
for at in $(seq 200); do echo "content $at" >/ram/tree/small$at; done
(cd /ram/tree && cat * | md5sum | cut -d' ' -f1) >/ram/sum
echo first.sum "$(cat /ram/sum)"
