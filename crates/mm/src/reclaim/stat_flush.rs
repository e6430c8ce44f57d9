//! Adding the memory cgroups' statistics up where enough has changed.
//!
//! Rule: each change of a group's statistics counts as so many updates as pages. A CPU that has gathered more than 64 of them adds a batch to the
//! common count; a pass of reclaim that finds more batches than there are CPUs adds everything up before it looks at the lists, and the count
//! begins anew when that has ended. One does so at a time: whoever comes meanwhile goes on with what was known before.
//! Adding up takes time, so that of reclaimers that begin together, one sees that pages have refaulted since the last passes ended; the
//! others see nothing new, deactivate nothing, and trim page cache first while there is enough of it.
//! Source: `memcg_rstat_updated()`, `mem_cgroup_flush_stats()`, `__mem_cgroup_flush_stats()`, `mem_cgroup_css_rstat_flush()`
//! (mm/memcontrol.c), `shrink_node()` (mm/vmscan.c), 5.19.
//! Since/until: [`LruStatistics::ByThreshold`]; refaults flush too until 9b3016154c91 (5.18); in 6.12 a pass flushes only if the
//! worker is late (lru_stats.rs).
//! Abstracted: updates follow from what reclaim counts; CPUs gather alike; what comes between the end of a flush and the next
//! pass does not count, either; a flush under way knows nothing for
//! others until its end.

use rules::LruStatistics;
use units::{CpuId, Nanos};

use super::lru_stats::LruStats;
use crate::stat::VmEvent;
use crate::{LruvecId, Mm};

/// Updates that a CPU gathers before they join the common count: one more than `MEMCG_CHARGE_BATCH`.
const BATCH: u64 = 65;
/// Updates of a page between its coming and its being reclaimed: the page itself, its list and its charge, each twice; a refault and its
/// activation; the page as reclaimed.
const RECLAIMED: u64 = 9;
/// Of a page that is scanned: it leaves its list, or is put back, and counts as scanned.
const SCANNED: u64 = 2;
/// Of one that is deactivated: it changes lists, and counts as looked at and as deactivated.
const DEACTIVATED: u64 = 4;

/// Flushes of the statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StatFlush {
    /// Updates when the last one had ended.
    updates_before: u64,
    under_way: Option<UnderWay>,
}

/// One that takes its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct UnderWay {
    /// The CPU that adds up, with interrupts off.
    cpu: CpuId,
    /// When it is over, in ns.
    until: u64,
}

impl Mm {
    /// What a pass knows of these lists as it begins.
    pub(super) fn lru_stats_of_pass(&mut self, lru: LruvecId) -> LruStats {
        if self.rules.lru_statistics == LruStatistics::ByThreshold && self.begin_stat_flush() {
            return self.live_lru_stats(lru);
        }
        self.lru_stats(lru)
    }

    /// Flushes if there is enough to add up and nobody does so; whether it did.
    fn begin_stat_flush(&mut self) -> bool {
        self.end_stat_flush();
        let (updates, nr_cpus) = (self.memcg_updates(), self.pcps.nr_cpus() as u64);
        let flush = self.reclaim.stat_flush;
        if flush.under_way.is_some() || updates - flush.updates_before < BATCH * (nr_cpus + 1) {
            return false;
        }
        let takes = self.costs.rstat_flush * nr_cpus * self.memcg.ids().count() as u64;
        self.charge(takes);
        let under_way = UnderWay { cpu: self.caller_cpu(), until: self.called_at() + takes };
        self.reclaim.stat_flush = StatFlush { under_way: Some(under_way), ..flush };
        true
    }

    /// How long one of these CPUs still adds up, in ns.
    pub(crate) fn stat_flush_left(&self, now: Nanos, cpus: &[CpuId]) -> u64 {
        let flush = self.reclaim.stat_flush.under_way.filter(|flush| cpus.contains(&flush.cpu));
        flush.map_or(0, |flush| flush.until.saturating_sub(now.0))
    }

    /// What a flush has added up is known to all once it is over.
    pub(super) fn end_stat_flush(&mut self) {
        if self.reclaim.stat_flush.under_way.is_some_and(|flush| flush.until <= self.called_at()) {
            self.reclaim.stat_flush = StatFlush { updates_before: self.memcg_updates(), under_way: None };
            self.flush_lru_stats();
        }
    }

    fn memcg_updates(&self) -> u64 {
        let sum = |events: [VmEvent; 2]| events.map(|event| self.stat.event(event)).iter().sum::<u64>();
        RECLAIMED * sum([VmEvent::PgstealAnon, VmEvent::PgstealFile])
            + SCANNED * sum([VmEvent::PgscanAnon, VmEvent::PgscanFile])
            + DEACTIVATED * self.stat.event(VmEvent::Pgrefill)
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::super::fixture::{LRU, Machine};
    use super::*;
    use crate::{Env, Kind};

    /// A machine whose statistics are of the time before its two pages, and what one flush takes.
    fn machine() -> (Machine, u64) {
        let mut m = Machine::new(Rules { lru_statistics: LruStatistics::ByThreshold, ..Rules::newest() });
        m.mm.flush_lru_stats();
        m.add("a b", Kind::File, 0);
        let takes = m.mm.costs.rstat_flush * m.mm.pcps.nr_cpus() as u64;
        (m, takes)
    }

    /// Pages that a pass knows of, which begins at this time.
    fn known(m: &mut Machine, now: u64) -> u64 {
        m.env.now = Nanos(now);
        m.mm.called_by(&m.env);
        m.mm.lru_stats_of_pass(LRU).total()
    }

    #[test]
    fn a_pass_flushes_once_there_are_more_batches_than_cpus() {
        let (mut m, takes) = machine();
        // Four updates for each page that is deactivated; a batch of 65 for each CPU and one more.
        let batches = 65 * (m.mm.pcps.nr_cpus() as u64 + 1);
        m.mm.stat.count(VmEvent::Pgrefill, (batches - 1) / 4);
        assert_eq!(known(&mut m, 0), 0, "just as many as are allowed");
        m.mm.stat.count(VmEvent::Pgrefill, 1);
        let before = m.mm.cpu_ns();
        assert_eq!(known(&mut m, 0), 2);
        assert_eq!(m.mm.cpu_ns() - before, takes, "one group, root's");
    }

    #[test]
    fn whoever_comes_during_a_flush_goes_by_the_one_before() {
        let (mut m, takes) = machine();
        m.mm.stat.count(VmEvent::PgstealFile, 1_000_000);
        assert_eq!(known(&mut m, 5), 2);
        m.mm.stat.count(VmEvent::PgstealFile, 1_000_000);
        assert_eq!([known(&mut m, 5), known(&mut m, 4 + takes)], [0, 0]);
        m.add("c", Kind::File, 0);
        m.mm.called_by(&Env { now: Nanos(5 + takes), ..m.env });
        m.mm.end_stat_flush();
        assert_eq!(m.mm.lru_stats(LRU).total(), 3, "known to all at its end");
        assert_eq!(m.mm.reclaim.stat_flush.updates_before, m.mm.memcg_updates(), "the count begins anew");
    }

    #[test]
    fn the_cpu_that_flushes_is_busy_to_its_end() {
        let (mut m, takes) = machine();
        m.mm.stat.count(VmEvent::PgstealFile, 1_000_000);
        known(&mut m, 5);
        let (flusher, other) = (m.env.cpu, CpuId(m.env.cpu.0 + 1));
        let left = |cpus: &[CpuId], now: u64| m.mm.stat_flush_left(Nanos(now), cpus);
        assert_eq!([left(&[other, flusher], 5), left(&[other], 5)], [takes, 0]);
        assert_eq!([left(&[flusher], 4 + takes), left(&[flusher], 6 + takes)], [1, 0]);
    }
}
