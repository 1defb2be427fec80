# second.sh SIZE SKEW: the same disks in the next boot: the same requests as at the end of the first.
engine=boost size=$1
. ./lib.sh
names="$(basename "$disk") $(basename "$stick")"
terrace_attach
mount "$device" $points/volume
python3 use.py zipf $data 2000 "$2" 3001 0 $names $out/again
cp $points/state/warm $out/warm
terrace boost status $name --json >$out/status.json
python3 use.py sums $data $out/again >$points/seen
umount $points/volume
terrace_detach
mount -o ro "$disk" $points/volume
python3 use.py sums $data $out/again >$points/there
echo "wrong $(python3 use.py differ $points/seen $points/there)" >$out/results
