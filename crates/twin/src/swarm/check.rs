//! Runs a case and checks the machine on the way and at the end.

use std::sync::Arc;

use blockdev::Fault;
use mm::stat::{NodeStat, ZoneStat};
use mm::{Kind, Mm};
use observe::Counters;
use sim::{RunEnd, Sim};
use units::{Nanos, Pfn};

use super::case::{Case, FaultCase};
use super::{machine, program};
use crate::run::{boot, outcome, start_workload, too_long, verify};
use crate::snapshot::snapshot;
use crate::standstill::{STANDS_AFTER, stands_still};
use crate::world::World;

/// No case takes this long, unless something is stuck.
const LIMIT: Nanos = Nanos::secs(12 * 3600);
/// Length of the first step between two looks at all invariants.
const FIRST_STEP: Nanos = Nanos::millis(1);
/// Frames that may be looked at in all looks of one case.
const LOOKS_FRAMES: u64 = 24_000_000;

/// What a run came to.
#[derive(PartialEq, Debug)]
pub(super) struct Ran {
    /// The counters of `/proc/vmstat`.
    pub(super) vmstat: Counters,
    /// Everything else that can be told.
    rest: String,
}

/// Runs the case, twice if asked to, and compares.
pub(super) fn run(case: &Case, twice: bool) -> Result<Ran, String> {
    let first = run_once(case)?;
    if twice && run_once(case)? != first {
        return Err("two runs of the case differ".to_string());
    }
    Ok(first)
}

fn run_once(case: &Case) -> Result<Ran, String> {
    let spec = machine::spec(case);
    let mut sim = boot(&spec).map_err(|error| error.to_string())?;
    let before = snapshot(&sim.world().mm, &spec.kernel, sim.now());
    let shared = Arc::new(case.clone());
    start_workload(&mut sim, |sys| program::run(sys, shared));
    let looks = LOOKS_FRAMES / case.machine.pages();
    let growth = 1.0 + 40.0 / looks as f64;
    let (mut step, mut deadline) = (FIRST_STEP, FIRST_STEP);
    loop {
        inject(&mut sim, case, deadline);
        let end = sim.run_until(deadline).map_err(|deadlock| deadlock.to_string())?;
        verify(&sim, &spec).map_err(|error| error.to_string())?;
        if end != RunEnd::Deadline {
            break;
        }
        if deadline > LIMIT || stands_still(&mut sim, STANDS_AFTER) {
            return Err(too_long(&mut sim).to_string());
        }
        step = Nanos((step.0 as f64 * growth) as u64);
        deadline += step;
    }
    if sim.world().log.failure.is_none() {
        check_settled(&sim)?;
    }
    let mut outcome = outcome(sim, before, &spec);
    let vmstat = outcome.after.vmstat.take().expect("a snapshot has it");
    let rest = format!("{:?} {:?} {:?} {:?}", outcome.virtual_time, outcome.cpu_times, outcome.after, outcome.log);
    Ok(Ran { vmstat, rest })
}

/// Injects what is due before `deadline` and was not at the one before.
fn inject(sim: &mut Sim<World>, case: &Case, deadline: Nanos) {
    let now = sim.now();
    let due = |fault: &&FaultCase| (now..deadline).contains(&Nanos::millis(fault.at_ms));
    for fault in case.faults.iter().filter(due) {
        let disk = u16::from(fault.swap && case.machine.swap.is_some());
        let what = match fault.requests {
            0 => Fault::Stall { duration: Nanos::millis(200) },
            requests => Fault::Eio { requests },
        };
        sim.with_world(|world, ctl| world.devices.inject_fault(ctl, disk, what));
    }
}

/// After everything has ended, been removed and settled, nothing is left but caches.
fn check_settled(sim: &Sim<World>) -> Result<(), String> {
    let mm = &sim.world().mm;
    let mut left = Vec::new();
    let mut expect_none = |what: &str, count: u64| {
        if count > 0 {
            left.push(format!("{count} {what}"));
        }
    };
    expect_none("address spaces", mm.spaces.live().count() as u64);
    expect_none("open files", mm.vfs.open_files());
    expect_none("pipes", mm.pipes.len() as u64);
    expect_none("slots of swap", mm.swap.total_pages() - mm.swap.free_pages());
    // Metadata in the page cache of a device is a cache like any other.
    let metadata = mm.blockdev_pages();
    expect_none(NodeStat::FilePages.name(), mm.stat.node_sum(NodeStat::FilePages) - metadata);
    // Without the periodic flush it may stay dirty, too.
    let unflushed = if mm.tunables.dirty_writeback_centisecs == 0 { metadata } else { 0 };
    let dirty = mm.stat.node_sum(NodeStat::FileDirty);
    expect_none(NodeStat::FileDirty.name(), dirty.saturating_sub(unflushed));
    for item in [NodeStat::AnonMapped, NodeStat::AnonThps, NodeStat::Writeback] {
        expect_none(item.name(), mm.stat.node_sum(item));
    }
    expect_none("pages of page tables", mm.stat.zone_sum(ZoneStat::PageTablePages));
    expect_none("frames of kind File", frames_of(mm, Kind::File) - metadata);
    for kind in [Kind::Held, Kind::Anon, Kind::PageTable] {
        expect_none(&format!("frames of kind {kind:?}"), frames_of(mm, kind));
    }
    for device in 0..sim.world().devices.list.len() as u16 {
        expect_none("writes in flight", u64::from(sim.world().devices.writes_in_flight(device)));
    }
    if left.is_empty() { Ok(()) } else { Err(format!("left behind: {}", left.join(", "))) }
}

fn frames_of(mm: &Mm, kind: Kind) -> u64 {
    let frames = (0..mm.frames.len() as u32).map(|n| &mm.frames[Pfn(n)]);
    frames.filter(|frame| frame.kind() == kind).map(|frame| u64::from(frame.nr_pages())).sum()
}
