# Before systemd, in each boot: the units as `install` writes them, without the wait for the disk,
# since there is no udev that would say that it is there. The second boot has no stick.
set -e
mkdir -p /state /stick /srv/data
[ -n "$(blkid -s TYPE -o value /dev/vm/state)" ] || mkfs.ext4 -q -F /dev/vm/state
mount /dev/vm/state /state
parts="--backing /dev/vm/disk --cache /stick/cache --size 12m --state /state/boost"
if [ ! -e /state/boost ]; then
    mkfs.ext4 -q -F /dev/vm/stick
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/vm/disk
    mount /dev/vm/stick /stick
    terrace boost attach fast $parts >&2
    terrace boost detach fast >&2
    terrace boost install fast $parts --mount /srv/data >&2
    cp /etc/systemd/system/terrace-boost-fast.service /etc/systemd/system/srv-data.mount /state
    touch /state/first
else
    rm -f /state/first
    cp /state/terrace-boost-fast.service /state/srv-data.mount /etc/systemd/system
    mkdir -p /etc/systemd/system/local-fs.target.wants
    for unit in terrace-boost-fast.service srv-data.mount; do
        ln -s ../$unit /etc/systemd/system/local-fs.target.wants/
    done
fi
sed -i '/^\(Requires\|After\)=.*\.device$/d' /etc/systemd/system/terrace-boost-fast.service
# How the service ended, for the next boot.
mkdir -p /etc/systemd/system/terrace-boost-fast.service.d
cat >/etc/systemd/system/terrace-boost-fast.service.d/ended.conf <<'UNIT'
[Service]
ExecStopPost=/bin/sh -c 'echo $$SERVICE_RESULT >>/state/ended'
UNIT
