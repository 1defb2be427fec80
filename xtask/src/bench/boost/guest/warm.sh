# warm.sh ENGINE SIZE MIB REQUESTS MEASURED SKEW SEED [RANKS]: an empty cache gets warm by skewed
# requests; then as many are measured. With RANKS the first so many blocks are filled ahead.
engine=$1 size=$2
. ./lib.sh
make "$3"
names="$(basename "$disk") $(basename "$stick")"
# What both devices take by themselves, where nothing is cached.
python3 use.py random "$disk" 200 1 r 0.9 /out/disk_us
python3 use.py random "$stick" 200 1 r 0.5 /out/stick_us
if [ -n "$8" ]; then
    python3 use.py ranks $data "$8" >/run/ranks
    began=$(date +%s.%N)
    terrace boost fill c /run/ranks --json >/out/fill.json
    echo "fill_s $(echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }')" >/out/results
fi
python3 use.py zipf $data "$4" "$6" "$7" 0 $names /out/cold
python3 use.py zipf $data "$5" "$6" "$(($7 + 1000))" 0 $names /out/warm
[ "$engine" != boost ] || terrace boost status c --json >/out/status.json
python3 use.py sums $data /out/warm >/run/seen
umount /run/points/volume
[ "$engine" != boost ] || terrace_detach
case $engine in boost | none) mount -o ro "$disk" /run/points/volume ;; *) mount -o ro "$device" /run/points/volume ;; esac
python3 use.py sums $data /out/warm >/run/there
echo "wrong $(python3 use.py differ /run/seen /run/there)" >>/out/results
