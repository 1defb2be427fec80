# warm.sh ENGINE SIZE MIB REQUESTS MEASURED SKEW SEED [RANKS]: an empty cache gets warm by skewed
# requests; then as many are measured. With RANKS a fill of the first so many blocks begins with them.
engine=$1 size=$2
. ./lib.sh
make "$3"
names="$(basename "$disk") $(basename "$stick")"
# What both devices take by themselves, where nothing is cached.
python3 use.py places $data "$disk" 600 1 $out/disk_us
python3 use.py random "$stick" 200 1 r 0.5 $out/stick_us
fill=
if [ -n "$8" ]; then
    python3 use.py ranks $data "$8" >$points/ranks
    fill="$name $points/ranks"
fi
python3 use.py zipf $data "$4" "$6" "$7" 0 $names $out/cold $fill
python3 use.py zipf $data "$5" "$6" "$(($7 + 1000))" 0 $names $out/warm
[ "$engine" != boost ] || terrace boost status $name --json >$out/status.json
python3 use.py sums $data $out/warm >$points/seen
umount $points/volume
[ "$engine" != boost ] || terrace_detach
case $engine in boost | none) mount -o ro "$disk" $points/volume ;; *) mount -o ro "$device" $points/volume ;; esac
python3 use.py sums $data $out/warm >$points/there
echo "wrong $(python3 use.py differ $points/seen $points/there)" >>$out/results
