//! multichase: a chain of dependent loads, as its half-second samples.
//!
//! The chain is made to be the one of `terrace measure memlat`: `-s 64` steps by cache lines, and
//! `-T` as large as the buffer makes it random over the whole of it instead of within a few pages.
//! Without `-H` its pages are of 4 KiB (it forbids huge ones); `-H` asks for huge pages, but where
//! the kernel would not grant them it **writes the kernel's settings**, so it is used only where
//! nothing is to be written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::bench::peer::Peer;
use crate::bench::ratio;
use crate::bench::report::malformed;
use crate::error::Error;

/// Half-second samples of one run; multichase drops one more at the start. Few, because the other
/// program must have its turn before a neighbour changes its mind about the last-level cache.
const SAMPLES: &str = "1";

/// Laying a chain through 256 MiB and its samples take a few seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Where the kernel's settings of transparent huge pages are.
const THP: &str = "sys/kernel/mm/transparent_hugepage";

/// multichase's arguments for a chain over `size` (`16k`), on huge pages or on pages of 4 KiB.
pub(super) fn args(size: &str, is_huge: bool) -> Vec<&str> {
    let mut args = vec!["-v", "-n", SAMPLES, "-s", "64", "-m", size, "-T", size];
    if is_huge {
        args.push("-H");
    }
    args
}

/// Runs multichase with `args` and gives median and best of its samples, nanoseconds a load.
pub(super) fn run(multichase: &Peer, args: &[&str]) -> Result<[f64; 2], Error> {
    samples(&multichase.run(args, LIMIT)?.stdout)
}

/// Whether `-H` changes nothing below `root`: both settings are already as multichase wants them.
pub(super) fn may_ask_for_huge_pages(root: &Path) -> bool {
    let is_one_of = |file: &str, accepted: &[&str]| {
        let text = fs::read_to_string(root.join(THP).join(file)).unwrap_or_default();
        let chosen = text.split_whitespace().find(|word| word.starts_with('['));
        chosen.is_some_and(|chosen| accepted.contains(&chosen))
    };
    is_one_of("enabled", &["[always]", "[madvise]"])
        && is_one_of("defrag", &["[always]", "[defer+madvise]", "[madvise]"])
}

/// The last line holds its best sample alone; the median of all is what compares with ours.
fn samples(output: &str) -> Result<[f64; 2], Error> {
    let samples: Vec<f64> =
        output.lines().filter_map(|line| line.split("avg=").nth(1)?.trim().parse().ok()).collect();
    ratio::summary(&samples)
        .map(|summary| [summary.median, summary.min])
        .ok_or_else(|| malformed("multichase: no sample".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As multichase prints with -v and three samples.
    const OUTPUT: &str = "\
nr_mixer_indices = 8
base_object_size = 8
nr_threads = 1
page_size = 4096 bytes
total_memory = 16384 (0.0 MiB)
stride = 64
tlb_locality = 16384
chase = simple
samples (one column per thread, one row per sample):
  1.097  avg=1.097
  1.396  avg=1.396
  1.065  avg=1.065
 1.065
";

    #[test]
    fn the_samples_count_and_the_closing_line_does_not() {
        assert_eq!(samples(OUTPUT).unwrap(), [1.097, 1.065]);
        assert!(samples(" 1.065\n").is_err());
    }

    #[test]
    fn huge_pages_are_asked_for_only_where_no_setting_would_be_written() {
        let set = |enabled: &str, defrag: &str| {
            let files = [("enabled", enabled), ("defrag", defrag)];
            let root = testkit::FakeRoot::new().files(&format!("/{THP}"), &files);
            may_ask_for_huge_pages(root.path())
        };
        assert!(set("always [madvise] never\n", "always defer defer+madvise [madvise] never\n"));
        assert!(!set("always madvise [never]\n", "always defer defer+madvise [madvise] never\n"));
        assert!(!set("[always] madvise never\n", "always defer defer+madvise madvise [never]\n"));
        assert!(!may_ask_for_huge_pages(Path::new("/nowhere")));
        assert!(!args("16k", false).contains(&"-H") && args("16k", true).contains(&"-H"));
    }
}
