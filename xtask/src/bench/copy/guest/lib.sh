# What the scenes share. Results are lines "LABEL.FIGURE VALUE" in /out/results.
set -e
export LC_ALL=C
mount -t tmpfs points /mnt
node() { basename "$(readlink -f "/dev/vm/$1")"; }

# Makes an ext4 that writes nothing by itself, and mounts it at /mnt/NAME.
make_ext4() {
    mkfs.ext4 -q -F -N 16384 -E lazy_itable_init=0,lazy_journal_init=0 "/dev/vm/$1"
    mkdir -p "/mnt/$1"
    mount "/dev/vm/$1" "/mnt/$1"
}

cold() { sync; echo 3 >/proc/sys/vm/drop_caches; }

# Nothing of the last copy is left: neither the files nor what removal writes.
clean() { rm -rf "$@"; cold; }

watch() { perl /bench/watch.pl "$@"; }

# rate LABEL DIRECTORY SIZE OPTION...: seconds that SIZE takes at the rate of `terrace measure seqio`
# for writing and syncing. It ends a phase that takes long, so bytes and seconds of both count.
rate() {
    local label=$1 directory=$2 bytes=$3
    shift 3
    mkdir -p "$directory"
    terrace measure seqio "$directory" --size "$bytes" --runs 1 --json "$@" >/run/rate
    awk -v label="$label" -v size="$(numfmt --from=iec "$bytes")" -F '[:,]' '
        /"name": / { gsub(/[" ]/, "", $2); name = $2 }
        /"bytes": / && name == "write" { written = $2 }
        /"wall_s": / && (name == "write" || name == "sync") { all += $2 }
        END { printf "%s.seconds %.6f\n", label, all * size / written }' /run/rate >>/out/results
    rm -rf "$directory"
}

# read_rate LABEL FILE SIZE OPTION...: the same for reading.
read_rate() {
    local label=$1 file=$2 bytes=$3
    shift 3
    terrace measure seqio "$file" --size "$bytes" --runs 1 --json "$@" >/run/rate
    awk -v label="$label" -v size="$(numfmt --from=iec "$bytes")" -F '[:,]' '
        /"name": "read"/ { is_read = 1 }
        is_read && /"bytes": / { read = $2 }
        is_read && /"wall_s": / { printf "%s.seconds %.6f\n", label, $2 * size / read; exit }
        ' /run/rate >>/out/results
}

# Runs one of them; the order of the turns is the caller's.
copy_by() {
    local name=$1 label=$2 disk=$3 mount=$4 source=$5 target=$6
    case $name in
        terrace) watch "$label.terrace" "$disk" "$mount" done terrace copy --json --now "$source" "$target" ;;
        cp) watch "$label.cp" "$disk" "$mount" sync cp -a "$source" "$target" ;;
        rsync) watch "$label.rsync" "$disk" "$mount" sync rsync -a --whole-file "$source" "$target" ;;
    esac
}

# The copiers in the order of turn N: each is first in turn.
in_turn() {
    local turn=$1
    shift
    for _ in $(seq $((turn % $#))); do
        set -- "${@:2}" "$1"
    done
    echo "$@"
}
