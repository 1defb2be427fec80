# The next boot: the service runs by itself. Then a call that its filter forbids is its end instead
# of an error, and it still does its work.
. ./lib.sh
echo second.service "$(systemctl is-active $unit)" "$(systemctl is-enabled $unit)" "$(show NRestarts)"
echo second.starts "$(count watching)"
mkdir -p /run/systemd/system/$unit.d
printf '[Service]\nSystemCallErrorNumber=kill\n' >/run/systemd/system/$unit.d/strict.conf
systemctl daemon-reload
systemctl restart $unit
echo second.error "$(show SystemCallErrorNumber)"
pid=$(show MainPID)
shortage second
echo second.restarts "$(show NRestarts)"
echo second.pid "$([ "$(show MainPID)" = "$pid" ] && echo same)"
systemctl stop $unit
echo second.stopped "$(show ActiveState)" "$(show Result)" "$(show ExecMainStatus)"
echo second.killed "$(dmesg | grep -c 'type=1326')"
echo complaints "$(complaints)"
lines >&2
