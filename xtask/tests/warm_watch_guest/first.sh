# Under systemd: the unit is off, is switched on by one command, restores after a shortage, is killed
# and restores after the next; then what it can do within its fences is compared with what root can
# do without them.
. ./lib.sh
echo before "$(systemctl is-active $unit)" "$(systemctl is-enabled $unit)"
systemctl enable --now $unit 2>/dev/null
echo enabled "$(systemctl is-active $unit)" "$(show Type)"
pid=$(show MainPID)
for fence in CapEff CapBnd NoNewPrivs Seccomp; do
    echo fence.$fence "$(awk "/^$fence:/ { print \$2 }" "/proc/$pid/status")"
done
echo fence.net "$([ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/1/ns/net)" ] && echo own)"
shortage first
echo first.restarts "$(show NRestarts)"
echo first.pid "$([ "$(show MainPID)" = "$pid" ] && echo same)"
systemctl kill --signal=KILL $unit
is_another() { [ "$(show MainPID)" != "$pid" ] && [ "$(systemctl is-active $unit)" = active ]; }
until_it killed.active is_another
echo killed.restarts "$(show NRestarts)"
echo killed.starts "$(count watching)"
shortage killed
echo killed.sockets "$(sockets)"
systemctl stop $unit
echo stopped "$(show ActiveState)" "$(show Result)" "$(show ExecMainStatus)"
echo stopped.sockets "$(sockets)"
echo complaints "$(complaints)"
lines >&2

# The same restore within the unit's fences and without them.
restore="warm restore --all --only anonymous --json"
sed -e "s|^ExecStart=.*|ExecStart=/usr/bin/terrace $restore|" -e 's/^Type=.*/Type=oneshot/' \
    -e '/^Restart/d' -e 's|^UMask|StandardOutput=file:/out/within.json\nUMask|' \
    /usr/lib/systemd/system/$unit >/run/systemd/system/within.service
systemctl daemon-reload
start_program
terrace warm evict "$program" >/dev/null
echo within.evicted_kib "$(swapped_kib)"
systemctl start within.service
echo within $?
echo within.left_kib "$(swapped_kib)"
journalctl -q --no-pager -o cat _SYSTEMD_UNIT=within.service >&2
terrace warm evict "$program" >/dev/null
echo without.evicted_kib "$(swapped_kib)"
terrace $restore >/out/without.json
echo without $?
echo without.left_kib "$(swapped_kib)"
