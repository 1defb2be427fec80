# Under systemd, in each boot: what the units made, and what the cache gives.
field() { terrace boost status fast --json | sed -n "s/^ *\"$1\": \"*\([^\",]*\).*/\1/p"; }
boot=second
[ -e /state/first ] && boot=first
echo $boot.service "$(systemctl is-active terrace-boost-fast.service)"
echo $boot.mount "$(systemctl is-active srv-data.mount)"
echo $boot.from "$(findmnt -n -o SOURCE /srv/data)" "$(readlink -f /run/terrace/boost/fast/device)"
if [ $boot = second ]; then
    echo second.off "$(field off)"
    # Kept count of, although the stick is not there.
    echo late >/srv/data/late
    sync
    mount /dev/vm/stick /stick
    for _ in {1..100}; do [ "$(field off)" = null ] && break; sleep 0.1; done
    echo second.on "$(field off)"
    echo second.cold "$(field cold)"
    before=$(field hits)
    python3 blocks.py skewed /srv/data/data 300 2 0
    echo second.hits $(($(field hits) - before))
    systemctl restart srv-data.mount
    echo second.late "$(cat /srv/data/late)"
    systemctl stop terrace-boost-fast.service
    # At the end of the first boot, and now: not killed for being slow.
    echo second.ended $(cat /state/ended)
    echo second.unmounted "$(grep -c ' /srv/data ' /proc/mounts)"
    echo second.gone "$([ -e /run/terrace/boost/fast ] && echo 0 || echo 1)"
    e2fsck -fn /dev/vm/disk >/dev/null 2>&1
    echo second.checked $?
else
    python3 blocks.py make /srv/data/data 4
    python3 blocks.py skewed /srv/data/data 1200 1 0
fi
