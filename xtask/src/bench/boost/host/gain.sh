# gain.sh TERRACE DIRECTORY DISK STICK SCRIPT [WORD...]: runs a script of the guests on this machine,
# with these devices, in DIRECTORY.
set -e
export POINTS=$2/points OUT=$2/out DISK=$3 STICK=$4 NAME=terrace-bench-$$
mkdir "$2/bin"
ln -s "$1" "$2/bin/terrace"
export PATH=$2/bin:$PATH
shift 4
end() {
    set +e
    umount "$POINTS/volume" 2>/dev/null
    terrace boost detach "$NAME" >/dev/null 2>&1
    umount "$POINTS/stick" 2>/dev/null
    umount "$POINTS" 2>/dev/null
}
trap end EXIT
trap 'exit 1' INT TERM HUP
cd "${OUT%/out}"
bash "$@"
