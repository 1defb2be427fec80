//! A survey that may be shown around: the host's name, names of users, mount points, paths
//! and volumes replaced; models of processors and kernel names of devices stay.

use super::names::StandIns;
use model::TierKind;
use model::survey::Survey;

/// Replaces what is personal. `private` are the paths and user names that the caller knows of;
/// other paths are found by their slash.
pub fn redact_survey(survey: &mut Survey, private: &[String]) {
    redact_surveys(&mut [survey], private);
}

/// Replaces what is personal in several: equal names get equal stand-ins in all of them.
pub fn redact_surveys(surveys: &mut [&mut Survey], private: &[String]) {
    let mut names = StandIns::default();
    for word in private {
        if word.starts_with('/') {
            names.path(&mut word.clone());
        } else {
            names.stand_in("user-", word);
        }
    }
    for survey in &mut *surveys {
        learn(survey, &mut names);
    }
    for survey in surveys {
        each_text(survey, |text| names.scrub(text));
    }
}

/// Takes note of the names in a survey, and its host's out of it.
fn learn(survey: &mut Survey, names: &mut StandIns) {
    if let Some(host) = survey.machine.host.take() {
        names.stand_in("host-", &host);
    }
    for tier in &survey.tiers {
        let Some((first, second)) = tier.name.split_once("  ") else {
            continue;
        };
        match tier.kind {
            TierKind::Device | TierKind::RamDisk => names.path(&mut first.to_owned()),
            // A volume below /dev is named by a user.
            TierKind::Swap | TierKind::CompressedRam if second.contains('/') => {
                names.stand_in("area-", second);
            }
            _ => {}
        }
    }
    for skipped in survey.skipped.iter().filter(|s| s.name.starts_with('/')) {
        names.path(&mut skipped.name.clone());
    }
}

/// Every text of a survey that may name something of the machine's owner.
fn each_text(survey: &mut Survey, mut change: impl FnMut(&mut String)) {
    for tier in &mut survey.tiers {
        change(&mut tier.name);
        change(&mut tier.method);
        tier.reason.iter_mut().for_each(&mut change);
    }
    for finding in &mut survey.findings {
        change(&mut finding.claim);
        let optional = [&mut finding.tier, &mut finding.remedy, &mut finding.confirm];
        optional.into_iter().flatten().for_each(&mut change);
        for evidence in &mut finding.evidence {
            change(&mut evidence.name);
            change(&mut evidence.source);
        }
    }
    for unchecked in &mut survey.unchecked {
        change(&mut unchecked.reason);
    }
    for skipped in &mut survey.skipped {
        change(&mut skipped.name);
        change(&mut skipped.reason);
    }
    for device in &mut survey.curves.devices {
        change(&mut device.tier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::survey::{SCHEMA, Skipped};
    use model::{Evidence, Finding, Grade, Tier};

    fn survey() -> Survey {
        let tier = |name: &str, kind| Tier::unseen(name, kind, "cannot open /srv/acme/.tmp");
        let about = "/mnt/My Vault  vdb";
        Survey {
            schema: SCHEMA.to_owned(),
            version: String::new(),
            started_unix_s: 0,
            interrupted: false,
            tiers: vec![
                tier("L1 cache", TierKind::CpuCache),
                tier(about, TierKind::Device),
                tier("/  nvme0n1p2", TierKind::Device),
                tier("swap  mapper/acme-swap", TierKind::Swap),
            ],
            findings: vec![Finding {
                id: "volume_limit_bandwidth".to_owned(),
                claim: "/mnt/My Vault (vdb) stops at 125 MB/s.".to_owned(),
                tier: Some(about.to_owned()),
                evidence: vec![Evidence::new(
                    "quota of /user.slice/alice.service",
                    1.0,
                    "count",
                    "/sys/fs/cgroup/user.slice/alice.service/cpu.max",
                )],
                grade: Grade::Inferred,
                remedy: Some("swapoff /dev/mapper/acme-swap on titan".to_owned()),
                confirm: Some("terrace survey --path '/mnt/My Vault/of alice'".to_owned()),
            }],
            fine: Vec::new(),
            unchecked: Vec::new(),
            skipped: vec![Skipped { name: "/home/alice".to_owned(), reason: "asleep".to_owned() }],
            control_step_ns: None,
            curves: model::curves::Curves {
                devices: vec![model::curves::DeviceRates {
                    tier: about.to_owned(),
                    reads: Vec::new(),
                    writes: Vec::new(),
                }],
                ..Default::default()
            },
            machine: model::machine::MachineFacts {
                host: Some("titan".to_owned()),
                cpu: Some("AMD EPYC 9R45".to_owned()),
                ..Default::default()
            },
            cost: model::survey::Cost::default(),
        }
    }

    #[test]
    fn nothing_personal_is_left_and_what_belongs_together_still_does() {
        let mut redacted = survey();
        redact_survey(&mut redacted, &["/mnt/My Vault/of alice".to_owned(), "alice".to_owned()]);
        let text = serde_json::to_string(&redacted).unwrap();
        for private in ["alice", "acme", "titan", "Vault"] {
            assert!(!text.contains(private), "{private} in {text}");
        }
        for kept in ["AMD EPYC 9R45", "vdb", "/  nvme0n1p2", "L1 cache"] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
        let name = &redacted.tiers[1].name;
        assert_eq!(redacted.findings[0].tier.as_ref(), Some(name));
        assert_eq!(&redacted.curves.devices[0].tier, name);
    }
}
