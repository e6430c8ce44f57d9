//! A scheduler in a state of one's own.

use super::{CpuGroup, Leave, SchedParams, Scheduler};
use crate::{CpuSet, CpuTopology};
use units::{CpuId, Nanos, NodeId};

pub(super) const CPU: CpuId = CpuId(0);
pub(super) const MS: i64 = 1_000_000;

/// One CPU, and tasks that have had so much and want nothing yet; those from `grouped` on are in a group.
pub(super) fn scheduler(params: SchedParams, had: &[i64], grouped: usize) -> Scheduler {
    let topology = CpuTopology::new(vec![NodeId(0)]);
    let all = CpuSet::all(&topology);
    let mut scheduler = Scheduler::new(topology, params);
    for (task, vruntime) in had.iter().enumerate() {
        scheduler.add(0, (task >= grouped).then_some(CpuGroup(0)), all);
        let entity = &mut scheduler.tasks[task].entity;
        (entity.vruntime, entity.started) = (*vruntime, true);
    }
    scheduler
}

/// The task that has the CPU runs for so long.
pub(super) fn run(scheduler: &mut Scheduler, now: &mut Nanos, time: Nanos, leave: Leave) {
    scheduler.set_slice(CPU, time, false);
    *now += time;
    scheduler.end_slice(CPU, leave);
}
