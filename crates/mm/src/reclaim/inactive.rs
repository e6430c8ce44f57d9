//! Reclaiming a batch from an inactive list.
//!
//! Rule: take up to 32 pages from the tail, free what can be freed, put the rest back. If every page of a batch was
//! dirty and not queued for writing, the flushers sleep while they are needed: wake them.
//! Source: `shrink_inactive_list()` (mm/vmscan.c, 4.20; 6.12; 3.1 and commit 92df3a723f84 for what is before 3.11).
//! Since/until: [`FlusherWakeup`], [`WritebackThrottle`]: until 3.10, who takes a batch of which enough is under writeback waits for a
//! congested zone. Until 3.4 there may be a second pass ([`super::second_pass`]).

use rules::{FlusherWakeup, WritebackThrottle};
use units::Pfn;

use super::page_list::BatchStat;
use super::second_pass::SecondPass;
use super::throttle::Wait;
use super::{DEF_PRIORITY, ScanControl};
use crate::contention::ONCE;
use crate::stat::VmEvent;
use crate::{Effect, Env, LruList, LruvecId, Mm, WakeFlusher};

/// What came of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct InactiveBatch {
    /// Base pages freed.
    pub reclaimed: u64,
    /// What the reclaimer waits for before it goes on.
    pub wait: Option<Wait>,
}

/// How far a batch has come.
#[derive(Debug)]
pub(super) enum Inactive {
    /// To its end.
    Done(InactiveBatch),
    /// It is to be gone over again.
    Again(Box<SecondPass>),
}

/// A batch whose pages have been looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batched {
    pub lru: LruvecId,
    pub list: LruList,
    /// Base pages taken, and looked at, skipped ones included.
    pub taken: u64,
    pub scanned: u64,
    /// What it met, and what came of it.
    pub stat: BatchStat,
}

impl Mm {
    /// Reclaims up to `nr_to_scan` pages of an inactive list.
    pub(super) fn shrink_inactive_list(
        &mut self,
        env: &Env,
        lru: LruvecId,
        list: LruList,
        nr_to_scan: u32,
        sc: &mut ScanControl,
    ) -> Inactive {
        self.set_reclaim_mode(sc);
        self.lru_add_drain(env);
        let isolated = self.isolate_lru_pages(lru, list, nr_to_scan, sc);
        if self.trace.filter.vmscan {
            self.trace_isolate(list, nr_to_scan, &isolated, sc);
        }
        let file = list.is_file();
        let (scanned, taken) = (isolated.scanned, isolated.taken);
        let by_kind = isolated.by_kind(file);
        self.note_recent(lru, false, by_kind[0], 0);
        self.note_recent(lru, true, by_kind[1], 0);
        if sc.is_global() {
            self.stat.count(if env.task.kswapd { VmEvent::PgscanKswapd } else { VmEvent::PgscanDirect }, scanned);
        }
        self.stat.count(if file { VmEvent::PgscanFile } else { VmEvent::PgscanAnon }, scanned);
        self.note_scanned(env, lru, scanned, 0);
        self.memcg_note_scan(self.memcg_of(lru), env.task.kswapd, scanned, 0);
        self.lru_lock(lru, isolated.pages.len() as u64, ONCE);
        if isolated.pages.is_empty() {
            return Inactive::Done(InactiveBatch::default());
        }
        let (stat, kept) = self.shrink_page_list(env, lru, &isolated.pages, sc);
        self.note_isolated(lru, false, -(by_kind[0] as i64));
        self.note_isolated(lru, true, -(by_kind[1] as i64));
        self.note_congested(lru, &stat);
        let batch = Batched { lru, list, taken, scanned, stat };
        if self.should_reclaim_stall(env, &batch, sc) {
            return Inactive::Again(Box::new(SecondPass::new(self, batch, &kept, sc)));
        }
        Inactive::Done(self.end_inactive_batch(env, batch, &kept, sc))
    }

    /// Puts back what is left of a batch, isolated but not counted as that any more, and counts what came of it.
    pub(super) fn end_inactive_batch(
        &mut self,
        env: &Env,
        batch: Batched,
        kept: &[Pfn],
        sc: &mut ScanControl,
    ) -> InactiveBatch {
        let Batched { lru, list, taken, scanned, stat } = batch;
        let file = list.is_file();
        (sc.lumpy, sc.contiguous) = (false, false);
        self.putback_inactive_pages(lru, kept);
        if !kept.is_empty() {
            self.lru_lock(lru, kept.len() as u64, ONCE);
        }
        // What a group's limit asks for is not the system's.
        if sc.is_global() {
            let by_whom = if env.task.kswapd { VmEvent::PgstealKswapd } else { VmEvent::PgstealDirect };
            self.stat.count(by_whom, stat.reclaimed);
        }
        self.stat.count(if file { VmEvent::PgstealFile } else { VmEvent::PgstealAnon }, stat.reclaimed);
        self.note_scanned(env, lru, 0, stat.reclaimed);
        self.memcg_note_scan(self.memcg_of(lru), env.task.kswapd, 0, stat.reclaimed);
        self.note_cost(lru, file, stat.pageout, scanned.saturating_sub(stat.reclaimed));
        if self.rules.flusher_wakeup == FlusherWakeup::DirtyBatch && stat.unqueued_dirty == taken {
            self.effects.push(Effect::WakeFlushers(WakeFlusher::Vmscan));
        }
        sc.nr.dirty += stat.dirty;
        sc.nr.congested += stat.congested;
        sc.nr.unqueued_dirty += stat.unqueued_dirty;
        sc.nr.writeback += stat.writeback;
        sc.nr.immediate += stat.immediate;
        sc.nr.taken += taken;
        if file {
            sc.nr.file_taken += taken;
        }
        if self.trace.filter.vmscan {
            self.trace_shrink_inactive(lru, file, scanned, &stat, sc.priority);
        }
        let waits = self.rules.writeback_throttle == WritebackThrottle::ShareOfBatch
            && enough_under_writeback(stat.writeback, taken, sc.priority);
        let wait = if waits { self.wait_iff_congested(lru) } else { None };
        InactiveBatch { reclaimed: stat.reclaimed, wait }
    }

    /// Until 3.10 a zone is congested once all dirty pages of a look at a batch are.
    pub(super) fn note_congested(&mut self, lru: LruvecId, stat: &BatchStat) {
        let until_3_10 = self.rules.writeback_throttle != WritebackThrottle::Flags;
        if until_3_10 && stat.dirty > 0 && stat.dirty == stat.congested {
            let root = self.root_of(lru);
            self.lruvec_mut(root).congested = true;
        }
    }
}

/// Whether so much of a batch is under writeback that reclaimers wait at this priority: all of it at 12, half at 11, and at 6
/// or below any.
fn enough_under_writeback(writeback: u64, taken: u64, priority: i8) -> bool {
    writeback > 0 && writeback >= taken >> (DEF_PRIORITY - priority)
}

#[cfg(test)]
mod tests {
    use rules::{FilePageout, Rules, SkippedDirty, StuckPages};
    use units::{Gfp, Order};

    use super::super::ThrottleReason;
    use super::super::fixture::{LRU, Machine, NODE, env, rules_4_20};
    use super::*;
    use crate::stat::NodeStat;
    use crate::{Frame, Kind, ZoneKind};

    fn shrink(m: &mut Machine, nr: u32) -> (InactiveBatch, ScanControl) {
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        let env = m.env;
        let batch = m.mm.shrink_inactive_list(&env, LRU, LruList::InactiveFile, nr, &mut sc);
        m.check();
        let Inactive::Done(batch) = batch else { panic!("{batch:?}") };
        (batch, sc)
    }

    fn flushers_woken(m: &mut Machine) -> bool {
        m.effects().contains(&Effect::WakeFlushers(WakeFlusher::Vmscan))
    }

    #[test]
    fn clean_pages_are_freed_from_the_tail() {
        for rules in [rules_4_20(), Rules::newest()] {
            let mut m = Machine::new(rules);
            m.add("a b c d", Kind::File, 0);
            let freed_before = m.mm.stat.event(VmEvent::Pgfree);
            let (batch, sc) = shrink(&mut m, 3);
            assert_eq!(m.draw(), "inactive: d | active:");
            assert_eq!((batch.reclaimed, sc.nr_scanned, sc.nr.taken), (3, 3, 3));
            assert_eq!(m.mm.stat.event(VmEvent::PgscanKswapd), 3);
            assert_eq!(m.mm.stat.event(VmEvent::PgstealKswapd), 3);
            assert_eq!(m.mm.stat.event(VmEvent::PgstealFile), 3);
            assert_eq!(m.mm.stat.event(VmEvent::Pgfree) - freed_before, 3);
            assert_eq!(m.mm.nodes[0].lruvecs[0].nonresident_age, 3, "three evictions");
            assert!(!flushers_woken(&mut m));
        }
    }

    #[test]
    fn direct_reclaim_counts_for_itself() {
        let mut m = Machine::new(rules_4_20());
        m.env = env(false);
        m.add("a b", Kind::File, 0);
        shrink(&mut m, 2);
        assert_eq!((m.mm.stat.event(VmEvent::PgscanDirect), m.mm.stat.event(VmEvent::PgstealDirect)), (2, 2));
        assert_eq!(m.mm.stat.event(VmEvent::PgscanKswapd), 0);
    }

    #[test]
    fn dirty_pages_get_out_of_the_way_and_wake_the_flushers_if_there_is_nothing_else() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b", Kind::File, Frame::DIRTY);
        m.add("c", Kind::File, 0);
        let (batch, sc) = shrink(&mut m, 3);
        assert_eq!(m.draw(), "inactive: | active: b a");
        assert_eq!((batch.reclaimed, sc.nr.dirty, sc.nr.unqueued_dirty), (1, 2, 2));
        assert!(m.frame('a').has(Frame::RECLAIM));
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanImmediate), 2);
        assert_eq!(m.mm.stat.event(VmEvent::Pgactivate), 2);
        assert!(!flushers_woken(&mut m), "one of three was clean");

        m.add("d e", Kind::File, Frame::DIRTY);
        shrink(&mut m, 2);
        assert!(flushers_woken(&mut m), "both were dirty and not queued");
    }

    #[test]
    fn a_dirty_page_is_not_written_by_direct_reclaim() {
        let mut m = Machine::new(rules_4_20());
        m.env = env(false);
        m.mm.nodes[0].lruvecs[0].dirty_seen = true;
        m.add("a", Kind::File, Frame::DIRTY | Frame::RECLAIM);
        shrink(&mut m, 1);
        assert_eq!(m.draw(), "inactive: | active: a");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanWrite), 0);
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanImmediate), 1);
    }

    #[test]
    fn pages_under_writeback_count_first_as_writeback_and_then_as_immediate() {
        let mut m = Machine::new(rules_4_20());
        m.add("a", Kind::File, Frame::WRITEBACK);
        m.add("b", Kind::File, Frame::WRITEBACK | Frame::RECLAIM);
        let (_, sc) = shrink(&mut m, 2);
        assert_eq!(m.draw(), "inactive: | active: b a");
        assert_eq!((sc.nr.writeback, sc.nr.immediate, sc.nr.congested), (2, 0, 1));
        assert!(m.frame('a').has(Frame::RECLAIM));

        m.mm.nodes[0].lruvecs[0].writeback_seen = true;
        m.add("c", Kind::File, Frame::WRITEBACK);
        m.add("d", Kind::File, Frame::WRITEBACK | Frame::RECLAIM);
        let (_, sc) = shrink(&mut m, 2);
        assert_eq!((sc.nr.writeback, sc.nr.immediate), (1, 1), "the node is flagged and d was marked");
    }

    /// 3.1's rules of dirty pages, with this one about who writes them.
    fn rules_3_1(file_pageout: FilePageout, skipped_dirty: SkippedDirty) -> Rules {
        Rules {
            file_pageout,
            skipped_dirty,
            stuck_pages: StuckPages::Inactive,
            xfs_writepage: rules::XfsWritepage::Cluster,
            writeback_throttle: WritebackThrottle::BetweenPriorities,
            flusher_wakeup: FlusherWakeup::PagesScanned,
            ..rules_4_20()
        }
    }

    #[test]
    fn until_3_10_dirty_pages_and_those_under_writeback_stay_inactive_and_nobody_wakes_flushers() {
        let mut m = Machine::new(rules_3_1(FilePageout::KswapdInTrouble, SkippedDirty::Plain));
        m.add("a b", Kind::File, Frame::DIRTY);
        m.add("c", Kind::File, Frame::WRITEBACK);
        let (batch, _) = shrink(&mut m, 3);
        assert_eq!((m.draw().as_str(), batch.reclaimed), ("inactive: c b a | active:", 0));
        assert!(!m.frame('a').has(Frame::RECLAIM) && !m.frame('c').has(Frame::RECLAIM));
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanImmediate), 0);
        assert!(!flushers_woken(&mut m));
    }

    #[test]
    fn since_3_2_a_dirty_page_that_is_skipped_is_marked_and_counted() {
        let mut m = Machine::new(rules_3_1(FilePageout::KswapdInTrouble, SkippedDirty::Marked));
        m.add("a", Kind::File, Frame::DIRTY);
        shrink(&mut m, 1);
        assert_eq!(m.draw(), "inactive: a | active:");
        assert!(m.frame('a').has(Frame::RECLAIM));
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanImmediate), 1);
    }

    #[test]
    fn until_3_1_direct_reclaim_leaves_the_pages_of_a_congested_device_which_makes_the_zone_congested() {
        let mut m = Machine::new(rules_3_1(FilePageout::Anyone, SkippedDirty::Plain));
        m.env = env(false);
        m.add("a b", Kind::File, Frame::DIRTY);
        let (file, _) = m.mm.file_home(m.page('a'));
        let device = m.mm.device_of(file);
        m.mm.set_device_congested(device, true);
        m.env.task.writes_to = Some(device);
        shrink(&mut m, 2);
        assert!(!m.mm.lruvec(LRU).congested, "who writes to it is no better off if it leaves them");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanWrite), 2, "which XFS refuses");
        m.env.task.writes_to = None;
        shrink(&mut m, 2);
        assert!(m.mm.lruvec(LRU).congested, "all dirty pages are on it");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanWrite), 2);
        assert_eq!(m.mm.wait_iff_congested(LRU), Some((ThrottleReason::Device, units::Nanos::millis(100))));
        m.mm.set_device_congested(device, false);
        assert_eq!(m.mm.wait_iff_congested(LRU), None, "no device is congested any more");
    }

    #[test]
    fn the_share_under_writeback_that_throttles_halves_with_each_priority() {
        assert!(enough_under_writeback(32, 32, 12) && !enough_under_writeback(31, 32, 12));
        assert!(enough_under_writeback(16, 32, 11) && !enough_under_writeback(15, 32, 11));
        assert!(enough_under_writeback(1, 32, 7) && enough_under_writeback(1, 32, 0));
        assert!(!enough_under_writeback(0, 32, 0), "none under writeback");
    }

    #[test]
    fn what_is_locked_or_pinned_stays_on_the_inactive_list() {
        let mut m = Machine::new(rules_4_20());
        m.add("a", Kind::File, Frame::LOCKED);
        m.add("b", Kind::File, Frame::PINNED);
        m.add("c", Kind::File, 0);
        let (batch, sc) = shrink(&mut m, 3);
        assert_eq!(m.draw(), "inactive: b a | active:");
        assert_eq!(batch.reclaimed, 1);
        assert_eq!(sc.nr_scanned, 2, "a locked page is not looked at");
    }

    #[test]
    fn a_page_whose_buffer_is_kept_becomes_active() {
        let mut m = Machine::new(Rules { xfs_buffers: rules::XfsBuffers::BufferHeads, ..rules_4_20() });
        m.add("a", Kind::File, Frame::PINNED);
        let (pfn, env) = (m.names[0].1, m.env);
        m.mm.attach_buffers(&env, pfn).expect("memory is plentiful");
        shrink(&mut m, 1);
        assert_eq!(m.draw(), "inactive: | active: a");
    }

    #[test]
    fn without_swap_or_io_anonymous_pages_are_not_given_slots() {
        let mut m = Machine::new(rules_4_20());
        m.add("x", Kind::Anon, 0);
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        sc.gfp = Gfp::NOIO;
        let env = m.env;
        m.mm.shrink_inactive_list(&env, LRU, LruList::InactiveAnon, 1, &mut sc);
        assert_eq!(m.draw_anon(), "inactive: x | active:");
        m.check();
    }
}
