# first.sh SIZE MIB REQUESTS SKEW SECONDS: a cache gets warm; then it is detached and the machine
# boots again (SECONDS 0), or the power is cut so long into requests of which a tenth write.
engine=boost size=$1
. ./lib.sh
make "$2"
names="$(basename "$disk") $(basename "$stick")"
python3 use.py zipf $data "$3" "$4" 1 0 $names $points/cold
python3 use.py zipf $data 2000 "$4" 1001 0 $names $points/state/warm
sync
if [ "$5" = 0 ]; then
    umount $points/volume
    terrace_detach
    umount $points/stick $points/state
else
    python3 use.py zipf $data 1000000 "$4" 2001 10 $names $points/writes &
    sleep "$5"
fi
vm-ctl cut
