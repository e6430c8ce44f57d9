//! Slab reclaim: how many objects each shrinker is asked to scan.
//!
//! Rule: for each pass over a node, a shrinker is to scan `freeable >> priority`, times four, over its `seeks` (what an
//! object costs to make again; shadow nodes cost nothing since 4.20, and half of them goes). It is called in batches; what does not fill a batch
//! is put off to the next pass. What was put off counts in full, but for no more than half of the cache unless this pass
//! alone asks for a quarter, and twice the cache at most. Put off is what was not scanned of all that was there; where the share
//! of LRU pages decides (4.4), only of what this pass was to scan.
//! Source: `shrink_slab()`, `do_shrink_slab()` (mm/vmscan.c, 4.20; mm/shrinker.c, 6.12).
//! Since/until: [`SlabPressure`]: until 4.15 by the share of LRU pages scanned, until 3.0 without the limit of a half and
//! in whole batches only; [`SlabCaller`](rules::SlabCaller) says who calls; until 3.2 pages that inodes lose are not
//! counted as reclaimed ([`StolenPages`]); in 4.19 to 5.0 at least one batch; since
//! 5.13 what was put off counts only by `nr >> priority`; [`DeferredObjects`]: until then it is put off for all groups together.
//! Abstracted: a shrinker that returns without having looked at anything has stopped (`SHRINK_STOP`); pages freed are
//! those that came back to the allocator during the call (`reclaim_state->reclaimed_slab`); who drops slabs by `drop_caches` does not
//! wait for what XFS writes.
//! Omitted: which shrinkers have objects of a group is found by asking each.

use rules::{DeferredObjects, ShadowNodes, SlabPressure, StolenPages};
use units::{Gfp, MemcgId, NodeId};

use super::ScanControl;
use crate::memcg::ROOT;
use crate::stat::VmEvent;
use crate::trace::{ShrinkSlabEnd, ShrinkSlabStart, TraceEvent};
use crate::vfs::{SHRINKERS, Scanned, Share, ShrinkerId, ShrinkerSpec};
use crate::{Bio, Env, Mm};

/// Objects freed in a round of `drop_slab()` that is not worth another round.
const DROP_SLAB_ENOUGH: u64 = 10;

/// Objects that each shrinker has put off of a share.
pub(super) type Deferred = [u64; SHRINKERS.len()];

/// What one shrinker is to do in a pass, and has done; in objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Job {
    freeable: u64,
    /// Put off by earlier passes.
    deferred: u64,
    /// To scan because of this pass alone.
    delta: u64,
    batch: u64,
    /// Less than a batch is put off even if it is all there is.
    whole_batches: bool,
    /// Still to scan now.
    total_scan: u64,
    /// Put off to the next pass if nothing at all were scanned.
    deferrable: u64,
    scanned: u64,
}

/// What the pass is about, as far as it decides the pressure on slabs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pressure {
    rule: SlabPressure,
    shadow_nodes: ShadowNodes,
    priority: i8,
    /// LRU pages scanned, and those on the lists.
    lru: (u64, u64),
}

/// LRU pages that count as looked at, for a pass that has looked at none.
fn at_least_a_batch(scanned: u64) -> u64 {
    if scanned == 0 { u64::from(super::SWAP_CLUSTER_MAX) } else { scanned }
}

impl Pressure {
    /// Objects to scan because of this pass alone.
    fn delta(self, freeable: u64, shrinker: ShrinkerSpec) -> u64 {
        let shadows = matches!(shrinker.id, ShrinkerId::ShadowNodes | ShrinkerId::SwapShadowNodes);
        if shadows && self.shadow_nodes == ShadowNodes::Eighth {
            return freeable / 2;
        }
        match self.rule {
            SlabPressure::LruScanned | SlabPressure::LruScannedInFull => {
                let (scanned, pages) = self.lru;
                4 * at_least_a_batch(scanned) / shrinker.seeks * freeable / (pages + 1)
            }
            _ => (freeable >> self.priority) * 4 / shrinker.seeks,
        }
    }

    fn job(self, freeable: u64, deferred: u64, shrinker: ShrinkerSpec) -> Job {
        let mut delta = self.delta(freeable, shrinker);
        let batch = shrinker.batch;
        if self.rule == SlabPressure::LruScannedInFull {
            let total_scan = (deferred + delta).min(2 * freeable);
            let deferrable = total_scan;
            return Job { freeable, deferred, delta, batch, whole_batches: true, total_scan, deferrable, scanned: 0 };
        }
        let (total_scan, deferrable) = if self.rule == SlabPressure::PriorityAndDeferred {
            ((deferred >> self.priority) + delta, deferred + delta)
        } else {
            if self.rule == SlabPressure::PriorityAtLeastBatch {
                delta = delta.max(freeable.min(batch));
            }
            let all = deferred + delta;
            (if delta < freeable / 4 { all.min(freeable / 2) } else { all }, all)
        };
        let total_scan = total_scan.min(2 * freeable);
        let deferrable = if self.rule == SlabPressure::LruScanned { total_scan } else { deferrable };
        Job { freeable, deferred, delta, batch, whole_batches: false, total_scan, deferrable, scanned: 0 }
    }
}

impl Job {
    /// Objects to scan in the next call; `None` if the rest is put off.
    fn next_call(&self) -> Option<u64> {
        let all_there_is = !self.whole_batches && self.total_scan >= self.freeable;
        let worth_it = self.total_scan >= self.batch || all_there_is;
        (worth_it && self.total_scan > 0).then_some(self.batch.min(self.total_scan))
    }

    /// What is put off to the next pass.
    fn put_off(&self, rule: SlabPressure) -> u64 {
        let left = self.deferrable.saturating_sub(self.scanned);
        if rule == SlabPressure::PriorityAndDeferred { left.min(2 * self.freeable) } else { left }
    }
}

/// What a pass over the shrinkers does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlabStep {
    /// Goes on.
    More,
    /// Goes on when this has ended, which its caller submits.
    Wait(Bio),
    /// Has called them all.
    Done,
}

/// A pass over the shrinkers of a share, a batch at a time.
#[derive(Debug)]
pub(super) struct SlabPass {
    pressure: Pressure,
    memcg: MemcgId,
    at: usize,
    job: Option<Job>,
    /// Evicted inodes that XFS still has to go over in this call.
    evicted: u64,
    /// Objects freed, by all shrinkers, and before the one whose turn it is.
    freed: u64,
    freed_before: u64,
}

impl SlabPass {
    /// A pass over all objects but those of groups, after `scanned` of `pages` LRU pages were looked at.
    pub(super) fn new(mm: &Mm, sc: &ScanControl, scanned: u64, pages: u64) -> SlabPass {
        SlabPass::of_memcg(mm, sc, ROOT, (scanned, pages))
    }

    /// A pass over the objects of a group, after so many of its LRU pages were looked at, of so many.
    pub(super) fn of_memcg(mm: &Mm, sc: &ScanControl, memcg: MemcgId, lru: (u64, u64)) -> SlabPass {
        let (rule, shadow_nodes) = (mm.rules.slab_pressure, mm.rules.shadow_nodes);
        SlabPass {
            pressure: Pressure { rule, shadow_nodes, priority: sc.priority, lru },
            memcg,
            at: 0,
            job: None,
            evicted: 0,
            freed: 0,
            freed_before: 0,
        }
    }

    /// Objects that the shrinkers have freed so far.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }

    /// Calls a shrinker once, or goes on with a call that had to wait.
    pub(super) fn step(&mut self, mm: &mut Mm, env: &Env, node: NodeId, sc: &mut ScanControl) -> SlabStep {
        if self.evicted > 0 {
            return self.reclaim_evicted(mm, env, sc);
        }
        let share = Share { node, memcg: self.memcg };
        let place = mm.deferred_of(share);
        while let Some(&shrinker) = SHRINKERS.get(self.at) {
            if self.job.is_none() {
                let passed_over = self.memcg != ROOT && !shrinker.by_memcg;
                let freeable = if passed_over { 0 } else { mm.shrinker_count(shrinker.id, share) };
                if freeable == 0 {
                    self.at += 1;
                    continue;
                }
                let put_off = std::mem::take(&mut mm.reclaim.deferred[place][self.at]);
                let job = self.pressure.job(freeable, put_off, shrinker);
                if mm.trace.filter.vmscan {
                    self.trace_start(mm, (shrinker.id, node), &job, sc.gfp);
                }
                self.freed_before = self.freed;
                self.job = Some(job);
            }
            let Some(job) = &mut self.job else { unreachable!("set above") };
            if let Some(nr) = job.next_call()
                && let Some(scanned) = mm.call_shrinker(env, shrinker.id, share, nr, sc)
            {
                self.freed += scanned.freed;
                self.evicted = scanned.evicted;
                job.total_scan -= nr;
                job.scanned += nr;
                return self.reclaim_evicted(mm, env, sc);
            }
            let (job, put_off) = (*job, job.put_off(self.pressure.rule));
            if mm.trace.filter.vmscan {
                self.trace_end(mm, shrinker.id, &job, (mm.reclaim.deferred[place][self.at], put_off), share);
            }
            mm.reclaim.deferred[place][self.at] += put_off;
            self.job = None;
            self.at += 1;
        }
        if self.memcg == ROOT {
            mm.charge(mm.costs.reclaim_pass);
        }
        SlabStep::Done
    }

    /// Has XFS go on with evicted inodes. What that frees counts as reclaimed, and not as freed by the shrinker.
    fn reclaim_evicted(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> SlabStep {
        let freed_before = mm.stat.event(VmEvent::Pgfree);
        let wait = mm.reclaim_evicted(env, &mut self.evicted);
        sc.nr_reclaimed += mm.stat.event(VmEvent::Pgfree) - freed_before;
        wait.map_or(SlabStep::More, SlabStep::Wait)
    }

    #[cold]
    fn trace_start(&self, mm: &mut Mm, (shrinker, node): (ShrinkerId, NodeId), job: &Job, gfp: Gfp) {
        let Pressure { priority, lru: (scanned, pages), .. } = self.pressure;
        mm.trace.emit(TraceEvent::ShrinkSlabStart(ShrinkSlabStart {
            shrinker,
            node,
            gfp,
            deferred: job.deferred,
            lru: (at_least_a_batch(scanned), pages),
            freeable: job.freeable,
            delta: job.delta,
            total_scan: job.total_scan,
            priority,
        }));
    }

    #[cold]
    fn trace_end(
        &self,
        mm: &mut Mm,
        shrinker: ShrinkerId,
        job: &Job,
        (deferred_since, put_off): (u64, u64),
        share: Share,
    ) {
        // A pass that still has a call to make was refused it.
        let left = match (job.next_call(), job.scanned) {
            (Some(_), _) => -1,
            (None, 0) => 0,
            (None, _) => mm.shrinker_count(shrinker, share) as i64,
        };
        mm.trace.emit(TraceEvent::ShrinkSlabEnd(ShrinkSlabEnd {
            shrinker,
            node: share.node,
            freed: self.freed - self.freed_before,
            left,
            deferred: job.deferred,
            deferred_since,
            put_off,
            total_scan: job.total_scan,
        }));
    }
}

impl Mm {
    /// Place of what was put off of a share, which is made if it is missing.
    fn deferred_of(&mut self, share: Share) -> usize {
        let at = match self.rules.deferred_objects {
            DeferredObjects::Node => Share { memcg: ROOT, ..share }.index(self.nodes.len()),
            DeferredObjects::Memcg => share.index(self.nodes.len()),
        };
        let deferred = &mut self.reclaim.deferred;
        if at >= deferred.len() {
            deferred.resize(at + 1, Deferred::default());
        }
        at
    }

    /// Has a shrinker scan `nr` objects; says what came of it, unless it refuses.
    fn call_shrinker(
        &mut self,
        env: &Env,
        id: ShrinkerId,
        share: Share,
        nr: u64,
        sc: &mut ScanControl,
    ) -> Option<Scanned> {
        let freed_before = self.freed_for_reclaim();
        let result = self.shrinker_scan(env, id, share, nr, sc.gfp);
        if result.scanned == 0 && result.freed == 0 {
            return None;
        }
        sc.nr_reclaimed += self.freed_for_reclaim() - freed_before;
        self.stat.count(VmEvent::SlabsScanned, nr);
        Some(result)
    }

    /// Pages freed so far that count as reclaimed when a shrinker frees them.
    fn freed_for_reclaim(&self) -> u64 {
        let stolen = match self.rules.stolen_pages {
            StolenPages::Reclaimed => 0,
            StolenPages::Uncounted => {
                self.stat.event(VmEvent::KswapdInodesteal) + self.stat.event(VmEvent::Pginodesteal)
            }
        };
        self.stat.event(VmEvent::Pgfree) - stolen
    }

    /// Frees what all shrinkers can free, for `drop_caches`: rounds are repeated while one frees more than ten objects.
    /// Returns the objects freed (`drop_slab()`).
    pub fn drop_slab(&mut self, env: &Env) -> u64 {
        let mut all = 0;
        loop {
            let freed = self.drop_slab_once(env);
            all += freed;
            if freed <= DROP_SLAB_ENOUGH {
                break;
            }
        }
        self.drop_journal_heads(env);
        self.stat.count(VmEvent::DropSlab, 1);
        all
    }

    fn drop_slab_once(&mut self, env: &Env) -> u64 {
        let mut freed = 0;
        let nodes = (0..self.nodes.len()).map(|n| NodeId(n as u8));
        let memcgs: Vec<MemcgId> = self.memcg.ids().collect();
        for share in nodes.flat_map(|node| memcgs.iter().map(move |&memcg| Share { node, memcg })) {
            for shrinker in SHRINKERS.iter().filter(|shrinker| shrinker.by_memcg || share.memcg == ROOT) {
                let count = self.shrinker_count(shrinker.id, share);
                if count > 0 {
                    let mut scanned = self.shrinker_scan(env, shrinker.id, share, count, Gfp::KERNEL);
                    while let Some(bio) = self.reclaim_evicted(env, &mut scanned.evicted) {
                        self.submit(env, bio);
                    }
                    freed += scanned.freed;
                }
            }
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use rules::{InodeReclaim, Rules, VfsShrinkers};
    use units::{Bytes, Order};

    use super::*;
    use crate::AllocRequest;
    use crate::slab::tests::{machine, on, rules_4_20};
    use crate::vfs::FsSpec;

    const SUPERBLOCK: ShrinkerSpec = SHRINKERS[2];

    fn pressure(rule: SlabPressure, priority: i8) -> Pressure {
        Pressure { rule, shadow_nodes: ShadowNodes::Eighth, priority, lru: (0, 0) }
    }

    #[test]
    fn a_shrinker_scans_by_priority_and_seeks() {
        // 1 Mi objects at priority 12: 256 x 4 / 2 seeks = 512.
        let job = pressure(SlabPressure::Priority, 12).job(1 << 20, 0, SUPERBLOCK);
        assert_eq!(job.total_scan, 512);
        assert_eq!(job.next_call(), None, "less than a batch of 1024 is put off");
        assert_eq!(job.put_off(SlabPressure::Priority), 512);
        let job = pressure(SlabPressure::Priority, 12).job(1 << 20, 512, SUPERBLOCK);
        assert_eq!(job.next_call(), Some(1024));
    }

    #[test]
    fn nodes_of_shadows_cost_nothing_since_4_20() {
        let free = pressure(SlabPressure::Priority, 12);
        let at_seeks = Pressure { shadow_nodes: ShadowNodes::EighthAtSeeks, ..free };
        for id in [ShrinkerId::ShadowNodes, ShrinkerId::SwapShadowNodes] {
            let nodes = SHRINKERS.into_iter().find(|shrinker| shrinker.id == id).unwrap();
            // Half of 1 Mi; by priority and seeks as above.
            assert_eq!([free, at_seeks].map(|pressure| pressure.delta(1 << 20, nodes)), [1 << 19, 512]);
        }
    }

    #[test]
    fn from_4_19_to_5_0_at_least_a_batch_is_scanned() {
        let job = pressure(SlabPressure::PriorityAtLeastBatch, 12).job(2_000, 0, SUPERBLOCK);
        // freeable >> 12 is 0, raised to 1024, and not capped because 1024 >= 2000 / 4.
        assert_eq!((job.total_scan, job.next_call()), (1024, Some(1024)));
        let job = pressure(SlabPressure::PriorityAtLeastBatch, 12).job(10, 0, SUPERBLOCK);
        assert_eq!(job.next_call(), Some(10), "a small cache goes at once");
        let job = pressure(SlabPressure::Priority, 12).job(10, 0, SUPERBLOCK);
        assert_eq!(job.next_call(), None);
    }

    #[test]
    fn a_backlog_empties_no_more_than_half_of_a_cache() {
        let job = pressure(SlabPressure::Priority, 12).job(10_000, 1_000_000, SUPERBLOCK);
        // 10 000 >> 12 = 2, x 4 / 2 = 4 < 2 500: capped at half.
        assert_eq!(job.total_scan, 5_000);
        let job = pressure(SlabPressure::PriorityAndDeferred, 12).job(10_000, 1_000_000, SUPERBLOCK);
        // 1 000 000 >> 12 = 244, plus 4.
        assert_eq!(job.total_scan, 248);
        assert_eq!(job.put_off(SlabPressure::PriorityAndDeferred), 20_000, "twice the cache at most");
    }

    #[test]
    fn until_3_0_what_was_put_off_counts_in_full_and_batches_are_whole() {
        let by_lru = Pressure { lru: (1_000, 99_999), ..pressure(SlabPressure::LruScannedInFull, 12) };
        // 1000 as below, and 30 000 put off: no more than twice 50 000.
        assert_eq!(by_lru.job(50_000, 30_000, SUPERBLOCK).total_scan, 31_000);
        assert_eq!(by_lru.job(50_000, 1_000_000, SUPERBLOCK).total_scan, 100_000);
        // 4 x 1000 / 2 x 200 / 100 000 = 4 and 400 put off, all there is twice, but no whole batch of 1024.
        let job = by_lru.job(200, 400, SUPERBLOCK);
        assert_eq!((job.total_scan, job.next_call(), job.put_off(by_lru.rule)), (400, None, 400));
    }

    #[test]
    fn until_4_11_the_share_of_lru_pages_decides() {
        let by_lru = Pressure { lru: (1_000, 99_999), ..pressure(SlabPressure::LruScanned, 12) };
        // 4 x 1000 / 2 x 50 000 / 100 000 = 1000.
        assert_eq!(by_lru.delta(50_000, SUPERBLOCK), 1_000);
    }

    #[test]
    fn where_lru_pages_decide_no_more_is_put_off_than_was_to_be_scanned() {
        // 1000 of the pass itself, less than a quarter of 50 000, and a backlog: half of the cache.
        let put_off = |rule, calls: u64| {
            let pressure = Pressure { lru: (1_000, 99_999), ..pressure(rule, 12) };
            let mut job = pressure.job(50_000, 1_000_000, SUPERBLOCK);
            assert_eq!(job.total_scan, 25_000);
            (job.scanned, job.total_scan) = (1024 * calls, 25_000 - 1024 * calls);
            job.put_off(rule)
        };
        assert_eq!(put_off(SlabPressure::LruScanned, 0), 25_000);
        assert_eq!(put_off(SlabPressure::LruScanned, 24), 25_000 - 24 * 1024);
        // 50 000 >> 12 = 12, x 4 / 2 = 24 of the pass.
        assert_eq!(put_off(SlabPressure::Priority, 24), 1_000_024 - 24 * 1024);
    }

    #[test]
    fn what_costs_nothing_to_make_again_is_halved() {
        assert_eq!(pressure(SlabPressure::Priority, 12).delta(1_000, SHRINKERS[0]), 500);
    }

    #[test]
    fn until_5_12_what_was_put_off_is_everybodys_on_the_node() {
        use super::super::fixture::{Machine, NODE, rules_4_20};
        for (rule, same) in [(DeferredObjects::Node, true), (DeferredObjects::Memcg, false)] {
            let mut m = Machine::new(rules::Rules { deferred_objects: rule, ..rules_4_20() });
            let [root, group] = [ROOT, MemcgId(1)].map(|memcg| m.mm.deferred_of(Share { node: NODE, memcg }));
            assert_eq!(root == group, same, "{rule:?}");
            m.mm.reclaim.deferred[root][0] = 7;
            assert_eq!(m.mm.reclaim.deferred[group][0] == 7, same);
        }
    }

    #[test]
    fn until_3_2_pages_that_an_inode_loses_are_not_reclaimed() {
        for (stolen_pages, reclaimed) in [(StolenPages::Uncounted, 0), (StolenPages::Reclaimed, 70)] {
            let rules = Rules {
                vfs_shrinkers: VfsShrinkers::Apart,
                inode_reclaim: InodeReclaim::InvalidatePages,
                stolen_pages,
                ..rules_4_20()
            };
            let mut mm = machine(1, 1 << 15, rules);
            let fs = mm.vfs_mkfs(FsSpec::xfs(3, Bytes::gib(4)));
            let root = mm.vfs_root(fs);
            let dir = mm.vfs_mkdir(&on(0), root).expect("memory is plentiful");
            let file = mm.vfs_create(&on(0), dir).expect("memory is plentiful");
            mm.set_inode_size_pages(&on(0), file.file, 70);
            let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NodeId(0) };
            for index in 0..70 {
                let pfn = mm.alloc_pages(&on(0), request).expect("memory is plentiful");
                mm.pagecache_insert(&on(0), pfn, file.file, index).expect("memory is plentiful");
            }
            mm.vfs_close(&on(0), file);
            let share = Share { node: NodeId(0), memcg: ROOT };
            let mut sc = ScanControl::kswapd(Order(0), crate::ZoneKind::Normal);
            mm.call_shrinker(&on(0), ShrinkerId::Dentries, share, 128, &mut sc);
            mm.call_shrinker(&on(0), ShrinkerId::Inodes, share, 128, &mut sc);
            assert_eq!((sc.nr_reclaimed, mm.stat.event(VmEvent::Pginodesteal)), (reclaimed, 70), "{stolen_pages:?}");
        }
    }
}
