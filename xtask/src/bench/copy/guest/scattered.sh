# scattered.sh TURNS FILES: files whose order in the directory is not that on the disk, to another
# disk.
. /bench/lib.sh
turns=$1 files=$2
for disk in a b; do make_ext4 $disk; done
mkdir /mnt/a/many
FILES=$files perl -e '
    srand 7;
    my @names = map { "/mnt/a/many/f$_" } 1 .. $ENV{FILES};
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
        # Else the kernel places them in the order of their inodes.
        system "sync -f /mnt/a" if ++$count % 50 == 0;
    }'
for turn in $(seq "$turns"); do
    echo "turn $turn of $turns"
    for name in $(in_turn "$turn" terrace cp rsync); do
        clean /mnt/b/many
        copy_by "$name" scattered a /mnt/b /mnt/a/many /mnt/b/
    done
done
