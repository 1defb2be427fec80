# What both boots share: the service as systemd sees it, its lines, a program of another user and
# shortages of memory.
unit=terrace-warm-watch.service
show() { systemctl show -p "$1" --value $unit; }
lines() { journalctl -q --no-pager -o cat "_SYSTEMD_UNIT=$unit"; }
count() { lines | grep -c "^$1"; }
sockets() { find /run/terrace -name 'status-*.sock' | wc -l; }
swapped_kib() { awk '/^VmSwap:/ { print $2 }' "/proc/$program/status"; }

explain() {
    systemctl status --no-pager $unit
    lines
    grep -E '^(MemAvailable|SwapFree|SwapTotal)' /proc/meminfo
}
. ./until.sh

# Memory of another user, in which each page is known. It sleeps until it is asked.
start_program() {
    coproc PROGRAM {
        exec setpriv --reuid 65534 --regid 65534 --clear-groups \
            terrace lab-process working-set $((64 << 20)) scattered
    }
    # Bash keeps its own ones from subshells.
    exec {to_program}>&"${PROGRAM[1]}" {from_program}<&"${PROGRAM[0]}"
    program=$PROGRAM_PID
    answer >/dev/null
}
answer() {
    local line
    read -r line <&"$from_program"
    echo "$line" | tr -d '[]' | tr ',' ' '
}
ask() {
    echo "\"$1\"" >&"$to_program"
    answer
}
end_program() {
    kill -KILL "$program"
    wait "$program" 2>/dev/null
    exec {to_program}>&- {from_program}<&-
}

# is_back RESTORES KIB: there was one more restore, and nearly all of it is back.
is_back() { [ "$(count restored)" -gt "$1" ] && [ $(($(swapped_kib) * 20)) -lt "$2" ]; }

# shortage NAME: two hogs take nearly all memory, hold it and end; then the pages of a program come
# back while it sleeps. Each shortage has a new program: pages that were restored and used are
# evicted later than the hogs' own.
shortage() {
    local name=$1 short restored most=0 now
    start_program
    short=$(count 'memory is short: ')
    restored=$(count restored)
    terrace hog --size 140m --count 2 --repeat 1 --hold 20s >/run/hogs 2>&1 &
    local hogs=$!
    while kill -0 $hogs 2>/dev/null; do
        now=$(swapped_kib)
        [ "$now" -gt "$most" ] && most=$now
        sleep 0.5
    done
    wait $hogs || cat /run/hogs >&2
    echo "$name.evicted_kib" "$most"
    until_it "$name.restored" is_back "$restored" "$most"
    echo "$name.left_kib" "$(swapped_kib)"
    echo "$name.shortages" $(($(count 'memory is short: ') - short))
    echo "$name.status" "$(show StatusText)"
    # Words that are wrong, and how often it waited for the disk; then pages that are wrong.
    local touched
    touched=($(ask touch))
    echo "$name.wrong" "${touched[1]} $(ask compare)"
    echo "$name.faults" "${touched[2]}"
    end_program
}

# Lines that are no work of the service: complaints, above all.
complaints() {
    lines | grep -vE '^(watching|memory is short|restored): |^memory is no longer short, but ' >/run/complaints
    cat /run/complaints >&2
    wc -l </run/complaints
}
