//! Words that are not personal: those of series, of the recorder's own sentences, and the kernel's
//! file names. A user or a program may be called `memory`; `memory.stat` reveals neither.

use model::recording::Recording;
use std::collections::HashSet;

/// A list of words, separated by white space.
pub(super) struct Words(pub &'static str);

impl Words {
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.0.split_ascii_whitespace()
    }

    pub(super) fn contains(&self, word: &str) -> bool {
        self.iter().any(|one| one == word)
    }
}

/// Words of the recorder's sentences that are not words of a series.
const OWN_WORDS: Words = Words(
    "accounting after an and another appeared asked at began cannot children clock command \
    container counts cut damaged device does end ended ends events exits fast file for from full \
    gone group groups had host in is it kernel limit limits listen lost machine manager may mib \
    gib kib moved namespace needs new no not numbers of on one only other out own process \
    processes read recorder recording root run samples says service set stopped sudo system task \
    tasks tells that the thread threads to too unit user users vanished was watch were when while \
    with write",
);

/// The words that no search may replace.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashSet<String>);

impl Vocabulary {
    /// The words of a recording's series and of the recorder.
    pub(super) fn of(recording: &Recording) -> Self {
        let all = recording.series.iter().map(|series| &series.schema.name);
        // A swap area is named after a file, and a slash is nothing of ours.
        let series = all.filter(|name| !name.starts_with("swap.") && !name.contains('/'));
        let sights = recording.facts.sights.keys();
        let named = series.chain(sights).flat_map(|name| words(name));
        let own = OWN_WORDS.iter().map(str::to_owned);
        Self(named.map(str::to_lowercase).chain(own).collect())
    }

    /// Whether a text is made of these words alone, and no path.
    pub(super) fn has(&self, text: &str) -> bool {
        !text.contains('/') && words(text).all(|word| self.0.contains(&word.to_lowercase()))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric());
    parts.filter(|word| !word.is_empty())
}

/// The top of the kernel's own file systems, where no name is personal.
const PROC: Words = Words(
    "PID buddyinfo cgroups cpuinfo diskstats interrupts kallsyms loadavg meminfo modules mounts \
    pressure schedstat self softirqs stat swaps sys thread-self uptime version vmstat zoneinfo",
);
const SYS: Words = Words("block bus class dev devices firmware fs hypervisor kernel module power");
const GROUPS: &str = "/sys/fs/cgroup/";

/// Where hierarchies are mounted below that.
const HIERARCHIES: Words =
    Words("blkio cpu cpu,cpuacct cpuacct cpuacct,cpu cpuset memory systemd unified");

/// What the names of a group's files start with, up to a dot.
const CONTROLLERS: Words = Words("blkio cgroup cpu cpuacct cpuset io irq memory");

/// A file or directory of the kernel, with the group in its path replaced by `replace_group`;
/// `None` for any other path.
pub(super) fn path(word: &str, mut replace_group: impl FnMut(&mut String)) -> Option<String> {
    let Some(below) = word.strip_prefix(GROUPS) else {
        return is_kernel(word).then(|| word.to_owned());
    };
    let (hierarchy, rest) = match below.split_once('/') {
        Some((first, rest)) if HIERARCHIES.contains(first) => (first, rest),
        None if HIERARCHIES.contains(below) => return Some(word.to_owned()),
        _ => ("", below),
    };
    // A `.` component marks where the group's path begins.
    let (border, rest) = match rest.strip_prefix("./") {
        Some(rest) => ("/.", rest),
        None => ("", rest),
    };
    let (group, file) = match rest.rsplit_once('/') {
        Some((group, file)) if is_file(file) => (group, file),
        None if is_file(rest) => ("", rest),
        _ => (rest, ""),
    };
    let mut path = format!("{GROUPS}{hierarchy}");
    if !group.is_empty() {
        let mut group = format!("/{group}");
        replace_group(&mut group);
        path = path.trim_end_matches('/').to_owned() + border + &group;
    }
    if !file.is_empty() {
        path = format!("{}/{file}", path.trim_end_matches('/'));
    }
    Some(path)
}

/// Whether the kernel named it, and no group is named by it.
pub(super) fn is_kernel(word: &str) -> bool {
    let mut parts = word.split('/').skip(1);
    let (file_system, top) = (parts.next(), parts.next().unwrap_or_default());
    match file_system {
        Some("proc") => PROC.contains(top) || top.bytes().all(|byte| byte.is_ascii_digit()),
        Some("sys") => top.is_empty() || SYS.contains(top),
        _ => false,
    }
}

fn is_file(name: &str) -> bool {
    let controller = name.split_once('.').map(|(controller, _)| controller);
    controller.is_some_and(|controller| CONTROLLERS.contains(controller))
}
