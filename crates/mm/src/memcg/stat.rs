//! `memory.stat` and `memory.events` of a group.
//!
//! Rule: what a group's tasks and pages do counts in the group; its files show the sum over it and all groups below it.
//! Source: `memory_stats[]`, `memcg_vm_event_stat[]`, `memory_events_show()` (mm/memcontrol.c); 6.1.

use units::MemcgId;

use super::Memcgs;
use crate::stat::{VmEvent, items};
use crate::{Effect, Env, LruList, LruvecId, Mm};

items!(
    /// Lines of `memory.events`; the last three those of `memory.swap.events`.
    MemcgEvent {
        Low = "low",
        High = "high",
        Max = "max",
        Oom = "oom",
        OomKill = "oom_kill",
        SwapHigh = "swap_high",
        SwapMax = "swap_max",
        SwapFail = "swap_fail",
    }
);
items!(
    /// Counters of `memory.stat`.
    MemcgStat {
        RefaultAnon = "workingset_refault_anon",
        RefaultFile = "workingset_refault_file",
        ActivateAnon = "workingset_activate_anon",
        ActivateFile = "workingset_activate_file",
        RestoreAnon = "workingset_restore_anon",
        RestoreFile = "workingset_restore_file",
        Pgscan = "pgscan",
        Pgsteal = "pgsteal",
        PgscanKswapd = "pgscan_kswapd",
        PgscanDirect = "pgscan_direct",
        PgstealKswapd = "pgsteal_kswapd",
        PgstealDirect = "pgsteal_direct",
        Pgfault = "pgfault",
        Pgmajfault = "pgmajfault",
    }
);

/// What a refault comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refault {
    Refaulted,
    Activated,
    Restored,
}

impl Memcgs {
    /// A counter of a group and those below it.
    pub fn stat(&self, memcg: MemcgId, item: MemcgStat) -> u64 {
        self.subtree(memcg).iter().map(|(id, _)| self[*id].stat[item as usize]).sum()
    }

    /// Counts in a group.
    #[inline]
    pub(crate) fn count_stat(&mut self, memcg: MemcgId, item: MemcgStat, n: u64) {
        self[memcg].stat[item as usize] += n;
    }

    /// How often something happened in a group or below it.
    pub fn event(&self, memcg: MemcgId, event: MemcgEvent) -> u64 {
        self[memcg].events[event as usize]
    }
}

impl Mm {
    /// Pages of a group and those below it on a list, over all nodes.
    pub fn memcg_list_pages(&self, memcg: MemcgId, list: LruList) -> u64 {
        self.nodes.iter().map(|node| self.lru_size_below(self.lruvec_of_memcg(node.id, memcg), list)).sum()
    }

    /// Something happens in a group, which those above it see too (`memcg_memory_event()`).
    pub(crate) fn memcg_event(&mut self, memcg: MemcgId, event: MemcgEvent) {
        self.effects.push(Effect::MemcgEvent(memcg));
        let mut at = Some(memcg);
        while let Some(id) = at {
            self.memcg[id].events[event as usize] += 1;
            at = self.memcg[id].parent;
        }
    }

    /// Counts refaults of pages of a group.
    pub(crate) fn memcg_note_refault(&mut self, lru: LruvecId, file: bool, what: Refault, pages: u64) {
        use MemcgStat::{ActivateAnon, ActivateFile, RefaultAnon, RefaultFile, RestoreAnon, RestoreFile};
        let item = match (what, file) {
            (Refault::Refaulted, false) => RefaultAnon,
            (Refault::Refaulted, true) => RefaultFile,
            (Refault::Activated, false) => ActivateAnon,
            (Refault::Activated, true) => ActivateFile,
            (Refault::Restored, false) => RestoreAnon,
            (Refault::Restored, true) => RestoreFile,
        };
        self.memcg.count_stat(self.memcg_of(lru), item, pages);
    }

    /// Counts a fault that reads from a device, for the system and for the group of the task that has it.
    pub(crate) fn count_major_fault(&mut self, env: &Env) {
        self.stat.count(VmEvent::Pgmajfault, 1);
        self.memcg.count_stat(env.task.memcg, MemcgStat::Pgmajfault, 1);
    }

    /// Counts pages that reclaim looked at and freed in a group.
    #[inline]
    pub(crate) fn memcg_note_scan(&mut self, memcg: MemcgId, kswapd: bool, scanned: u64, reclaimed: u64) {
        use MemcgStat::{Pgscan, PgscanDirect, PgscanKswapd, Pgsteal, PgstealDirect, PgstealKswapd};
        let [scan, steal] = if kswapd { [PgscanKswapd, PgstealKswapd] } else { [PgscanDirect, PgstealDirect] };
        for (item, n) in [(Pgscan, scanned), (scan, scanned), (Pgsteal, reclaimed), (steal, reclaimed)] {
            self.memcg.count_stat(memcg, item, n);
        }
    }
}
