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
    /// NBD, whose requests are sent again when the daemon is back.
    Nbd,
}

impl ExportMethod {
    /// The one that survives a kill on this kernel, FUSE first.
    #[must_use]
    pub fn for_kernel(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let version = (numbers.next(), numbers.next());
        match version {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 9) => Self::FuseResend,
            _ => Self::Nbd,
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
        }
        ExportMethod::Nbd => {
            "a kill   requests wait for their time-out and are sent again (NBD: this kernel is \
             older than 6.9)"
        }
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
    [kill, pull, cut].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_survives_a_kill_depends_on_the_kernel() {
        for (release, expected) in [
            ("6.9.0", ExportMethod::FuseResend),
            ("6.18.44-x", ExportMethod::FuseResend),
            ("7.0-rc1", ExportMethod::FuseResend),
            ("6.8.12", ExportMethod::Nbd),
            ("5.15.0-91-generic", ExportMethod::Nbd),
            ("strange", ExportMethod::Nbd),
        ] {
            assert_eq!(ExportMethod::for_kernel(release), expected, "{release}");
        }
    }

    #[test]
    fn a_plan_says_what_each_accident_does() {
        for proof in [ChangeProof::Always, ChangeProof::AfterDetach, ChangeProof::Never] {
            let lines = consequences(proof, ExportMethod::Nbd);
            let begins = lines.iter().map(|line| &line[..6]).collect::<Vec<_>>();
            assert_eq!(begins, ["a kill", "a pull", "a cut "]);
            let is_warm = lines[2].contains("stays warm");
            assert_eq!(is_warm, proof == ChangeProof::Always);
        }
    }
}
