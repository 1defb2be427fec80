# lab-2008.sh SIZE: the experiment of 2008, from one disk to another. Its results are in /out/lab.
. /bench/lib.sh
for disk in a b; do make_ext4 $disk; done
mkdir /mnt/a/from /mnt/b/to
terrace lab run file-copy-2008 --from /mnt/a/from --to /mnt/b/to --size "$1" --out /out/lab
