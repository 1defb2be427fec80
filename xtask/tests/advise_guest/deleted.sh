# Files are written, read, cut off and deleted, while the machine is recorded. ext4 gives the next
# file the number of the one that was deleted.
set -e
count=6
rm -f /mnt/data/set
sync
echo 3 >/proc/sys/vm/drop_caches
terrace record -o /out/deleted.trec >/out/said-deleted 2>&1 &
recorder=$!
sleep 3
for _ in $(seq $count); do
    dd if=/dev/zero of=/mnt/data/file bs=1M count=48 status=none
    ls -i /mnt/data/file >>/run/numbers
    sync
    cat /mnt/data/file >/dev/null
    truncate -s 24M /mnt/data/file
    dd if=/dev/zero of=/mnt/data/file bs=1M seek=24 count=24 status=none
    cat /mnt/data/file >/dev/null
    rm /mnt/data/file
done
kill -TERM $recorder
wait $recorder
echo "deleted $count" >>/out/results
echo "numbers $(sort -u /run/numbers | wc -l)" >>/out/results
