# recover.sh ENGINE SIZE MIB SET ROUNDS: after all memory was taken, until a set of pages of files is
# as fast as before, again and again.
engine=$1 size=$2
. ./lib.sh
make "$3"
python3 use.py recover $data "$4" "$5" >$out/seconds
[ "$engine" != boost ] || terrace boost status $name --json >$out/status.json
