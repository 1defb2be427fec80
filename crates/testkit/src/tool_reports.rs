//! Short reports of other tools, as `terrace import` reads them: `vmstat`, `iostat`, `sadf` and
//! fio. Their figures are checked by hand in the importer's tests; attacks start from them.

/// Three reports of `vmstat -t`.
pub const VMSTAT: &str = "\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC
18  0      0 14280712  17160 5481860  918 1135 18667 15108  839 3468 54 15 27  4  0 2026-11-22 10:15:32
19  1      0 14280712  17160 5481860    8    4 10284     0 1099 2664 93  7  0  0  0 2026-11-22 10:15:34
23  0    512 14280000  17160 5481860    0    0 50720  1408 1460 3632 89 11  0  0  0 2026-11-22 10:15:35
";

/// Two reports of `iostat -x` without times, the second with decimal commas.
pub const IOSTAT: &str = "\
Linux 6.18.44 (vm) \t11/22/26 \t_x86_64_\t(2 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          53.63    0.58   14.69    4.02    0.18   26.89

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
vda            847.92  29689.94   341.37  28.70    1.09    35.02   84.31  27994.15   540.43  86.50    3.79   332.02    1.25   7.96


avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          25,00    0,00    0,00   50,00    0,00   25,00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz  aqu-sz  %util
vda            100.00   1024.00     0.00   0.00    2.00    10.24    0.00      0.00     0.00   0.00    0.00     0.00    0.20  20.00
";

/// Two reports of `sadf -j`.
pub const SADF: &str = r#"{"sysstat": {"hosts": [{"nodename": "vm", "number-of-cpus": 2, "statistics": [
 {"timestamp": {"date": "2026-11-22", "time": "10:15:10", "utc": 1, "interval": 10},
  "cpu-load": [{"cpu": "all", "user": 10.0, "idle": 90.0}, {"cpu": "1", "usr": 20.0}],
  "swap-pages": {"pswpin": 2.5, "pswpout": 0.0},
  "memory": {"memfree": 1000, "swpused": 4},
  "disk": [{"disk-device": "vda", "tps": 1.0, "rkB": 2.0, "wkB": 0.0, "aqu-sz": 0.5, "util-percent": 50.0}],
  "psi": {"psi-io": {"some_avg": 10.0}}},
 {"timestamp": {"date": "2026-11-22", "time": "10:15:20", "utc": 1, "interval": 10},
  "swap-pages": {"pswpin": 0.3}}
]}]}}"#;

/// The JSON of fio for one job.
pub const FIO: &str = r#"{"fio version": "fio-3.33", "timestamp_ms": 10000, "jobs": [{"jobname": "w 1", "read":
 {"io_bytes": 4096000, "runtime": 2000, "total_ios": 1000, "lat_ns": {"mean": 5000.4},
  "clat_ns": {"percentile": {"99.000000": 9000}}}, "write": {"total_ios": 0, "runtime": 0}}],
 "disk_util": [{"name": "vda", "read_ios": 1000, "read_ticks": 7, "util": 25.0}]}"#;

/// A bandwidth log of fio.
pub const FIO_LOG: &str = "200, 19360, 0, 0, 0\n200, 20480, 1, 0, 0\n400, 23280, 0, 0, 0\n";
