# 400 small files that were written in another order than their names have, read by a copy and by cp.
set -e
mkfs.ext4 -q -F /dev/vm/hdd
mkdir /mnt/hdd
mount /dev/vm/hdd /mnt/hdd
perl -e '
    srand 7;
    mkdir "/mnt/hdd/many";
    my @names = map { "/mnt/hdd/many/f$_" } 0 .. 399;
    for my $name (@names) { open my $file, ">", $name }
    for my $last (reverse 1 .. $#names) {
        my $other = int rand $last + 1;
        @names[$last, $other] = @names[$other, $last];
    }
    my $count = 0;
    for my $name (@names) {
        open my $file, ">", $name;
        print $file "x" x 8192;
        close $file;
        system "sync -f /mnt/hdd" if ++$count % 20 == 0;
    }'
cold() { sync; echo 3 >/proc/sys/vm/drop_caches; }
busy_ms() { awk '{print $4}' "/sys/block/$(basename "$(readlink -f /dev/vm/hdd)")/stat"; }
cold
before=$(busy_ms)
terrace copy --now /mnt/hdd/many ordered >/dev/null
echo hdd.ours $(($(busy_ms) - before))
cold
before=$(busy_ms)
cp -a /mnt/hdd/many plain
echo hdd.cp $(($(busy_ms) - before))
