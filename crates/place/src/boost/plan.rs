//! What an attach will do, and what a kill, a pull and a power cut will do on this kernel: printed
//! before anything is changed.
//!
//! All three parts are looked at here together: the medium is on another disk than the volume and
//! the journal, or the attach is refused. These two may share one.

use super::host::HostPart;
use super::medium::{MediumPlace, behind};
use super::volume::Volume;
use crate::{Error, ErrorKind, Result};
use machine::Root;
use model::Bytes;
use model::engine::ChangeProof;

const OPERATION: &str = "attach a cache";

/// How the volume is given to programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportMethod {
    /// A file of FUSE under a loop device, whose requests outlive the daemon (Linux 6.9).
    FuseResend,
    /// NBD, whose requests are sent again when their time is over.
    Nbd {
        /// That time.
        resend_after_s: u64,
    },
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportChoice {
    /// What survives a kill here, FUSE first.
    Auto,
    /// [`ExportMethod::FuseResend`].
    Fuse,
    /// [`ExportMethod::Nbd`].
    Nbd,
}

impl ExportChoice {
    /// The method, by what FUSE and NBD lack here; `resend_after_s` is for NBD.
    ///
    /// # Errors
    /// What is missing, in one sentence.
    pub fn resolve(
        self,
        fuse: impl FnOnce() -> std::result::Result<(), String>,
        nbd: impl FnOnce() -> std::result::Result<(), String>,
        resend_after_s: u64,
    ) -> std::result::Result<ExportMethod, String> {
        let by_fuse = |()| ExportMethod::FuseResend;
        let by_nbd = |()| ExportMethod::Nbd { resend_after_s };
        match self {
            Self::Fuse => fuse().map(by_fuse).map_err(|fuse| {
                format!("by FUSE a kill of the service would leave requests waiting: {fuse}")
            }),
            Self::Nbd => nbd().map(by_nbd).map_err(|nbd| format!("NBD is missing: {nbd}")),
            Self::Auto => fuse().map(by_fuse).or_else(|fuse| {
                nbd().map(by_nbd).map_err(|nbd| {
                    format!("nothing here outlives a kill of the service: {fuse}; {nbd}")
                })
            }),
        }
    }
}

/// Refuses parts that share a disk: a cache on the disk that it should spare, and a journal on the
/// medium, which it may not trust.
///
/// # Errors
/// `Impossible`, with the disk.
pub fn check_disks(
    root: &Root,
    volume: &Volume,
    medium: &MediumPlace,
    host: &HostPart,
) -> Result<()> {
    let refused = |reason: String| Err(Error::new(ErrorKind::Impossible, OPERATION, reason));
    if let Some(disk) = medium.disks.iter().find(|disk| volume.disks.contains(disk)) {
        let path = medium.path();
        return refused(format!(
            "{} is on {disk}, as the volume is: a cache there would slow it down",
            path.display()
        ));
    }
    let (disks, ..) = behind(root, host.device()?, &host.path());
    if let Some(disk) = medium.disks.iter().find(|disk| disks.contains(disk)) {
        return refused(format!(
            "the journal would be on {disk}, as the cache is: what proves the cache fresh must not \
             go with it"
        ));
    }
    // A volume that holds its own journal would have to be mounted below itself.
    if let Some(disk) = volume.disks.iter().find(|disk| disks.contains(disk)) {
        let is_whole = *disk == volume.name;
        if is_whole {
            return refused(format!("the journal is on {disk}, which is the volume"));
        }
    }
    Ok(())
}

/// What will be, in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPlan {
    /// Lines to print, in their order.
    pub lines: Vec<String>,
}

impl AttachPlan {
    /// The plan of an attach with a medium of so many bytes; `cold` says why it starts cold, if it
    /// does.
    #[must_use]
    pub fn of(
        volume: &Volume,
        medium: &MediumPlace,
        medium_bytes: u64,
        cold: Option<&str>,
        export: ExportMethod,
    ) -> Self {
        let kinds = volume.content.kinds.join(", ");
        let mut lines = vec![
            format!("volume   {} ({kinds}), {}", volume.name, Bytes(volume.bytes)),
            format!(
                "cache    {} on {} ({}), up to {}",
                medium.path().display(),
                medium.disks.join(", "),
                medium.file_system,
                Bytes(medium_bytes)
            ),
            match cold {
                None => "start    warm: what is proved fresh is served".to_owned(),
                Some(cold) => format!("start    cold: {cold}"),
            },
        ];
        lines.extend(consequences(volume.content.proof, export));
        Self { lines }
    }
}

/// What a kill, a pull and a power cut will do.
fn consequences(proof: ChangeProof, export: ExportMethod) -> Vec<String> {
    let kill = match export {
        ExportMethod::FuseResend => {
            "a kill   requests wait for the next process and are sent again (FUSE, Linux 6.9)"
                .to_owned()
        }
        ExportMethod::Nbd { resend_after_s } => format!(
            "a kill   requests wait for the next process; what was under way is sent again after \
             {resend_after_s} s (NBD)"
        ),
    };
    let cut = match proof {
        ChangeProof::Always => {
            "a cut    regions with writes since the last list are dropped, the rest stays warm"
        }
        ChangeProof::AfterDetach => {
            "a cut    the cache is cold: this content shows a write elsewhere only after a detach"
        }
        ChangeProof::Never => {
            "a cut    the cache is cold, and after a detach too: this content does not show a \
             write elsewhere"
        }
    };
    let pull = "a pull   reads go to the disk; the third error in a minute turns the cache off \
                until the stick is back";
    vec![kill, pull.to_owned(), cut.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuse_is_taken_where_it_survives_a_kill_and_else_nbd() {
        const NBD: ExportMethod = ExportMethod::Nbd { resend_after_s: 90 };
        let resolved = |choice: ExportChoice, has_fuse: bool, has_nbd: bool| {
            let lacks = |has: bool, what: &str| has.then_some(()).ok_or(format!("no {what}"));
            choice.resolve(|| lacks(has_fuse, "resend"), || lacks(has_nbd, "module"), 90)
        };
        for (choice, has_fuse, has_nbd, expected) in [
            (ExportChoice::Auto, true, true, Ok(ExportMethod::FuseResend)),
            (ExportChoice::Auto, false, true, Ok(NBD)),
            (ExportChoice::Auto, false, false, Err("no resend; no module")),
            (ExportChoice::Fuse, true, false, Ok(ExportMethod::FuseResend)),
            (ExportChoice::Fuse, false, true, Err("no resend")),
            (ExportChoice::Nbd, true, true, Ok(NBD)),
            (ExportChoice::Nbd, true, false, Err("no module")),
        ] {
            match (resolved(choice, has_fuse, has_nbd), expected) {
                (Ok(method), Ok(expected)) => assert_eq!(method, expected, "{choice:?}"),
                (Err(why), Err(words)) => assert!(why.ends_with(words), "{why}"),
                (other, _) => panic!("{choice:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_plan_says_what_each_accident_does() {
        for proof in [ChangeProof::Always, ChangeProof::AfterDetach, ChangeProof::Never] {
            let lines = consequences(proof, ExportMethod::Nbd { resend_after_s: 7 });
            assert!(lines[0].contains("after 7 s (NBD)"), "{}", lines[0]);
            let begins = lines.iter().map(|line| &line[..6]).collect::<Vec<_>>();
            assert_eq!(begins, ["a kill", "a pull", "a cut "]);
            let is_warm = lines[2].contains("stays warm");
            assert_eq!(is_warm, proof == ChangeProof::Always);
        }
    }
}
