# The next boot: what an ordinary service found at its start, and what is there.
echo second.seen "$(cat /run/seen)"
echo second.active "$(systemctl is-active terrace-ramdisk-ram.service)"
echo second.strict "$(systemctl is-active strict.service)"
echo second.sum "$(cd /ram/tree && cat * | md5sum | cut -d' ' -f1)"
echo second.late "$(cat /ram/late)"
echo second.restarts "$(systemctl show -p NRestarts --value terrace-ramdisk-ram.service)"
echo second.moved "$(cat /store/moved/file)" "$(systemctl is-active terrace-ramdisk-store-moved)"
echo second.known $(terrace ramdisk list | grep -c 'last saved')
echo newer >/store/moved/file
terrace ramdisk uninstall moved >/dev/null
terrace ramdisk release moved >/dev/null
echo second.released "$(cat /store/moved/file)" $(grep -c /store/moved /proc/self/mounts)
systemd-analyze verify /etc/systemd/system/*ram*.* 2>/run/complaints
echo second.verified $? "$(grep -c ram /run/complaints)"
sed 's/^/# /' /run/complaints
for boot in -1 0; do
    journalctl -b $boot -u 'terrace-ramdisk-*' -u ram.mount -u sleep.target | sed 's/^/# /'
done
