# until_it WORDS COMMAND...: waits until the command succeeds. Where that does not come to be it says
# so to the test, calls `explain` and ends the guest's command.
until_it() {
    local words=$1
    shift
    for _ in {1..1000}; do
        if "$@"; then return 0; fi
        sleep 0.2
    done
    echo "never $words"
    explain >&2 || true
    dmesg | tail -n 30 >&2
    exit 1
}
