//! How the series of control groups that have a limit of their own are named: `limited<N>.*`.
//!
//! A number names one group of one hierarchy in one recording. Its path is in the source of its
//! series, behind the hierarchy's mount point and a `.` component, which leads to the same file:
//! `/sys/fs/cgroup/cpu/./docker/web/cpu.stat`.

/// What such series begin with.
pub const LIMITED: &str = "limited";

/// What stands between the mount point and the group's path.
const BORDER: &str = "/./";

/// The number and the rest of a series' name: `limited7.cpu.periods` is 7 and `cpu.periods`.
#[must_use]
pub fn limited_group(series: &str) -> Option<(u32, &str)> {
    let (number, rest) = series.strip_prefix(LIMITED)?.split_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Some((number.parse().ok()?, rest)))?
}

/// The directory of the group at `path` (`/docker/web`) below a mount point, in a form that
/// [`path_in_source`] divides again.
#[must_use]
pub fn limited_directory(mount_point: &str, path: &str) -> String {
    format!("{}{BORDER}{}", mount_point.trim_end_matches('/'), path.trim_start_matches('/'))
}

/// The group's path in a source: `/docker/web`; `None` where it names none.
#[must_use]
pub fn path_in_source(source: &str) -> Option<&str> {
    // The slash at the border's end begins the path.
    let path = &source[source.find(BORDER)? + BORDER.len() - 1..];
    let (group, _) = path.rsplit_once('/')?;
    (!group.is_empty()).then_some(group)
}

/// Whether the group at `path` is the one at `outer` or is below it.
#[must_use]
pub fn is_in_group(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_again_in_its_source() {
        for (mount, path) in [
            ("/sys/fs/cgroup", "/memory"),
            ("/sys/fs/cgroup/cpu,cpuacct", "/docker/0123"),
            ("/", "/a/b.slice"),
        ] {
            let source = format!("{}/cpu.stat", limited_directory(mount, path));
            assert_eq!(path_in_source(&source), Some(path), "{source}");
        }
        for none in ["/sys/fs/cgroup/cpu/a/cpu.stat", "/sys/./cpu.stat", "", "/./"] {
            assert_eq!(path_in_source(none), None, "{none}");
        }
    }

    #[test]
    fn names_have_a_number_and_a_rest() {
        assert_eq!(limited_group("limited12.cpu.periods"), Some((12, "cpu.periods")));
        for none in ["limited.groups", "limited.others.groups", "group0.cpu.periods", "limited1"] {
            assert_eq!(limited_group(none), None, "{none}");
        }
    }

    #[test]
    fn only_whole_components_are_inside() {
        assert!(is_in_group("/a/b", "/a") && is_in_group("/a", "/a"));
        assert!(!is_in_group("/ab", "/a") && !is_in_group("", "/a"));
    }
}
