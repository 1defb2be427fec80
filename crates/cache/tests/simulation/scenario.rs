//! What happens to the simulated cache: scenarios that a seed draws, with every kind of fault, and
//! scenarios in which the power is cut at a given write.

use cache::{ChangeProof, Rules};
use testkit::{MediumFaults, Random, SimulatedDevice};

use crate::world::{Excuses, World};

/// What a run has seen, so that a test can show that it tried something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub hits: u64,
    pub filled: u64,
    pub moved: u64,
    pub evicted: u64,
    pub raced: u64,
    pub wrong: u64,
    pub bailed_out: u64,
    pub warm_frames: u64,
    pub colds: u64,
    pub cuts: u64,
}

impl Seen {
    fn of(world: &World) -> Self {
        let total = world.total;
        Self {
            hits: total.hits,
            filled: total.filled,
            moved: total.moved,
            evicted: total.evicted,
            raced: total.raced,
            wrong: total.medium_wrong,
            bailed_out: total.bailed_out,
            warm_frames: world.warm_frames,
            colds: world.colds.len() as u64,
            cuts: 0,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.filled += other.filled;
        self.moved += other.moved;
        self.evicted += other.evicted;
        self.raced += other.raced;
        self.wrong += other.wrong;
        self.bailed_out += other.bailed_out;
        self.warm_frames += other.warm_frames;
        self.colds += other.colds;
        self.cuts += other.cuts;
    }
}

/// Faults, crashes and changes, in the order that `seed` draws.
pub fn faults(seed: u64, rules: Rules) -> Result<Seen, String> {
    run_faults(seed, rules).map_err(|text| format!("seed {seed}: {text}"))
}

fn run_faults(seed: u64, rules: Rules) -> Result<Seen, String> {
    let mut world = World::new(seed.wrapping_mul(0x9e37_79b9) ^ 0x5eed, rules);
    if seed.is_multiple_of(5) {
        world.proof = ChangeProof::AfterDetach;
    }
    world.attach();
    let mut snapshot = world.medium.contents();
    for _ in 0..8 {
        let steps = 40 + world.random.below(240);
        world.never_flushes = world.random.below(3) == 0;
        world.steps(steps)?;
        if world.random.below(3) == 0 {
            snapshot = world.medium.contents();
        }
        let event = world.random.below(32);
        happen(&mut world, event, &snapshot)?;
    }
    calm(&mut world)?;
    world.verify()?;
    if !world.is_foreign {
        world.check_serves()?;
    }
    world.detach()?;
    world.attach();
    world.verify()?;
    world.crash(true)?;
    world.attach();
    world.verify()?;
    world.crash(false)?;
    Ok(Seen::of(&world))
}

/// Ends all faults of the medium.
fn calm(world: &mut World) -> Result<(), String> {
    for device in [&mut world.backing, &mut world.medium, &mut world.journal] {
        device.faults = MediumFaults::default();
    }
    world.is_slow = false;
    world.return_medium()
}

fn happen(world: &mut World, event: u64, snapshot: &[u8]) -> Result<(), String> {
    match event {
        0 | 1 => {
            world.crash(true)?;
            world.attach();
        }
        2 => {
            world.crash(false)?;
            world.attach();
        }
        3 => {
            // The medium comes back as it was some time ago.
            world.crash(true)?;
            world.medium.replace(snapshot.to_vec());
            world.attach();
        }
        4 | 5 => {
            calm(world)?;
            world.detach()?;
            if event == 5 {
                world.write_elsewhere();
            }
            world.attach();
        }
        6 => {
            world.crash(true)?;
            world.write_elsewhere();
            world.attach();
        }
        7 | 25 | 26 => {
            // Nothing is flushed until the power is cut, but what the cache itself wants flushed.
            world.never_flushes = true;
            for _ in 0..4 {
                world.steps(60)?;
                world.tick(3_000_000_000)?;
            }
            world.crash(true)?;
            world.attach();
        }
        28..=31 => {
            // The cache has what nothing flushed, and lists it, when the power is cut.
            calm(world)?;
            world.flush()?;
            world.never_flushes = true;
            world.spares_witness = true;
            world.steps(400)?;
            world.drain()?;
            world.tick(3_000_000_000)?;
            world.drain()?;
            world.spares_witness = false;
            world.crash(true)?;
            world.attach();
        }
        27 => {
            world.storm()?;
            world.crash(true)?;
            world.attach();
        }
        _ => return fail(world, event),
    }
    Ok(())
}

/// Devices fail while they are used.
fn fail(world: &mut World, event: u64) -> Result<(), String> {
    match event {
        8 | 16 => {
            world.medium.faults.is_gone = true;
            let away = world.random.below(300);
            world.steps(away)?;
            world.drain()?;
            world.return_medium()?;
        }
        9 => {
            let count = 1 + world.random.below(60);
            let mut random = Random(world.random.next_u64());
            world.medium.flip_bits(&mut random, count);
        }
        10 => {
            let count = 1 + world.random.below(60);
            let run = if world.random.below(2) == 0 { 1 } else { 64 };
            let mut random = Random(world.random.next_u64());
            world.medium.return_older(&mut random, count, run);
        }
        11 => world.medium.faults.loses_flushes = true,
        12 => {
            world.medium.faults.is_full = true;
            world.steps(100)?;
            world.medium.faults.is_full = false;
        }
        13 => {
            let bytes = world.medium.contents().len() as u64;
            world.medium.faults.true_bytes = Some(world.random.below(bytes / 512) * 512);
        }
        14 => {
            world.is_slow = true;
            world.steps(150)?;
            world.drain()?;
            world.is_slow = false;
            world.drain()?;
            world.return_medium()?;
        }
        15 => fail_backing(world, MediumFaults { fails_reads: true, ..MediumFaults::default() })?,
        17 => fail_backing(world, MediumFaults { fails_writes: true, ..MediumFaults::default() })?,
        18 => fail_backing(world, MediumFaults { is_full: true, ..MediumFaults::default() })?,
        19 | 20 => fail_journal(world)?,
        21 => {
            let is_write = world.random.below(2) == 0;
            world.medium.faults.fails_writes = is_write;
            world.medium.faults.fails_reads = !is_write;
            world.steps(80)?;
            world.medium.faults = MediumFaults::default();
            world.return_medium()?;
        }
        22 => visit(world)?,
        _ => {
            // It is detached while its medium is away, or in the middle of its recovery.
            world.crash(false)?;
            world.attach();
            world.medium.faults.is_gone = event == 23;
            let steps = world.random.below(20);
            world.steps(steps)?;
            world.is_slow = event == 24 && steps.is_multiple_of(2);
            world.detach()?;
            world.medium.faults.is_gone = false;
            world.attach();
        }
    }
    Ok(())
}

fn fail_backing(world: &mut World, faults: MediumFaults) -> Result<(), String> {
    world.excuses.backing = true;
    world.backing.faults = faults;
    world.steps(30)?;
    world.drain()?;
    world.backing.faults = MediumFaults::default();
    world.excuses.backing = false;
    Ok(())
}

/// The journal fails, for a moment or for long; the daemon ends later.
fn fail_journal(world: &mut World) -> Result<(), String> {
    world.excuses.journal = true;
    world.journal.faults.fails_writes = true;
    world.journal.faults.fails_revokes = world.random.below(2) == 0;
    let steps = world.random.below(60);
    world.steps(steps)?;
    world.journal.faults = MediumFaults::default();
    world.steps(60)?;
    if world.random.below(2) == 0 {
        world.verify()?;
    }
    let is_power_cut = world.random.below(2) == 0;
    world.crash(is_power_cut)?;
    world.excuses = Excuses::default();
    world.attach();
    Ok(())
}

/// Another medium is at the place of the cache's for some time. Nothing of it may change.
fn visit(world: &mut World) -> Result<(), String> {
    let mut content = vec![0; world.medium.contents().len()];
    Random(world.random.next_u64()).fill(&mut content);
    let mut stranger = SimulatedDevice::new(content.len(), false);
    stranger.replace(content.clone());
    let own = world.swap_medium(stranger);
    world.return_medium()?;
    world.steps(120)?;
    if world.medium.contents() != content {
        return Err("a stranger's medium was written".to_owned());
    }
    world.swap_medium(own);
    world.is_foreign = false;
    world.return_medium()
}

/// The first wrong byte that a broken rule gives, within so many seeds.
pub fn find(rules: Rules, seeds: u64) -> Option<String> {
    let is_wrong = |text: &String| {
        ["is version", "is stale", "lost a write", "was written"]
            .iter()
            .any(|what| text.contains(what))
    };
    (0..seeds).find_map(|seed| faults(seed, rules).err().filter(is_wrong))
}

/// How many writes and flushes a scenario without faults does, and what it has seen.
pub fn count(seed: u64, rules: Rules) -> Result<u64, String> {
    let mut world = World::new(seed, rules);
    world.is_sound = true;
    world.attach();
    live(&mut world).map_err(|text| format!("scenario {seed}: {text}"))?;
    Ok(world.done)
}

fn live(world: &mut World) -> Result<(), String> {
    world.steps(420)?;
    if !world.is_cut {
        world.drain()?;
    }
    if !world.is_cut {
        world.detach()?;
    }
    Ok(())
}

/// A second life, after a crash or a change elsewhere, whose start is cut at one of its writes.
pub fn cut_again(seed: u64, at: u64) -> Result<Seen, String> {
    run_cut_again(seed, at).map_err(|text| format!("scenario {seed}, cut again at {at}: {text}"))
}

fn run_cut_again(seed: u64, at: u64) -> Result<Seen, String> {
    let mut world = World::new(seed, Rules::KEPT);
    world.is_sound = true;
    world.attach();
    world.steps(300)?;
    world.crash(seed.is_multiple_of(2))?;
    if !seed.is_multiple_of(3) {
        world.write_elsewhere();
    }
    for round in 0..=seed % 2 {
        world.attach();
        world.cut_at = Some(world.done + at + round);
        world.steps(160)?;
        world.crash(true)?;
    }
    world.attach();
    world.verify()?;
    world.check_serves()?;
    world.steps(60)?;
    world.verify()?;
    world.crash(true)?;
    world.attach();
    world.verify()?;
    world.crash(false)?;
    Ok(Seen { cuts: 1, ..Seen::of(&world) })
}

/// The same scenario with the power cut at one of these.
pub fn cut(seed: u64, at: u64, rules: Rules) -> Result<Seen, String> {
    run_cut(seed, at, rules).map_err(|text| format!("scenario {seed}, cut at {at}: {text}"))
}

fn run_cut(seed: u64, at: u64, rules: Rules) -> Result<Seen, String> {
    let mut world = World::new(seed, rules);
    world.is_sound = true;
    world.cut_at = Some(at);
    world.attach();
    live(&mut world)?;
    if world.engine.is_some() {
        world.crash(true)?;
    }
    world.attach();
    world.verify()?;
    world.check_serves()?;
    world.steps(60)?;
    world.verify()?;
    world.crash(false)?;
    Ok(Seen { cuts: 1, ..Seen::of(&world) })
}
