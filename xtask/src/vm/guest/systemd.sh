# What follows the set-up of init.sh where systemd is process 1: it boots, a service of it runs the
# command, and its status is said when all has been stopped and unmounted.
# There is no udev: a unit of a device would never be there, so disks are mounted by the script that
# runs before.
cd /bench || fail "no /bench"
# The same in each boot of a guest, so that a journal that is kept on a disk is one.
echo 7e44ace07e44ace07e44ace07e44ace0 >/etc/machine-id
units=/etc/systemd/system
mkdir -p "$units/multi-user.target.wants" /usr/lib/systemd/system-shutdown
for masked in e2scrub_reap.service getty.target ldconfig.service serial-getty@ttyS0.service \
    systemd-binfmt.service systemd-firstboot.service systemd-hwdb-update.service \
    systemd-journal-catalog-update.service systemd-logind.service systemd-sysusers.service \
    systemd-update-done.service; do
    ln -sf /dev/null "$units/$masked"
done
ln -sf /usr/lib/systemd/system/multi-user.target "$units/default.target"
cat >"$units/terrace-vm.service" <<'UNIT'
[Unit]
Description=the command of cargo xtask vm
After=multi-user.target

[Service]
Type=exec
ExecStart=/bin/bash /usr/lib/terrace-vm/run.sh
TimeoutStartSec=infinity
UNIT
ln -sf ../terrace-vm.service "$units/multi-user.target.wants/terrace-vm.service"
cat >/usr/lib/terrace-vm/run.sh <<'RUN'
. /etc/terrace-vm/config
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
cd /bench
timeout --kill-after=5 "$TIMEOUT_S" setsid --wait bash /etc/terrace-vm/command \
    </dev/null >/dev/virtio-ports/stdout 2>/dev/virtio-ports/stderr
echo $? >/run/terrace-vm.status
if [ -n "$TAKE_OUT" ]; then tar -C /out -cf /dev/virtio-ports/out .; fi
systemctl poweroff
RUN
cat >/usr/lib/systemd/system-shutdown/terrace-vm <<'HOOK'
#!/bin/bash
echo "EXIT $(</run/terrace-vm.status)" >/dev/virtio-ports/status
sleep 60
HOOK
chmod 755 /usr/lib/systemd/system-shutdown/terrace-vm
tell READY
bash /etc/terrace-vm/before </dev/null >/dev/virtio-ports/stdout 2>/dev/virtio-ports/stderr ||
    fail "the script before systemd failed"
exec /lib/systemd/systemd --system --log-target=console --show-status=no </dev/console >/dev/console 2>&1
