//! What a control group is called: the unit, the container or the pod that its path names.
//!
//! Service managers and container engines write their names into paths, each in its own way. What
//! none of them wrote is a plain folder and bears its whole path.

/// What made a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// The top of the hierarchy.
    Top,
    /// A service of the service manager.
    Service,
    /// A scope: a login session or an application that was started by another program.
    Scope,
    /// A slice, without a unit below it.
    Slice,
    /// A container that is not in a pod.
    Container,
    /// A container of Kubernetes, or a pod.
    Pod,
    /// Anything else.
    Folder,
}

/// The name of a control group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName {
    /// What made it.
    pub kind: GroupKind,
    /// `backup.service`, `docker-0123456789ab`, `pod-1b2c3d4e/0123456789ab`, else the path, with
    /// long numbers cut.
    pub text: String,
    /// The path of the group that bears the name: what is below it belongs to it.
    pub path: String,
}

/// Digits of a container's number that are shown, as its own programs do.
const ID_DIGITS: usize = 12;

/// Hexadecimal digits from which on a name is a number: 128 bits.
const LEAST_NUMBER: usize = 32;

/// Digits of a pod's number that are shown: up to its first hyphen.
const POD_DIGITS: usize = 8;

impl GroupName {
    /// The name of the group at `path` below the mount point of its hierarchy; `None` for an empty
    /// path, which is one that is not known.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        if path.is_empty() {
            return None;
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let named = pod(&parts).or_else(|| container(&parts)).or_else(|| unit(&parts));
        let (kind, text, depth) = named.unwrap_or_else(|| {
            let kind = if parts.is_empty() { GroupKind::Top } else { GroupKind::Folder };
            let shortened: Vec<&str> = parts.iter().map(|part| short_id(part)).collect();
            (kind, format!("/{}", shortened.join("/")), parts.len())
        });
        Some(Self { kind, text, path: format!("/{}", parts[..depth].join("/")) })
    }

    /// Whether the name says more than that of one of its programs: a service, a container, a pod.
    #[must_use]
    pub fn is_service(&self) -> bool {
        matches!(self.kind, GroupKind::Service | GroupKind::Container | GroupKind::Pod)
            // The manager of a user's session is a service, and everything of the user is below it.
            && !self.text.starts_with("user@")
    }
}

/// A kind, a name, and how many components of the path lead to it.
type Named = (GroupKind, String, usize);

/// `/kubepods/burstable/pod<number>/<container>`, and the same as slices and a scope.
fn pod(parts: &[&str]) -> Option<Named> {
    let first = parts.iter().position(|part| part.starts_with("kubepods"))?;
    let mut below = parts.iter().enumerate().skip(first);
    let (at, number) = below.find_map(|(at, part)| {
        let name = part.strip_suffix(".slice").unwrap_or(part);
        let (_, number) = name.rsplit_once("pod")?;
        let is_number = number.starts_with(|letter: char| letter.is_ascii_hexdigit());
        is_number.then_some((at, number))
    })?;
    let pod: String = number.chars().take(POD_DIGITS).collect();
    let container = below.find_map(|(at, part)| Some((at, container_id(part)?.1)));
    let (at, text) = match container {
        Some((at, id)) => (at, format!("pod-{pod}/{id}")),
        None => (at, format!("pod-{pod}")),
    };
    Some((GroupKind::Pod, text, at + 1))
}

/// The innermost container: `docker-<id>.scope`, `/docker/<id>`, `/lxc/<name>`.
fn container(parts: &[&str]) -> Option<Named> {
    let mut innermost_first = parts.iter().enumerate().rev();
    innermost_first.find_map(|(at, part)| {
        let above = at.checked_sub(1).map(|above| parts[above]);
        let text = match (part.strip_prefix("lxc.payload."), above) {
            (Some(name), _) => format!("lxc-{name}"),
            (None, Some("lxc")) => format!("lxc-{part}"),
            (None, above) => match (container_id(part)?, above) {
                (("", id), folder) => format!("{}-{id}", folder?),
                ((engine, id), _) => format!("{engine}-{id}"),
            },
        };
        Some((GroupKind::Container, text, at + 1))
    })
}

/// The first digits of a component that is a long number, as engines that are not known here give
/// to their groups; any other as it is.
fn short_id(part: &str) -> &str {
    let is_number = part.len() >= LEAST_NUMBER && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_number { &part[..ID_DIGITS] } else { part }
}

/// The engine, empty where the component does not name it, and the short number.
fn container_id(part: &str) -> Option<(&str, &str)> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let (engine, id) = name.rsplit_once('-').unwrap_or(("", name));
    // Numbers are SHA-256; shorter ones could be anything.
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| (engine, &id[..ID_DIGITS]))
}

/// The innermost unit of the service manager.
fn unit(parts: &[&str]) -> Option<Named> {
    let kind = |part: &str| match part.rsplit_once('.')? {
        ("", _) => None,
        (_, "service") => Some(GroupKind::Service),
        (_, "scope") => Some(GroupKind::Scope),
        (_, "slice") => Some(GroupKind::Slice),
        _ => None,
    };
    let units = || {
        let innermost_first = parts.iter().enumerate().rev();
        innermost_first.filter_map(|(at, part)| Some((kind(part)?, (*part).to_owned(), at + 1)))
    };
    // A user's manager sorts its units into slices; one of those names nothing.
    let innermost = units().find(|(kind, ..)| *kind != GroupKind::Slice);
    innermost.or_else(|| units().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use GroupKind::{Container, Folder, Pod, Scope, Service, Slice, Top};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn paths_name_their_unit_or_container() {
        let uid = "1b2c3d4e-0000-1111-2222-333344445555";
        let slice_uid = uid.replace('-', "_");
        for (path, kind, text) in [
            ("/", Top, "/"),
            ("/init.scope", Scope, "init.scope"),
            ("/system.slice", Slice, "system.slice"),
            ("/system.slice/backup.service", Service, "backup.service"),
            ("/system.slice/backup.service/worker", Service, "backup.service"),
            ("/system.slice/system-getty.slice/getty@tty1.service", Service, "getty@tty1.service"),
            ("/user.slice/user-1000.slice/session-3.scope", Scope, "session-3.scope"),
            (
                r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-12.scope",
                Scope,
                "app-firefox-12.scope",
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/session.slice",
                Service,
                "user@1000.service",
            ),
            (&format!("/system.slice/docker-{ID}.scope"), Container, "docker-0123456789ab"),
            (&format!("/docker/{ID}"), Container, "docker-0123456789ab"),
            (&format!("/docker/{ID}/init.scope"), Container, "docker-0123456789ab"),
            (
                &format!("/machine.slice/libpod-{ID}.scope/container"),
                Container,
                "libpod-0123456789ab",
            ),
            ("/lxc/web/system.slice/ssh.service", Container, "lxc-web"),
            ("/lxc.payload.web", Container, "lxc-web"),
            (&format!("/kubepods/burstable/pod{uid}/{ID}"), Pod, "pod-1b2c3d4e/0123456789ab"),
            (
                &format!(
                    "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{slice_uid}\
                     .slice/cri-containerd-{ID}.scope"
                ),
                Pod,
                "pod-1b2c3d4e/0123456789ab",
            ),
            (&format!("/kubepods/pod{uid}"), Pod, "pod-1b2c3d4e"),
            ("/build/jobs", Folder, "/build/jobs"),
            ("/docker/short", Folder, "/docker/short"),
            ("/.service", Folder, "/.service"),
            (&format!("/{ID}"), Folder, "/0123456789ab"),
            (&format!("/jobs/{}/x", &ID[..32]), Folder, "/jobs/0123456789ab/x"),
            ("/kubepods", Folder, "/kubepods"),
        ] {
            let name = GroupName::of(path).unwrap();
            assert_eq!((name.kind, name.text.as_str()), (kind, text), "{path}");
        }
        assert_eq!(GroupName::of(""), None);
    }

    #[test]
    fn what_is_below_a_unit_or_container_belongs_to_it() {
        let scope = format!("/machine.slice/libpod-{ID}.scope");
        for (path, of) in [
            ("/", "/"),
            ("/system.slice/backup.service/worker", "/system.slice/backup.service"),
            ("/build/jobs", "/build/jobs"),
            (&format!("{scope}/container/x.service"), &scope),
            (&format!("/kubepods/pod1b/{ID}/x"), &format!("/kubepods/pod1b/{ID}")),
            ("/user.slice/user-1000.slice", "/user.slice/user-1000.slice"),
        ] {
            assert_eq!(GroupName::of(path).unwrap().path, of, "{path}");
        }
    }

    #[test]
    fn a_service_says_more_than_its_program_and_a_session_does_not() {
        let is_service = |path: &str| GroupName::of(path).unwrap().is_service();
        assert!(is_service("/system.slice/backup.service"));
        assert!(is_service(&format!("/docker/{ID}")));
        assert!(!is_service("/user.slice/user-1000.slice/user@1000.service/app.slice"));
        assert!(!is_service("/user.slice/user-1000.slice/session-3.scope"));
        assert!(!is_service("/build"));
    }

    #[test]
    fn no_path_is_cut_inside_of_a_letter() {
        for path in [
            "/docker/ÄÖÜ",
            "/kubepods/podäöü",
            "/kubepods/poda\u{1f600}\u{1f600}",
            "//",
            "/é.service",
        ] {
            assert!(GroupName::of(path).is_some(), "{path}");
        }
    }
}
