//! Findings of sampled time name whom the samples met, and findings of devices whose requests they
//! served.

use crate::builder::{Built, S, finding, machine, names, of_role};
use model::Grade;
use model::explanation::ActorRole;
use model::recording::{ProcessFigure, RequestRow, SampleRow, SampledPart};

/// A machine that copied in the kernel for a fifth of its time: 200 of 1,000 samples.
fn copying() -> (Built, u32, u32) {
    let mut built = machine()
        .busy_s(60)
        .grows_evenly("trace.cpu.samples", 1_000)
        .grows_evenly("trace.cpu.in.user", 800)
        .grows_evenly("trace.cpu.in.call", 200)
        .grows_evenly("trace.cpu.kernel.copying", 200);
    let spinner = built.process("spinner", 10, "/a");
    let copier = built.process("copier", 11, "/b");
    built.used(spinner, (0, 60), &[(ProcessFigure::Cpu, 48 * S)]);
    built.used(copier, (0, 60), &[(ProcessFigure::Cpu, 12 * S)]);
    (built, spinner, copier)
}

fn sampled(process: u32, parts: &[(SampledPart, u64)]) -> SampleRow {
    let mut row = SampleRow { process, to_ns: 60 * S, ..SampleRow::default() };
    for (part, count) in parts {
        row.samples[*part as usize] = *count;
    }
    row
}

#[test]
fn who_copied_is_measured_where_samples_have_their_process() {
    let (mut built, spinner, copier) = copying();
    built.0.who.samples = vec![
        sampled(spinner, &[(SampledPart::User, 800)]),
        sampled(copier, &[(SampledPart::Call, 200), (SampledPart::KernelCopying, 200)]),
    ];
    let explanation = built.explained();
    let cause = finding(&explanation, "kernel_copying");
    assert_eq!(names(cause, ActorRole::Culprit), ["copier"]);
    let culprit = &of_role(cause, ActorRole::Culprit)[0].used;
    assert_eq!((culprit.grade, culprit.value), (Grade::Measured, 200));
    // All of 200: Wilson's interval begins at 98.1 %.
    let (low, high) = (culprit.share_low.unwrap(), culprit.share_high.unwrap());
    assert!((low - 0.981).abs() < 0.001 && high == 1.0, "{low} to {high}");
    assert!(cause.who[0].contains("spent 12 s of it (98 to 100 %)"), "{:?}", cause.who);
}

#[test]
fn without_samples_by_process_who_ran_most_is_a_conclusion() {
    let (built, ..) = copying();
    let explanation = built.explained();
    let cause = finding(&explanation, "kernel_copying");
    assert_eq!(names(cause, ActorRole::Culprit)[0], "spinner");
    let culprit = &of_role(cause, ActorRole::Culprit)[0].used;
    assert_eq!((culprit.grade, culprit.share_low), (Grade::Inferred, None));
}

#[test]
fn a_share_of_few_samples_is_a_conclusion() {
    let (mut built, spinner, copier) = copying();
    built.0.who.samples = vec![
        sampled(spinner, &[(SampledPart::User, 800), (SampledPart::KernelCopying, 2)]),
        sampled(copier, &[(SampledPart::KernelCopying, 1)]),
    ];
    let explanation = built.explained();
    let all = of_role(finding(&explanation, "kernel_copying"), ActorRole::Culprit);
    let copier = all.iter().find(|actor| actor.used.name == "copier").unwrap();
    assert_eq!(copier.used.grade, Grade::Inferred);
}

#[test]
fn reads_of_a_device_name_whose_they_are_and_how_fast() {
    let mut built = machine().busy_s(2).reads_s(5, (0, 60));
    let postgres = built.process("postgres", 12, "/system.slice/postgresql.service");
    built.used(postgres, (0, 60), &[(ProcessFigure::BlockWait, 5 * S)]);
    let mut classes = [0; RequestRow::CLASSES];
    (classes[4], classes[7]) = (11_900, 100);
    built.0.who.requests.push(RequestRow {
        process: postgres,
        device: (254, 0),
        to_ns: 60 * S,
        requests: 12_000,
        bytes: 12_000 * 8192,
        latency_ns: 3 * S,
        classes,
        ..RequestRow::default()
    });
    let explanation = built.explained();
    let cause = finding(&explanation, "reads_from_device");
    let requests = cause.who.iter().find(|line| line.starts_with("Requests: ")).unwrap();
    assert!(requests.contains("postgres (pid 12) 12,000 reads of vda, median"), "{requests}");
    assert!(requests.ends_with("99 % under 256 us"), "{requests}");
    let culprit = &of_role(cause, ActorRole::Culprit)[0].used;
    assert_eq!((culprit.figure.as_str(), culprit.value), ("device_bytes", 12_000 * 8192));
}

/// A machine on which a script started `true` 60,000 times, each for `each_us` of processor time.
fn starting(each_us: u64) -> Built {
    let mut built = machine()
        .busy_s(60)
        .grows_evenly("trace.cpu.samples", 1_000)
        .grows_evenly("trace.cpu.in.user", 840)
        .grows_evenly("trace.cpu.in.call", 160)
        .grows_evenly("trace.cpu.call.execve", 160);
    let short = built.process("true", 0, "/a");
    let one = &mut built.0.who.processes[short as usize];
    (one.is_many, one.parent) = (true, 10);
    let cpu = 60_000 * each_us * 1_000;
    built.used(short, (0, 60), &[(ProcessFigure::Cpu, cpu)]);
    built.0.who.rows.iter_mut().for_each(|row| row.processes = 1_000);
    built.0.who.samples = vec![sampled(short, &[(SampledPart::User, 840)])];
    built
}

/// What a program that does nothing runs in user mode is the loading of its libraries.
#[test]
fn the_code_of_programs_that_hardly_ran_is_a_part_of_starting_them() {
    let explanation = starting(1_000).explained();
    let first = &explanation.findings[0];
    assert_eq!((first.finding.id.as_str(), first.finding.grade), ("exec_storm", Grade::Inferred));
    assert!(
        first.finding.claim.ends_with(
            "; 60 s more in the code of 60,000 that ran for 1 ms each: their libraries' loading"
        ),
        "{}",
        first.finding.claim
    );
    assert!(explanation.findings.iter().all(|cause| cause.finding.id != "cpu_bound"));
    // Those that ran for longer did work of their own.
    let explanation = starting(10_000).explained();
    assert_eq!(explanation.findings[0].finding.id, "cpu_bound");
}
