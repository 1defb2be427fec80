# Before systemd, in each boot: the disk of the store, the units of the RAM disk as `install` writes
# them, ordinary services that use it, and what the test reads.
set -e
mkdir -p /ram /store /var/log/journal
[ -n "$(blkid -s TYPE -o value /dev/vm/store)" ] || mkfs.ext4 -q -F -O ^has_journal /dev/vm/store
mount /dev/vm/store /store
# The second boot shows what was said in the first one.
mkdir -p /store/journal
mount --bind /store/journal /var/log/journal
mount -t tmpfs -o size=900m,mode=755 tmpfs /ram
terrace ramdisk install /ram --persist /store/ram --every 1h --before strict.service >/dev/null
umount /ram
cd /etc/systemd/system
cat >user.service <<'UNIT'
[Unit]
Description=an ordinary service that uses the RAM disk

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'cat /ram/sum >/run/seen || echo nothing >/run/seen'
ExecStop=/bin/sh -c 'echo late >/ram/late'
UNIT
cat >strict.service <<'UNIT'
[Unit]
Description=a service that does not start without it
After=local-fs.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
UNIT
# Those of the adopted directory, which the first boot made.
if [ -d /store/units ]; then cp -a /store/units/. .; fi
for unit in user strict; do
    ln -s ../$unit.service multi-user.target.wants/
done
# In place of the sleep itself: what the store has at that moment.
mkdir systemd-suspend.service.d
cat >systemd-suspend.service.d/slept.conf <<'UNIT'
[Service]
ExecStart=
ExecStart=/bin/sh -c 'ls /store/ram | grep -c generation >>/run/slept'
UNIT
