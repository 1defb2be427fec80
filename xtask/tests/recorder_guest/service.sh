# Under systemd: the recorder is off, is switched on by one command, is killed, and its ring opens
# every time. What it sees within its fences is compared with what root sees without them.
# Debian's kernel lets CAP_PERFMON sample processors only below 3, its default.
sysctl -qw kernel.perf_event_paranoid=2
unit=terrace-recorder.service
ring=/var/lib/terrace/recorder
echo before $(systemctl is-active $unit)
systemctl enable --now $unit 2>/dev/null
echo started $(systemctl is-active $unit)
as_other_user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
as_other_user sh -c 'while :; do dd if=/dev/zero of=/dev/null bs=1M count=50 2>/dev/null; sleep 0.2; done' &
busy=$!
sleep 8
terrace export $ring --to json --no-redact -o /out/within.json
terrace record -o /run/without.trec --for 5s >/dev/null
terrace export /run/without.trec --to json --no-redact -o /out/without.json
kill $busy
for at in 1 2 3; do
    systemctl kill --signal=KILL $unit
    terrace explain --json >/run/explained.json && echo opened $at
    for wait in $(seq 60); do [ "$(systemctl is-active $unit)" = active ] && break; sleep 1; done
    sleep 2
done
echo restarts $(systemctl show -p NRestarts --value $unit)
echo mode $(stat -c %a:%U $ring)
# A stopped process feeds no watchdog.
mkdir -p /run/systemd/system/$unit.d
printf '[Service]\nWatchdogSec=8\nTimeoutAbortSec=2\n' >/run/systemd/system/$unit.d/watchdog.conf
systemctl daemon-reload
systemctl restart $unit
first=$(systemctl show -p MainPID --value $unit)
kill -STOP $first
for wait in $(seq 60); do
    now=$(systemctl show -p MainPID --value $unit)
    [ "$now" != "$first" ] && [ "$now" != 0 ] && break
    sleep 1
done
[ "$now" != "$first" ] && echo watchdog restarted
systemctl stop $unit
echo stopped $(systemctl show -p Result --value $unit)
du -sb $ring | cut -f1 | sed 's/^/bytes /'
# What each capability is for: without it something is not seen.
all="bpf perfmon syslog net_admin sys_ptrace dac_read_search ipc_lock sys_nice"
for left_out in none $all; do
    kept=$(for one in $all; do [ $one = $left_out ] || printf ',+%s' $one; done)
    rm -f /run/some.trec
    setpriv --bounding-set=-all$kept --inh-caps=-all terrace record -o /run/some.trec --for 2s >/dev/null 2>&1
    terrace export /run/some.trec --to json --no-redact -o /out/without_$left_out.json
done
systemd-analyze security $unit --no-pager | sed -n 's/.*exposure level for .*: \([0-9.]*\).*/exposure \1/p'
journalctl -u $unit --no-pager | tail -n 30 | sed 's/^/# /'
