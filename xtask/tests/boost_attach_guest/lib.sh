# What all boots share: where things are mounted, and what a cache is asked.
set -eo pipefail
points=/run/points
mkdir -p $points
mount -t tmpfs -o mode=755 points $points
mkdir -p $points/stick $points/state $points/one $points/two

make_ext4() { mkfs.ext4 -q -F -J size=4 -E lazy_itable_init=0,lazy_journal_init=0 "/dev/vm/$1"; }

# attach NAME: the disk of this name, with its cache on the stick; prints how it starts.
attach() {
    terrace boost attach "$1" --backing "/dev/vm/$1" --cache $points/stick/"$1" --size 12m \
        --state $points/state/boost >/run/attached
    sed -n "s/^start  */$1.start /p" /run/attached
}
device() { readlink -f "/run/terrace/boost/$1/device"; }
# field NAME KEY: a value of its status.
field() { terrace boost status "$1" --json | sed -n "s/^ *\"$2\": \"*\([^\",]*\).*/\1/p"; }
is_on() { [ "$(field "$1" off)" = null ]; }
is_off() { ! is_on "$1"; }
has_hits() { [ "$(field "$1" hits)" -ge "$2" ]; }

explain() { terrace boost status; }
. ./until.sh

# verified DIRECTORY DIRECT: two programs that read and write files there and know each block; until
# end_verified, which says what they met as NAME.
verified() {
    local usual="--bs=4k --verify=crc32c --verify_fatal=1 --directory=$1 --direct=$2"
    fio $usual --name=fixed --filename=fixed --size=4M --rw=write --do_verify=0 >/dev/null
    usual="$usual --time_based --runtime=300 --output-format=json"
    fio $usual --name=read --filename=fixed --size=4M --rw=randread --norandommap \
        --random_distribution=zipf:1.1 --output=/run/read.json 2>/run/read.said &
    reader=$!
    fio $usual --name=write --filename=changing --size=2M --rw=randwrite --verify_backlog=64 \
        --output=/run/write.json 2>/run/write.said &
    writer=$!
}
end_verified() {
    kill -INT $reader $writer || true
    wait $reader $writer || true
    for load in read write; do
        python3 blocks.py fio /run/$load.json | sed "s/^/$1.$load./"
        # fio's own words for a block that is another one.
        echo $1.$load.wrong "$(grep -c 'verify: bad' /run/$load.said || true)"
        cat /run/$load.said >&2
    done
}

# compare NAME: ends the cache, and counts the pieces that read otherwise through it than from the
# disk; before, those that it answered.
compare() {
    local before
    before=$(field "$1" hits)
    python3 blocks.py sums "$(device "$1")" >/run/cached
    echo "$1.compared.hits" $(($(field "$1" hits) - before))
    terrace boost detach "$1" >/run/detached
    echo "$1.proved" "$(grep -c 'proved fresh: it is warm' /run/detached)"
    python3 blocks.py sums "/dev/vm/$1" >/run/raw
    echo "$1.compared.pieces" "$(wc -l </run/raw)"
    sort /run/cached >/run/sorted
    echo "$1.compared.differ" "$(sort /run/raw | comm -13 /run/sorted - | wc -l)"
}
