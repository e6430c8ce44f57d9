//! The second pass over a batch, which waits for what is being written: [`SecondPass`].
//!
//! Rule ([`rules::SecondPass`]): a direct reclaimer for an order above 3, or at priority 4 or below for a lower one above 0, that could not free
//! all of a batch, and kept nothing but pages that are being written, goes over these once more, the oldest first. It waits for the
//! writeback of each, as far as it may enter file systems, and then frees the page like any other; if it has to write the page itself,
//! it waits for that too. Once it keeps a page that is not being written, it waits for no other.
//! Source: `should_reclaim_stall()`, `set_reclaim_mode()`, `reset_reclaim_mode()`, `shrink_page_list()`, `pageout()` (mm/vmscan.c), 2.6.39 and 3.1.
//! Since/until: for lumpy reclaim, and for compaction where that is built. Patch 2 of the series of ee72886d8ed5 (3.2) does not wait for
//! what the pass writes itself; 41ac1999c3e3 (3.5) removed the pass.
//! Abstracted: what it frees is free at once, not at the end of the pass, and does not count as isolated after the first one; the page
//! that it waits for is not locked. Huge pages have no second look.
//! Omitted: `RECLAIM_WB_SYNC` in tracepoints.

use rules::SecondPass as Rule;
use units::{Gfp, Order, Pfn};

use super::inactive::{Batched, InactiveBatch};
use super::isolate::Batch;
use super::lru::is_file_lru;
use super::page_list::BatchStat;
use super::{DEF_PRIORITY, ScanControl};
use crate::{Env, Frame, Kind, LruvecId, Mm};

/// A batch that is gone over again.
#[derive(Debug)]
pub(super) struct SecondPass {
    batch: Batched,
    /// What this pass met, and what came of it.
    stat: BatchStat,
    /// Pages still to look at, the next one last; isolated.
    left: Batch,
    /// Pages that are kept, isolated still.
    kept: Batch,
    /// The next page is one that this pass has written.
    written: bool,
    /// The next page has been waited for.
    waited: bool,
}

/// What a second pass does next.
#[derive(Debug)]
pub(super) enum SecondLook {
    /// Waits for the writeback of a page.
    Wait(Pfn),
    /// The batch is through.
    Done(InactiveBatch),
}

impl Mm {
    /// Whether a reclaimer goes over a batch once more.
    pub(super) fn should_reclaim_stall(&self, env: &Env, batch: &Batched, sc: &ScanControl) -> bool {
        let from = if sc.order > Order::COSTLY { DEF_PRIORITY } else { DEF_PRIORITY / 3 };
        self.rules.second_pass != Rule::None
            && !env.task.kswapd
            && sc.contiguous
            && batch.stat.reclaimed != batch.taken
            && sc.priority <= from
    }

    /// Whether a page that reclaim holds across a sleep has lost its owner.
    fn is_gone(&self, pfn: Pfn) -> bool {
        self.frames[pfn].kind() == Kind::Held || self.is_orphan(pfn)
    }

    /// Gives back such a page; I/O on it that is under way frees it at its end.
    fn free_gone(&mut self, env: &Env, pfn: Pfn) {
        if self.frames[pfn].kind() == Kind::Anon {
            self.lru_forget_isolated(pfn);
            return self.free_orphan(env, pfn);
        }
        self.frames[pfn].clear(Frame::ISOLATED);
        if !self.frames[pfn].has_any(Frame::WRITEBACK | Frame::LOCKED) {
            self.frames[pfn].set_kind(Kind::Held, Order(0));
            self.free_pages(env, pfn, Order(0));
        }
    }

    /// Counts isolated pages that stay so for longer than a step, or do not any more.
    fn note_held(&mut self, lru: LruvecId, pfn: Pfn, sign: i64) {
        let file = is_file_lru(&self.frames[pfn]);
        self.note_isolated(lru, file, sign);
    }
}

impl SecondPass {
    /// A pass over what the first one kept, the oldest first.
    pub(super) fn new(mm: &mut Mm, batch: Batched, kept: &[Pfn], sc: &mut ScanControl) -> SecondPass {
        mm.set_reclaim_mode(sc);
        let (mut left, lru) = (Batch::new(), batch.lru);
        for &pfn in kept {
            if mm.frames[pfn].order() > Order(0) {
                mm.putback_inactive_pages(lru, &[pfn]);
            } else {
                mm.note_held(lru, pfn, 1);
                left.push(pfn);
            }
        }
        left.reverse();
        SecondPass { batch, stat: BatchStat::default(), left, kept: Batch::new(), written: false, waited: false }
    }

    /// Goes on to the next page to wait for, or to the end.
    pub(super) fn step(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> SecondLook {
        while let Some(&pfn) = self.left.last() {
            if self.must_wait(mm, env, pfn, sc) {
                return SecondLook::Wait(pfn);
            }
            self.left.pop();
            (self.written, self.waited) = (false, false);
        }
        SecondLook::Done(self.end(mm, env, sc))
    }

    /// Handles a page, unless it has to be waited for first.
    fn must_wait(&mut self, mm: &mut Mm, env: &Env, pfn: Pfn, sc: &mut ScanControl) -> bool {
        let lru = self.batch.lru;
        if mm.is_gone(pfn) {
            mm.free_gone(env, pfn);
            return false;
        }
        let frame = &mm.frames[pfn];
        let swapped = frame.has(Frame::SWAPCACHE) && sc.gfp.contains(Gfp::IO);
        let may_wait = sc.contiguous && (sc.gfp.contains(Gfp::FS) || swapped);
        if frame.has(Frame::WRITEBACK) && may_wait {
            self.stat.writeback += u64::from(!self.waited && !self.written);
            self.waited = true;
            return true;
        }
        let file = is_file_lru(frame);
        let (stat, kept) =
            if self.written { mm.free_written(env, lru, pfn, sc) } else { mm.shrink_page_list(env, lru, &[pfn], sc) };
        self.stat.add(&stat);
        if kept.is_empty() {
            mm.note_isolated(lru, file, -1);
            return false;
        }
        let writes = !self.written && mm.frames[pfn].has(Frame::WRITEBACK) && stat.pageout > 0;
        if writes && sc.contiguous && mm.rules.second_pass == Rule::WritesAndWaits {
            self.written = true;
            return true;
        }
        self.kept.push(pfn);
        false
    }

    fn end(&mut self, mm: &mut Mm, env: &Env, sc: &mut ScanControl) -> InactiveBatch {
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|pfn| {
            let gone = mm.is_gone(*pfn);
            if gone {
                mm.free_gone(env, *pfn);
            } else {
                mm.note_held(self.batch.lru, *pfn, -1);
            }
            !gone
        });
        mm.note_congested(self.batch.lru, &self.stat);
        self.batch.stat.add(&self.stat);
        mm.end_inactive_batch(env, self.batch, &kept, sc)
    }
}

#[cfg(test)]
mod tests {
    use rules::{Compaction, FilePageout, IsolationUnit, Rules, StuckPages, WritebackThrottle, XfsWritepage};
    use units::Bytes;

    use super::super::fixture::{LRU, Machine, NODE, env, rules_4_20};
    use super::super::inactive::Inactive;
    use super::*;
    use crate::stat::{NodeStat, VmEvent};
    use crate::swap::SwapSpec;
    use crate::vfs::FsSpec;
    use crate::{LruList, ZoneKind};

    fn machine(second_pass: Rule, compaction: Compaction) -> Machine {
        let mut m = Machine::new(Rules {
            second_pass,
            compaction,
            isolation_unit: IsolationUnit::AlignedBlock,
            stuck_pages: StuckPages::Inactive,
            file_pageout: FilePageout::Anyone,
            xfs_writepage: XfsWritepage::Cluster,
            writeback_throttle: WritebackThrottle::ShareOfBatch,
            ..rules_4_20()
        });
        m.env = env(false);
        m
    }

    fn direct(order: u8, priority: i8) -> ScanControl {
        ScanControl { priority, ..ScanControl::direct(Gfp::KERNEL, Order(order), ZoneKind::Normal) }
    }

    /// Shrinks a list; the pass that is to follow.
    fn shrink(m: &mut Machine, list: LruList, sc: &mut ScanControl) -> Option<Box<SecondPass>> {
        let env = m.env;
        let result = m.mm.shrink_inactive_list(&env, LRU, list, 32, sc);
        m.check();
        match result {
            Inactive::Done(_) => None,
            Inactive::Again(pass) => Some(pass),
        }
    }

    /// Carries a pass out, ending each writeback that it waits for; what it waited for, and what it freed with the first one.
    fn finish(m: &mut Machine, mut pass: Box<SecondPass>, sc: &mut ScanControl) -> (Vec<Pfn>, u64) {
        let (env, mut waits) = (m.env, Vec::new());
        loop {
            let look = pass.step(&mut m.mm, &env, sc);
            m.check();
            match look {
                SecondLook::Wait(pfn) => {
                    waits.push(pfn);
                    m.written(pfn);
                }
                SecondLook::Done(batch) => return (waits, batch.reclaimed),
            }
        }
    }

    #[test]
    fn high_orders_have_one_at_once_and_low_ones_at_priority_4() {
        let stalls = |rule, kswapd, order, priority, reclaimed| {
            let m = machine(rule, Compaction::Built);
            let mut stat = BatchStat::default();
            stat.reclaimed = reclaimed;
            let batch = Batched { lru: LRU, list: LruList::InactiveFile, taken: 32, scanned: 32, stat };
            let mut sc = direct(order, priority);
            m.mm.set_reclaim_mode(&mut sc);
            m.mm.should_reclaim_stall(&env(kswapd), &batch, &sc)
        };
        let waits = |order, priority| stalls(Rule::Waits, false, order, priority, 31);
        assert!(waits(4, 12) && !waits(3, 5) && waits(3, 4) && waits(1, 4) && !waits(0, 0));
        assert!(!stalls(Rule::Waits, false, 4, 12, 32), "everything is free");
        assert!(!stalls(Rule::Waits, true, 4, 12, 0), "kswapd does not wait");
        assert!(!stalls(Rule::None, false, 4, 12, 0));
    }

    #[test]
    fn it_waits_for_each_page_in_turn_and_frees_it() {
        for compaction in [Compaction::Built, Compaction::NotBuilt] {
            let mut m = machine(Rule::Waits, compaction);
            m.add("a b", Kind::File, Frame::WRITEBACK);
            m.add("c", Kind::File, 0);
            let mut sc = direct(4, 12);
            let pass = shrink(&mut m, LruList::InactiveFile, &mut sc).expect("two are being written");
            assert_eq!(m.mm.stat.node(NODE, NodeStat::IsolatedFile), 2);
            let pages = vec![m.page('a'), m.page('b')];
            assert_eq!(finish(&mut m, pass, &mut sc), (pages, 3));
            assert_eq!(m.draw(), "inactive: | active:");
            assert_eq!((m.mm.stat.event(VmEvent::PgscanDirect), m.mm.stat.event(VmEvent::PgstealDirect)), (3, 3));
            assert_eq!(sc.nr_scanned, 3 + 2, "two were looked at twice");
            assert_eq!(sc.nr.writeback, 2 + 2);
            assert_eq!(m.mm.stat.node(NODE, NodeStat::IsolatedFile), 0);
        }
    }

    #[test]
    fn a_page_that_is_kept_for_another_reason_spares_the_batch_or_the_rest_of_it() {
        let mut m = machine(Rule::Waits, Compaction::Built);
        m.add("a", Kind::File, Frame::WRITEBACK);
        m.add("b", Kind::File, Frame::LOCKED);
        assert!(shrink(&mut m, LruList::InactiveFile, &mut direct(4, 12)).is_none());
        assert_eq!(m.draw(), "inactive: b a | active:");

        m.frame('b').clear(Frame::LOCKED);
        m.frame('b').set(Frame::WRITEBACK);
        m.add("c", Kind::File, Frame::WRITEBACK);
        let mut sc = direct(4, 12);
        let mut pass = shrink(&mut m, LruList::InactiveFile, &mut sc).expect("all are being written");
        let env = m.env;
        assert!(matches!(pass.step(&mut m.mm, &env, &mut sc), SecondLook::Wait(pfn) if pfn == m.page('a')));
        let a = m.page('a');
        m.written(a);
        m.frame('a').set(Frame::LOCKED);
        assert_eq!(finish(&mut m, pass, &mut sc), (vec![], 0), "neither b nor c is waited for");
        assert_eq!(m.draw(), "inactive: c b a | active:");
    }

    #[test]
    fn who_may_not_enter_file_systems_waits_for_none_of_their_pages() {
        let mut m = machine(Rule::Waits, Compaction::Built);
        m.add("a", Kind::File, Frame::WRITEBACK);
        let mut sc = ScanControl { gfp: Gfp::NOFS, ..direct(4, 12) };
        let pass = shrink(&mut m, LruList::InactiveFile, &mut sc).expect("it is being written");
        assert_eq!(finish(&mut m, pass, &mut sc), (vec![], 0));
        assert_eq!(m.draw(), "inactive: a | active:");
    }

    #[test]
    fn a_zone_is_congested_if_all_dirty_pages_of_the_pass_are() {
        for (busy, congested) in [([true, true], true), ([true, false], false), ([false, true], false)] {
            let mut m = machine(Rule::Waits, Compaction::Built);
            let env = m.env;
            m.add("a", Kind::File, Frame::WRITEBACK);
            let devices = [m.mm.device_of(m.file), 4];
            let fs = m.mm.vfs_mkfs(FsSpec::xfs(devices[1], Bytes::gib(4)));
            let root = m.mm.vfs_root(fs);
            m.file = m.mm.vfs_create(&env, root).expect("memory is plentiful").file;
            m.add("b", Kind::File, Frame::WRITEBACK);
            let mut sc = direct(4, 12);
            let mut pass = shrink(&mut m, LruList::InactiveFile, &mut sc).expect("both are being written");
            assert!(matches!(pass.step(&mut m.mm, &env, &mut sc), SecondLook::Wait(pfn) if pfn == m.page('a')));
            for (name, device, busy) in [('a', devices[0], busy[0]), ('b', devices[1], busy[1])] {
                let page = m.page(name);
                m.written(page);
                m.frame(name).set(Frame::DIRTY);
                m.mm.set_device_congested(device, busy);
            }
            assert_eq!(finish(&mut m, pass, &mut sc), (vec![], 0), "both are dirty again");
            assert_eq!(m.mm.lruvec(LRU).congested, congested, "{busy:?}");
        }
    }

    /// A machine with swap and an anonymous page that is on it and dirty again, mapped by nobody.
    fn swapped(rule: Rule) -> (Machine, Pfn) {
        let mut m = machine(rule, Compaction::Built);
        let swap = SwapSpec { device: 5, start_sector: 0, pages: 100, priority: 0, rotational: true };
        m.mm.swap.add_device(&swap);
        let (space, env) = (m.mm.space_create(), m.env);
        let vpn = m.mm.mmap_anon(space, 1, 1);
        m.mm.touch(&env, &mut crate::anon::Touch::new(space, vpn, 1, true, 1 << 60), None);
        let pfn = m.mm.slot_of(space, vpn).page().expect("it was written to");
        m.mm.frames[pfn].clear(Frame::YOUNG);
        let lru = m.mm.lruvec_of(pfn);
        m.mm.lru_del(pfn);
        m.mm.frames[pfn].clear(Frame::ACTIVE);
        m.mm.lru_add(&env, pfn);
        assert_eq!(lru, LRU);
        (m, pfn)
    }

    #[test]
    fn until_3_1_it_waits_for_what_it_writes_itself() {
        for (rule, waits, freed) in [(Rule::WritesAndWaits, 2, 1), (Rule::Waits, 1, 0)] {
            let (mut m, pfn) = swapped(rule);
            let mut sc = direct(4, 12);
            let mut pass = shrink(&mut m, LruList::InactiveAnon, &mut sc).expect("the first pass writes it");
            let env = m.env;
            assert!(matches!(pass.step(&mut m.mm, &env, &mut sc), SecondLook::Wait(page) if page == pfn));
            m.mm.end_swap_write(&env, pfn, true);
            // Dirty again, so that it has to be written once more.
            m.mm.frames[pfn].set(Frame::DIRTY);
            let mut waited = 1;
            let batch = loop {
                match pass.step(&mut m.mm, &env, &mut sc) {
                    SecondLook::Wait(page) => {
                        assert_eq!(page, pfn);
                        waited += 1;
                        m.mm.end_swap_write(&env, pfn, true);
                    }
                    SecondLook::Done(batch) => break batch,
                }
                m.check();
            };
            assert_eq!((waited, batch.reclaimed), (waits, freed), "{rule:?}");
            assert_eq!(sc.nr_scanned, 2 + 2, "mapped at first, and in the swap cache: it counts twice");
            m.check();
        }
    }

    #[test]
    fn a_direct_reclaim_gets_on_by_it() {
        for (rule, progress) in [(Rule::None, false), (Rule::Waits, true)] {
            let mut m = machine(rule, Compaction::NotBuilt);
            for _ in 0..64 {
                m.add_page(Kind::File, Frame::WRITEBACK, Gfp::HIGHUSER_MOVABLE).expect("memory is plentiful");
            }
            assert_eq!(m.direct(Gfp::KERNEL, Order(4)).0 > 0, progress);
            m.check();
        }
    }

    #[test]
    fn a_page_whose_file_is_truncated_while_it_sleeps_is_given_back() {
        let mut m = machine(Rule::Waits, Compaction::Built);
        m.add("a b", Kind::File, Frame::WRITEBACK);
        let env = m.env;
        let mut sc = direct(4, 12);
        let mut pass = shrink(&mut m, LruList::InactiveFile, &mut sc).expect("both are being written");
        let SecondLook::Wait(first) = pass.step(&mut m.mm, &env, &mut sc) else { panic!() };
        // As at the end of their writeback, when the file has gone.
        let (a, b) = (m.page('a'), m.page('b'));
        for pfn in [a, b] {
            m.written(pfn);
        }
        let free = m.mm.zones.iter().map(|z| z.free_pages + m.mm.pcp_pages(z.id)).sum::<u64>();
        m.mm.truncate_pages(&env, m.file, 0);
        assert_eq!((first, m.mm.frames[a].kind(), m.mm.frames[b].kind()), (a, Kind::Held, Kind::Held));
        assert_eq!(m.mm.stat.node(NODE, NodeStat::IsolatedFile), 0);
        assert_eq!(finish(&mut m, pass, &mut sc), (vec![], 0));
        let now = m.mm.zones.iter().map(|z| z.free_pages + m.mm.pcp_pages(z.id)).sum::<u64>();
        assert!(now >= free + 2, "{now} of {free}");
        m.check();
    }
}
