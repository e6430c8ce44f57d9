//! Whom reclaim's pressure on a group wakes.
//!
//! Rule ([`VmPressure`]): who is through with a pass over a node counts the list entries that it looked at for the group at which
//! the pass began; once there are 512, a worker of the reclaimer's CPU is woken, which begins to count anew and tells
//! who wants to know. It has little to do, but it takes the CPU: a reclaimer gives way at its next chance, after the
//! shrinkers of the root group, and when it goes on, others may have ended the walk over the groups that they
//! share, so that this pass has met no pages and is the last.
//! Source: `vmpressure()`, `vmpressure_work_fn()`, `vmpressure_win`, mm/vmpressure.c; `shrink_zone()`, mm/vmscan.c (3.19), `shrink_node()` (5.0;
//! 6.1). In a traced guest of 5.0 with three tasks that fault huge pages, 148 of 214 times that one of them left the CPU
//! while it reclaimed were within 5 us of the root group's last shrinker, and 111 of these ended the reclaim. In one of 6.1 (wbstrm) the
//! work was queued 490 times; half of the times it took the CPU from who reclaimed at once, and 276 times another than that one ran after it.
//! Omitted: listeners; `vmpressure_prio()`, which wakes the worker at priorities below 4; what network buffers ask for.

use rules::VmPressure;
use units::{CpuId, Gfp, MemcgId};

use super::SWAP_CLUSTER_MAX;
use crate::{Effect, Env, Mm};

/// List entries after which the worker is woken (`vmpressure_win`).
const WINDOW: u64 = 16 * SWAP_CLUSTER_MAX as u64;
/// Reclaim for requests with none of these is not what listeners can help with.
const COUNTED: Gfp = Gfp::MOVABLE.with(Gfp::IO).with(Gfp::FS);

/// Pressure on a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pressure {
    /// List entries looked at since the worker last ran for it.
    scanned: u64,
    /// The CPU whose worker is to run for it.
    pending: Option<CpuId>,
}

impl Mm {
    /// Counts what a pass over a node has looked at.
    pub(super) fn vmpressure(&mut self, env: &Env, memcg: MemcgId, gfp: Gfp, scanned: u64) {
        if self.rules.vm_pressure == VmPressure::NotBuilt || scanned == 0 || !gfp.intersects(COUNTED) {
            return;
        }
        let groups = &mut self.reclaim.pressure;
        let at = usize::from(memcg.0);
        if at >= groups.len() {
            groups.resize(at + 1, Pressure::default());
        }
        let group = &mut groups[at];
        group.scanned += scanned;
        if group.scanned >= WINDOW && group.pending.is_none() {
            group.pending = Some(env.cpu);
            self.effects.push(Effect::WakePressure(env.cpu));
        }
    }

    /// Whether the worker of a CPU has something to do.
    pub fn vmpressure_waits(&self, cpu: CpuId) -> bool {
        self.reclaim.pressure.iter().any(|group| group.pending == Some(cpu))
    }

    /// What the worker of a CPU does (`vmpressure_work_fn()`).
    pub fn vmpressure_work(&mut self, cpu: CpuId) {
        for group in self.reclaim.pressure.iter_mut().filter(|group| group.pending == Some(cpu)) {
            *group = Pressure::default();
        }
        self.charge_small_work();
    }

    /// Charges a worker that has next to nothing to do.
    pub fn charge_small_work(&mut self) {
        self.charge(self.costs.small_work);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Machine, env, rules_4_20};
    use super::*;
    use crate::memcg::ROOT;

    #[test]
    fn the_worker_is_woken_once_512_entries_were_looked_at() {
        let mut m = Machine::new(rules_4_20());
        let direct = env(false);
        let wake = [Effect::WakePressure(direct.cpu)];
        let count = |m: &mut Machine, memcg: MemcgId, scanned: u64| {
            m.mm.vmpressure(&direct, memcg, Gfp::KERNEL, scanned);
            m.effects()
        };
        assert_eq!(count(&mut m, ROOT, 511), []);
        assert_eq!(count(&mut m, MemcgId(1), 511), [], "each group for itself");
        assert_eq!(count(&mut m, ROOT, 1), wake);
        assert_eq!(count(&mut m, ROOT, 600), [], "it is on its way");
        assert!(m.mm.vmpressure_waits(direct.cpu));
        m.mm.vmpressure_work(direct.cpu);
        assert!(!m.mm.vmpressure_waits(direct.cpu));
        assert_eq!(count(&mut m, ROOT, 511), [], "it counts anew");
        assert_eq!(count(&mut m, MemcgId(1), 1), wake, "the other group was not meant");
    }

    #[test]
    fn what_listeners_cannot_help_with_and_kernels_before_3_10_do_not_count() {
        let mut m = Machine::new(rules_4_20());
        m.mm.vmpressure(&env(false), ROOT, Gfp::NOWAIT, 10_000);
        assert_eq!(m.effects(), []);
        m.mm.rules.vm_pressure = VmPressure::NotBuilt;
        m.mm.vmpressure(&env(false), ROOT, Gfp::KERNEL, 10_000);
        assert_eq!(m.effects(), []);
    }
}
