# disk.sh ENGINE SIZE MIB: what the cache costs where it has nothing: a long read, reads and writes
# of blocks that it does not have; of writes each is the first of its region.
engine=$1 size=$2
. ./lib.sh
make "$3"
echo "rate_s $(python3 use.py rate $data 64)" >$out/results
python3 use.py random $data 300 1 r 0.5 $out/read_us
python3 use.py random $data 600 2 w 0.5 $out/write_us
