//! What would allow a denial of AppArmor or SELinux, or show more of it, with the risk.
//!
//! A denial holds text of others, and any process may take the name of this program. So a line
//! names a profile, a file or a thread only if a shell and the module read no more than a name in
//! it, and each risk says what the line would allow.

use crate::wording::{often, shell_word};
use model::denial::{Denial, DenialReport, MessagesRead, SecurityModule};
use model::doctor::{PermitLine, RunPlace, Surroundings};

/// The profiles that tools give to containers. They belong to no file of /etc/apparmor.d.
const CONTAINER_PROFILES: [&str; 5] =
    ["docker-default", "containers-default", "cri-containerd", "crio-default", "lxc-container"];
/// The types that SELinux gives to containers.
const CONTAINER_TYPES: [&str; 4] =
    ["container_t", "container_init_t", "container_kvm_t", "svirt_lxc_net_t"];

/// What AppArmor calls processes without a profile, which the kernel's settings can still refuse.
const UNCONFINED: &str = "unconfined";

const CONTAINER_RISK: &str =
    "The module then confines nothing in that container, also what breaks out of it.";
const LOCAL_RISK: &str = "Every program under that profile may then do that. It takes a profile \
                          that includes this file and has no `deny` for it, and `sudo systemctl \
                          reload apparmor`.";
const COMPLAIN_RISK: &str = "Every program under that profile then does what it likes; what the \
                             profile forbids is only logged. `aa-enforce` takes it back.";

/// Denials with the lines for each, the last one first. `time` writes seconds since 1970 as local
/// time.
pub fn denial_reports(
    denials: Vec<Denial>,
    here: &Surroundings,
    time: impl Fn(i64) -> String,
) -> Vec<DenialReport> {
    let report = |denial: Denial| DenialReport {
        last: time(denial.last_unix_s),
        lines: lines(&denial, here),
        denial,
    };
    denials.into_iter().rev().map(report).collect()
}

/// The answer where the kernel's messages could not be read; `why` is a clause.
#[must_use]
pub fn unread(why: &str, is_refused: bool) -> MessagesRead {
    let need = if is_refused { "; it takes CAP_SYSLOG, or kernel.dmesg_restrict=0" } else { "" };
    MessagesRead { why: Some(format!("{why}{need}")), ..MessagesRead::default() }
}

fn lines(denial: &Denial, here: &Surroundings) -> Vec<PermitLine> {
    if is_of_container(denial) {
        return vec![in_container(denial.module, here.place)];
    }
    match denial.module {
        SecurityModule::AppArmor => of_apparmor(denial),
        SecurityModule::SeLinux => of_selinux(denial),
    }
}

fn is_of_container(denial: &Denial) -> bool {
    match denial.module {
        SecurityModule::AppArmor => {
            CONTAINER_PROFILES.iter().any(|name| denial.subject.starts_with(name))
        }
        SecurityModule::SeLinux => {
            domain(&denial.subject).is_some_and(|domain| CONTAINER_TYPES.contains(&domain))
        }
    }
}

fn in_container(module: SecurityModule, place: RunPlace) -> PermitLine {
    let (option, field) = match module {
        SecurityModule::AppArmor => {
            ("--security-opt=apparmor=unconfined", "appArmorProfile: {type: Unconfined}")
        }
        SecurityModule::SeLinux => {
            ("--security-opt=label=disable", "seLinuxOptions: {type: spc_t}")
        }
    };
    let line = match place {
        RunPlace::Docker => format!("docker run {option} ..."),
        RunPlace::Podman => format!("sudo podman run {option} ..."),
        RunPlace::Kubernetes => format!("securityContext: {{{field}}}"),
        RunPlace::Host | RunPlace::Namespace => {
            format!("{option} (of docker run or podman run, when the container is started)")
        }
    };
    PermitLine { line, risk: CONTAINER_RISK.to_owned() }
}

fn of_apparmor(denial: &Denial) -> Vec<PermitLine> {
    let profile = denial.subject.as_str();
    let mut lines: Vec<PermitLine> = local_rule(denial).into_iter().collect();
    if is_plain_name(profile) && profile != UNCONFINED {
        let line = format!("sudo aa-complain {profile}");
        lines.push(PermitLine { line, risk: COMPLAIN_RISK.to_owned() });
    }
    lines
}

/// The rule that allows it, in the file where an administrator adds to a profile.
fn local_rule(denial: &Denial) -> Option<PermitLine> {
    let profile = denial.subject.as_str();
    // A profile within another has no such file of its own.
    if !is_plain_name(profile) || profile.contains("//") || profile == UNCONFINED {
        return None;
    }
    let file = profile.trim_start_matches('/').replace('/', ".");
    let object = denial.object.as_deref().filter(|object| is_plain_name(object))?;
    let rule = match denial.class.as_deref() {
        Some("cap") => format!("capability {object},"),
        _ if object.starts_with('/') => {
            format!("{object} {},", file_rights(denial.rights.as_deref()?)?)
        }
        _ => return None,
    };
    Some(PermitLine {
        line: format!("{rule} (a rule in /etc/apparmor.d/local/{file})"),
        risk: LOCAL_RISK.to_owned(),
    })
}

/// The rights of a log as those of a rule: creation and removal are writes there.
fn file_rights(logged: &str) -> Option<String> {
    let mut rights = String::new();
    for right in logged.chars() {
        let word = match right {
            'r' => "r",
            'w' | 'c' | 'd' | 'a' => "w",
            'm' => "m",
            'k' => "k",
            'l' => "l",
            'x' => "ix",
            _ => return None,
        };
        if !rights.contains(word) {
            rights.push_str(word);
        }
    }
    (!rights.is_empty()).then_some(rights)
}

fn of_selinux(denial: &Denial) -> Vec<PermitLine> {
    let thread = denial.thread.as_str();
    if !is_plain_name(thread) {
        return Vec::new();
    }
    let domain = domain(&denial.subject).unwrap_or("its domain");
    let risk = |from: &str| {
        format!(
            "It writes terrace-local.te to be read first, with what was refused to every program \
             of the name {thread} in {from}; after `sudo semodule -i terrace-local.pp` all of \
             {domain} may do that."
        )
    };
    let module = "audit2allow -M terrace-local";
    vec![
        PermitLine {
            line: format!("sudo dmesg | grep 'comm=\"{thread}\"' | {module}"),
            risk: risk("the kernel's messages"),
        },
        PermitLine {
            line: format!("sudo ausearch -m avc -c {thread} | {module}"),
            risk: risk("the log of auditd"),
        },
    ]
}

/// The type in a context: `container_t` of `system_u:system_r:container_t:s0:c1,c2`.
fn domain(context: &str) -> Option<&str> {
    context.split(':').nth(2).filter(|domain| is_plain_name(domain))
}

/// Whether a shell, AppArmor and options of programs take `name` as it is.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}

/// A denial as one line: when, by which module, what confines the process, and what was refused.
/// Names with spaces are in quotes, so that they do not read as a part of the sentence.
#[must_use]
pub fn denial_sentence(report: &DenialReport) -> String {
    let DenialReport { denial, last, .. } = report;
    let confined = match denial.module {
        SecurityModule::AppArmor => format!("profile {}", shell_word(&denial.subject)),
        SecurityModule::SeLinux => {
            let domain = domain(&denial.subject);
            format!("domain {}", shell_word(domain.unwrap_or(&denial.subject)))
        }
    };
    let mut refused = denial.operation.clone();
    if let Some(object) = &denial.object {
        refused.push_str(&format!(" of {}", shell_word(object)));
    }
    let kind = [&denial.class, &denial.rights].into_iter().flatten();
    let kind: Vec<&str> = kind.map(String::as_str).collect();
    if !kind.is_empty() {
        refused.push_str(&format!(" ({})", kind.join(", ")));
    }
    let by = match (denial.is_own, denial.pid) {
        (true, _) => ", by this report".to_owned(),
        (false, Some(pid)) => {
            let of = denial.uid.map(|uid| format!(" of user {uid}")).unwrap_or_default();
            format!(", by process {pid}{of}")
        }
        (false, None) => String::new(),
    };
    let often = match denial.count {
        0 | 1 => String::new(),
        many => format!("; {}", often(many)),
    };
    format!("{last}: {}, {confined}: {refused}{by}{often}", denial.module.title())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial(module: SecurityModule, subject: &str) -> Denial {
        let is_selinux = module == SecurityModule::SeLinux;
        Denial {
            module,
            subject: subject.to_owned(),
            operation: if is_selinux { "read" } else { "open" }.to_owned(),
            object: Some("/proc/vmstat".to_owned()),
            object_context: None,
            class: Some("file".to_owned()),
            rights: (!is_selinux).then(|| "r".to_owned()),
            pid: Some(7),
            uid: (!is_selinux).then_some(0),
            thread: "terrace".to_owned(),
            is_own: false,
            count: 1,
            last_unix_s: 9,
        }
    }

    fn apparmor(subject: &str) -> Denial {
        denial(SecurityModule::AppArmor, subject)
    }

    fn selinux(subject: &str) -> Denial {
        denial(SecurityModule::SeLinux, subject)
    }

    fn line_texts(denial: &Denial, place: RunPlace) -> Vec<String> {
        let here = Surroundings { place, ..Surroundings::default() };
        let lines = lines(denial, &here);
        assert!(lines.iter().all(|line| !line.risk.is_empty()));
        lines.into_iter().map(|line| line.line).collect()
    }

    #[test]
    fn a_profile_gets_the_rule_that_was_missing_and_complain_mode() {
        assert_eq!(
            line_texts(&apparmor("/usr/bin/terrace"), RunPlace::Host),
            [
                "/proc/vmstat r, (a rule in /etc/apparmor.d/local/usr.bin.terrace)",
                "sudo aa-complain /usr/bin/terrace",
            ]
        );
        let capability = Denial {
            class: Some("cap".to_owned()),
            object: Some("sys_admin".to_owned()),
            rights: None,
            ..apparmor("terrace")
        };
        assert_eq!(
            line_texts(&capability, RunPlace::Host)[0],
            "capability sys_admin, (a rule in /etc/apparmor.d/local/terrace)"
        );
        assert_eq!(file_rights("rwcd").as_deref(), Some("rw"));
        assert_eq!((file_rights("?"), file_rights("")), (None, None));
    }

    #[test]
    fn a_domain_gets_a_module_of_what_was_refused() {
        let lines = line_texts(&selinux("staff_u:staff_r:staff_t:s0"), RunPlace::Host);
        assert_eq!(
            lines,
            [
                "sudo dmesg | grep 'comm=\"terrace\"' | audit2allow -M terrace-local",
                "sudo ausearch -m avc -c terrace | audit2allow -M terrace-local",
            ]
        );
    }

    #[test]
    fn a_container_gets_the_option_of_its_tool() {
        let context = "system_u:system_r:container_t:s0:c1,c2";
        for (denial, place, line) in [
            (
                apparmor("docker-default"),
                RunPlace::Docker,
                "docker run --security-opt=apparmor=unconfined ...",
            ),
            (
                apparmor("containers-default-0.50.1"),
                RunPlace::Podman,
                "sudo podman run --security-opt=apparmor=unconfined ...",
            ),
            (
                selinux(context),
                RunPlace::Podman,
                "sudo podman run --security-opt=label=disable ...",
            ),
            (
                selinux(context),
                RunPlace::Kubernetes,
                "securityContext: {seLinuxOptions: {type: spc_t}}",
            ),
        ] {
            assert_eq!(line_texts(&denial, place), [line]);
        }
        // A container that was denied something earlier, seen from the machine.
        let lines = line_texts(&selinux(context), RunPlace::Host);
        assert!(lines[0].starts_with("--security-opt=label=disable (of "), "{lines:?}");
    }

    #[test]
    fn no_line_holds_what_a_shell_or_a_module_would_obey() {
        for hostile in ["x; reboot", "$(reboot)", "-r", "a b", "a'b", "a\"b", "a\nb", "**", "", "é"]
        {
            let named = apparmor(hostile);
            assert!(line_texts(&named, RunPlace::Host).is_empty(), "{hostile}");
            let object = Denial { object: Some(format!("/{hostile}")), ..apparmor("p") };
            let texts = line_texts(&object, RunPlace::Host);
            let is_path = is_plain_name(&format!("/{hostile}"));
            assert_eq!(texts.len(), 1 + usize::from(is_path), "{texts:?}");
            let thread = Denial { thread: hostile.to_owned(), ..selinux("a:b:c:s0") };
            assert!(line_texts(&thread, RunPlace::Host).is_empty(), "{hostile}");
            let named = selinux(&format!("a:b:{hostile}:s0"));
            let all = lines(&named, &Surroundings::default());
            assert!(all.iter().all(|line| line.risk.contains("all of its domain may")));
        }
        assert!(line_texts(&apparmor(UNCONFINED), RunPlace::Host).is_empty());
        // A profile in a namespace, or within another, has no such file.
        assert!(line_texts(&apparmor(":ns:p"), RunPlace::Host).is_empty());
        assert_eq!(line_texts(&apparmor("/a//b"), RunPlace::Host), ["sudo aa-complain /a//b"]);
    }

    #[test]
    fn a_denial_is_one_line_and_the_last_one_comes_first() {
        let often = Denial { count: 3, is_own: true, ..apparmor("/usr/bin/terrace") };
        let time = |unix_s: i64| format!("at {unix_s}");
        let here = Surroundings::default();
        let reports = denial_reports(vec![often, selinux("a:b:c_t:s0")], &here, time);
        let sentences: Vec<String> = reports.iter().map(denial_sentence).collect();
        assert_eq!(
            sentences,
            [
                "at 9: SELinux, domain c_t: read of /proc/vmstat (file), by process 7",
                "at 9: AppArmor, profile /usr/bin/terrace: open of /proc/vmstat (file, r), by \
                 this report; 3 times",
            ]
        );
        let odd = Denial { object: Some("/x. Run this".to_owned()), ..apparmor("p") };
        let report = denial_reports(vec![odd], &here, time).pop().unwrap();
        assert!(
            denial_sentence(&report)
                .ends_with("open of '/x. Run this' (file, r), by process 7 of user 0")
        );
    }

    #[test]
    fn what_could_not_be_read_is_not_none() {
        let refused = unread("cannot read it", true);
        assert!(!refused.readable && refused.why.unwrap().ends_with("kernel.dmesg_restrict=0"));
        assert_eq!(unread("no such file", false).why.as_deref(), Some("no such file"));
    }
}
