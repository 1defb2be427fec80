# What doctor finds in a domain of SELinux: while it only logs, while it refuses, and once it allows.
set -e
mount -t selinuxfs none /sys/fs/selinux

# load FILE...: takes this policy instead. The kernel wants it in one write.
load() {
    secilc -M true -c 33 -o policy.bin -f /dev/null "$@"
    dd if=policy.bin of=/sys/fs/selinux/load bs=16M status=none
}

# doctor NAME: the report of a process in the domain.
doctor() {
    # The kernel takes a context without a newline.
    sh -c 'printf u:r:terrace_t:s0 > /proc/self/attr/exec; exec "$@"' - terrace doctor --json \
        > "/out/$1.json" || true
    sh -c 'printf u:r:terrace_t:s0 > /proc/self/attr/exec; exec "$@"' - terrace doctor \
        > "/out/$1.txt" || true
}

load policy.cil
echo "enforced $(cat /sys/fs/selinux/enforce)"
doctor logged
echo 1 > /sys/fs/selinux/enforce
doctor refused
printf '%s\n' '(allow terrace_t vmstat_t (file (all)))' \
    '(allow terrace_t terrace_t (perf_event (all)))' > more.cil
load policy.cil more.cil
doctor allowed
