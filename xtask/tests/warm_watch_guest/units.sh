# Before systemd, in each boot: what a package installs, and a disk of swap. What `systemctl enable`
# writes is kept on a disk, so that the next boot finds it there and nowhere else.
set -e
mv "$(command -v terrace)" /usr/bin/terrace
cp terrace-warm-watch.service /usr/lib/systemd/system/
mkdir -p /state
wants=/etc/systemd/system/multi-user.target.wants
if [ -z "$(blkid -s TYPE -o value /dev/vm/state)" ]; then
    mkfs.ext4 -q -F /dev/vm/state
    mkswap /dev/vm/swap >/dev/null
    mount /dev/vm/state /state
    cp -a $wants /state/wants
else
    mount /dev/vm/state /state
fi
mount --bind /state/wants $wants
swapon /dev/vm/swap
