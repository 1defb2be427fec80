# watch.pl LABEL DISK MOUNT END COMMAND...: runs a command and says what DISK did meanwhile, as
# lines "LABEL.FIGURE VALUE" in /out/results.
#
# END says how it ends:
#   done     the command ends by itself, and the disk is watched until it is quiet
#   sync     then the file system is synced; that is when it is quiet
#   SECONDS  so long after its start it gets SIGINT, and the disk is watched until it is quiet
use strict;
use warnings;
use Time::HiRes qw(time sleep);

my ($label, $disk, $mount, $end, @command) = @ARGV;
my $node = readlink "/dev/vm/$disk" or die "no disk $disk";
$node =~ s{.*/}{};
my $sector = 512;
# Longer than a quiet disk is taken for a pause between two requests.
my $quiet_s = 1;
my $longest_watch_s = 45;
my $step_s = 0.1;

sub slurp { open my $file, "<", $_[0] or return ""; local $/; return <$file> // "" }

my ($number) = slurp("/sys/block/$node/dev") =~ /(\S+)/;

# Reads and writes that ended, sectors written, in flight, milliseconds busy.
sub disk_now { my @all = split " ", slurp("/sys/block/$node/stat"); return @all[0, 4, 6, 8, 9] }

# Bytes of the page cache that are not on the disk.
sub dirty_now {
    my $text = slurp("/sys/kernel/debug/bdi/$number/stats");
    my $all = 0;
    $all += $1 * 1024 while $text =~ /^Bdi(?:Writeback|Reclaimable):\s+(\d+) kB/mg;
    return $all;
}

sub processor_now {
    my @all = split " ", (split /\n/, slurp("/proc/stat"))[0];
    my $idle = $all[4] + $all[5];
    my $whole = 0;
    $whole += $_ for @all[1 .. 8];
    return ($idle, $whole);
}

sub say_figure {
    open my $out, ">>", "/out/results" or die "no results";
    printf $out "%s.%s %.6f\n", $label, @_;
}

# Seconds from $from to the last thing that the disk did.
sub watch_until_quiet {
    my ($from) = @_;
    my ($last, $changed) = ("", $from);
    while (time - $from < $longest_watch_s) {
        my @now = disk_now();
        my $now = "@now[0, 1, 3]";
        $changed = time if $last ne "" && $now ne $last || $now[3] > 0;
        $last = $now;
        last if time - $changed > $quiet_s && time - $from > $quiet_s;
        sleep 0.02;
    }
    return $changed - $from;
}

my @before = disk_now();
my @processor = processor_now();
my $started = time;
my $pid = fork // die "no process";
if ($pid == 0) {
    open STDOUT, ">", "/run/said";
    exec @command or exit 127;
}
my ($dirty_max, $is_interrupted) = (0, 0);
while (1) {
    my $ended = waitpid $pid, 1;
    last if $ended == $pid;
    my $dirty = dirty_now();
    $dirty_max = $dirty if $dirty > $dirty_max;
    if ($end =~ /^\d/ && !$is_interrupted && time - $started >= $end) {
        kill "INT", $pid;
        $is_interrupted = 1;
        $started = time;
        $step_s = 0.01;
    }
    sleep $step_s;
}
my $status = $?;
my $done = time;
my @processor_after = processor_now();
my $quiet;
my $synced_s = 0;
if ($end eq "sync") {
    system("sync", "-f", $mount);
    $synced_s = time - $done;
    $quiet = $synced_s;
    @processor_after = processor_now();
} elsif ($end eq "done") {
    $quiet = watch_until_quiet($done);
    my $from = time;
    system("sync", "-f", $mount);
    $synced_s = time - $from;
} else {
    $quiet = ($done - $started) + watch_until_quiet($done);
    say_figure("quiet_s", $quiet);
    exit;
}
die "$label: @command: status $status\n" if $status != 0;
my @after = disk_now();
my $whole = $processor_after[1] - $processor[1];
say_figure("seconds", $done - $started + $synced_s);
say_figure("quiet_s", $quiet);
say_figure("dirty_bytes", $dirty_max);
say_figure("written_bytes", ($after[2] - $before[2]) * $sector);
say_figure("writes", $after[1] - $before[1]);
say_figure("busy_s", ($after[4] - $before[4]) / 1000);
say_figure("processor", 1 - ($processor_after[0] - $processor[0]) / ($whole || 1));
# Terrace says itself what was under way past the cache.
my ($under_way) = slurp("/run/said") =~ /"most_under_way_bytes":\s*(\d+)/;
say_figure("under_way_bytes", $under_way) if defined $under_way;
