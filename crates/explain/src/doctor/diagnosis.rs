//! The obstacle behind a refusal: from the error number of the kernel, what the source needs, and
//! what this process is.

use super::needs::{DAC_READ_SEARCH, SourceNeeds};
use crate::wording::list;
use model::doctor::{KnownObstacle, Obstacle, RunPlace, SourceRefusal, Surroundings};

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const ENXIO: i32 = 6;
const ENOMEM: i32 = 12;
const EACCES: i32 = 13;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const EROFS: i32 = 30;
const ENOSYS: i32 = 38;
const EOPNOTSUPP: i32 = 95;

/// Names of error numbers that sources answer with; the same on x86 and aarch64.
const NAMES: [(i32, &str); 16] = [
    (EPERM, "EPERM"),
    (ENOENT, "ENOENT"),
    (3, "ESRCH"),
    (5, "EIO"),
    (ENXIO, "ENXIO"),
    (11, "EAGAIN"),
    (ENOMEM, "ENOMEM"),
    (EACCES, "EACCES"),
    (16, "EBUSY"),
    (ENODEV, "ENODEV"),
    (20, "ENOTDIR"),
    (EINVAL, "EINVAL"),
    (24, "EMFILE"),
    (EROFS, "EROFS"),
    (ENOSYS, "ENOSYS"),
    (EOPNOTSUPP, "EOPNOTSUPP"),
];

/// The name of an error number: `EPERM`; the number if it has none here.
pub(super) fn errno_name(number: i32) -> String {
    let found = NAMES.iter().find(|(known, _)| *known == number);
    found.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

/// What this process lacks of what a source needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacks {
    pub capabilities: Vec<&'static str>,
    pub root: bool,
    pub user_namespace: bool,
    pub process_namespace: bool,
    /// The device file that the container has to be given.
    pub device: Option<String>,
    /// Whether the filter of system calls stops it.
    pub filter: bool,
    /// Whether the mount is not there.
    pub mount: bool,
}

/// Why a source is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub obstacle: Obstacle,
    pub why: String,
    pub lacks: Lacks,
}

impl Diagnosis {
    pub fn of(needs: &SourceNeeds, refusal: &SourceRefusal, here: &Surroundings) -> Self {
        let mut lacks = rights(needs, here);
        let obstacle = obstacle(needs, refusal, here, &mut lacks);
        let why = why(needs, refusal, here, (obstacle, &lacks));
        Self { obstacle, why, lacks }
    }
}

/// The rights that are lacking; whether the kernel asks for them is another question.
fn rights(needs: &SourceNeeds, here: &Surroundings) -> Lacks {
    // Root owns the device files.
    let is_owner = |name: &str| name == DAC_READ_SEARCH && here.uid == 0;
    let is_held = |name: &&&str| here.capabilities.contains(**name) || is_owner(name);
    Lacks {
        capabilities: needs.capabilities.iter().filter(|name| !is_held(name)).copied().collect(),
        root: needs.root && here.uid != 0,
        user_namespace: needs.first_user_namespace && !here.first_user_namespace,
        process_namespace: needs.first_process_namespace && !here.first_process_namespace,
        ..Lacks::default()
    }
}

fn obstacle(
    needs: &SourceNeeds,
    refusal: &SourceRefusal,
    here: &Surroundings,
    lacks: &mut Lacks,
) -> Obstacle {
    match refusal.known {
        Some(KnownObstacle::SettingOff) => return Obstacle::Setting,
        Some(KnownObstacle::NotInKernel) => return Obstacle::Kernel,
        Some(KnownObstacle::NotLoaded) => return absent(needs, refusal, here, lacks),
        Some(KnownObstacle::NotMounted) => {
            lacks.mount = true;
            return if has_rights(lacks) { Obstacle::Mount } else { of_rights(lacks) };
        }
        None => {}
    }
    match refusal.errno {
        // Refused without a question to the kernel, or hidden by zeros.
        None if is_closed(needs, here) => Obstacle::Setting,
        None if !has_rights(lacks) => of_rights(lacks),
        None => Obstacle::Unknown,
        Some(EPERM | EACCES | EROFS) => denied(needs, refusal, here, lacks),
        Some(ENOSYS) if here.filtered => {
            // The call was not made, so that no right was asked for.
            *lacks = Lacks { filter: true, ..Lacks::default() };
            Obstacle::Filter
        }
        Some(ENOSYS) => Obstacle::Kernel,
        Some(ENOENT | ENXIO | ENODEV) => absent(needs, refusal, here, lacks),
        Some(EINVAL | EOPNOTSUPP) if lacks.user_namespace || lacks.process_namespace => {
            Obstacle::Container
        }
        Some(EINVAL | EOPNOTSUPP) => Obstacle::Kernel,
        Some(ENOMEM) if !has_rights(lacks) => of_rights(lacks),
        Some(_) => Obstacle::Unknown,
    }
}

fn has_rights(lacks: &Lacks) -> bool {
    let Lacks { capabilities, root, user_namespace, process_namespace, .. } = lacks;
    capabilities.is_empty() && !root && !user_namespace && !process_namespace
}

/// The obstacle of lacking rights. A right within a user namespace is not missing but does not
/// count, so the namespace comes first.
fn of_rights(lacks: &Lacks) -> Obstacle {
    if lacks.user_namespace {
        Obstacle::Container
    } else if lacks.root || !lacks.capabilities.is_empty() {
        Obstacle::Permission
    } else {
        Obstacle::Container
    }
}

/// Whether a setting closes it to this process.
fn is_closed(needs: &SourceNeeds, here: &Surroundings) -> bool {
    needs.setting.is_some_and(|setting| {
        let value = here.settings.get(setting.name).map(String::as_str);
        let is_exempt = setting.except.is_some_and(|name| here.capabilities.contains(name));
        value.is_some_and(|value| setting.closed.contains(&value)) && !is_exempt
    })
}

/// The obstacle behind a refusal for want of a right.
fn denied(
    needs: &SourceNeeds,
    refusal: &SourceRefusal,
    here: &Surroundings,
    lacks: &mut Lacks,
) -> Obstacle {
    if is_closed(needs, here) {
        return Obstacle::Setting;
    }
    if !has_rights(lacks) {
        return of_rights(lacks);
    }
    if here.lockdown.as_deref() == Some("confidentiality") && needs.first_user_namespace {
        return Obstacle::Lockdown;
    }
    if here.filtered && !needs.calls.is_empty() {
        lacks.filter = true;
        return Obstacle::Filter;
    }
    // A control group of devices refuses so what capabilities and the file permit.
    if let Some(device) = refused_device(refusal).filter(|_| needs.device.is_some()) {
        lacks.device = Some(device.to_owned());
        return Obstacle::Container;
    }
    Obstacle::Unknown
}

/// The device file that was refused, if it is one.
fn refused_device(refusal: &SourceRefusal) -> Option<&str> {
    refusal.path.as_deref().filter(|path| path.starts_with("/dev/"))
}

/// The obstacle behind something that is not there.
fn absent(
    needs: &SourceNeeds,
    refusal: &SourceRefusal,
    here: &Surroundings,
    lacks: &mut Lacks,
) -> Obstacle {
    if let Some(device) = needs.device.filter(|_| here.place != RunPlace::Host) {
        lacks.device = Some(refused_device(refusal).unwrap_or(device).to_owned());
        return Obstacle::Container;
    }
    if needs.module.is_some() {
        return Obstacle::Module;
    }
    if needs.mount.is_some() {
        lacks.mount = true;
        return Obstacle::Mount;
    }
    Obstacle::Kernel
}

/// Why, as a clause: the words of the attempt, and what the obstacle adds to them.
fn why(
    needs: &SourceNeeds,
    refusal: &SourceRefusal,
    here: &Surroundings,
    (obstacle, lacks): (Obstacle, &Lacks),
) -> String {
    let addition = match obstacle {
        Obstacle::Permission => permission(lacks),
        Obstacle::Setting => needs.setting.and_then(|setting| {
            let value = here.settings.get(setting.name)?;
            Some(format!("{} is {value}", setting.name))
        }),
        Obstacle::Container if lacks.user_namespace => {
            Some("the rights of a user namespace do not count for it".to_owned())
        }
        Obstacle::Container if lacks.process_namespace => {
            Some("this process does not see the process numbers of the machine".to_owned())
        }
        Obstacle::Container => {
            let device = lacks.device.as_ref();
            device.map(|device| match here.place {
                RunPlace::Host => format!("its control group may not use {device}"),
                _ => format!("the container was not given {device}"),
            })
        }
        Obstacle::Filter => Some(format!("a filter of system calls is on ({})", needs.calls)),
        Obstacle::Lockdown => Some("the kernel is locked down (confidentiality)".to_owned()),
        Obstacle::Kernel => Some(format!("it takes {}", needs.kernel)),
        Obstacle::Unknown => unknown(refusal),
        Obstacle::Mount | Obstacle::Module => None,
    };
    match addition {
        Some(addition) if refusal.why.is_empty() => addition,
        // The attempt may have said already which rights are missing.
        Some(addition) if refusal.why.contains(addition.trim_start_matches("it takes ")) => {
            refusal.why.clone()
        }
        Some(addition) => format!("{}; {addition}", refusal.why),
        None => refusal.why.clone(),
    }
}

fn permission(lacks: &Lacks) -> Option<String> {
    let names: Vec<String> = lacks.capabilities.iter().map(|name| format!("CAP_{name}")).collect();
    match (names.is_empty(), lacks.root) {
        (true, false) => None,
        (true, true) => Some("it takes root".to_owned()),
        (false, false) => Some(format!("it takes {}", list(&names))),
        (false, true) => Some(format!("it takes root with {}", list(&names))),
    }
}

/// All rights that are known to be needed are there. No security module is suspected: its denials
/// are listed where the kernel logged them.
fn unknown(refusal: &SourceRefusal) -> Option<String> {
    let is_denied = matches!(refusal.errno, Some(EPERM | EACCES));
    is_denied.then(|| "every known right is there".to_owned())
}
