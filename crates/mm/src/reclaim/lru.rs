//! The LRU lists: which list a page belongs on, and the moves that others ask for.
//!
//! Rule: a page is on the list that its flags name. `UNEVICTABLE` beats everything; otherwise `SWAPBACKED` decides
//! between anonymous and file, `ACTIVE` between active and inactive. New pages go to the front.
//! Source: `page_lru()`, `add_page_to_lru_list()` (include/linux/mm_inline.h), `__pagevec_lru_add_fn()`,
//! `pagevec_move_tail_fn()`, `__activate_page()`, `lru_deactivate_file_fn()` (mm/swap.c, 4.20; 6.12).
//! Since/until: one set of lists per node since 4.8. Under [`ScanBalance::RotatedRatio`] every page that is added,
//! activated or deactivated counts in the ratio of its kind. In the multi-gen LRU generations take the place of all lists
//! but the unevictable one (`lru_gen`), and a page that a fault adds is active from the start.
//! Abstracted: pagevecs. A page is on its list as soon as it is added.
//! Omitted: `unevictable_pgs_*` counters.

use rules::{ScanBalance, ScanCounting};
use units::{MemcgId, NodeId, Pfn, ZoneId};

use crate::contention::IN_PAGEVEC;
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::{Env, Frame, LruList, LruvecId, Mm, ZoneKind};

const NODE_GAUGES: [NodeStat; LruList::COUNT] =
    [NodeStat::InactiveAnon, NodeStat::ActiveAnon, NodeStat::InactiveFile, NodeStat::ActiveFile, NodeStat::Unevictable];
const ZONE_GAUGES: [ZoneStat; LruList::COUNT] =
    [ZoneStat::InactiveAnon, ZoneStat::ActiveAnon, ZoneStat::InactiveFile, ZoneStat::ActiveFile, ZoneStat::Unevictable];

/// Whether a page belongs to the file lists: page cache, or anonymous memory that may be dropped (`MADV_FREE`).
#[inline]
pub(super) fn is_file_lru(frame: &Frame) -> bool {
    !frame.has(Frame::SWAPBACKED)
}

/// The list that a page's flags name.
#[inline]
pub(super) fn lru_of(frame: &Frame) -> LruList {
    match (frame.has(Frame::UNEVICTABLE), is_file_lru(frame), frame.has(Frame::ACTIVE)) {
        (true, _, _) => LruList::Unevictable,
        (false, false, false) => LruList::InactiveAnon,
        (false, false, true) => LruList::ActiveAnon,
        (false, true, false) => LruList::InactiveFile,
        (false, true, true) => LruList::ActiveFile,
    }
}

/// At which end of a list a page is put.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// Most recent.
    Front,
    /// Next to be reclaimed.
    Back,
}

impl Mm {
    /// Puts a page that is on no list on the one that its flags name (`lru_cache_add()`).
    #[inline]
    pub fn lru_add(&mut self, env: &Env, pfn: Pfn) {
        if env.task.in_lru_fault && !env.task.memalloc && self.lru_gen_enabled() {
            self.frames[pfn].set(Frame::ACTIVE);
        }
        let list = self.lru_link(pfn, End::Front);
        if list != LruList::Unevictable {
            self.note_recent(self.lruvec_of(pfn), list.is_file(), 1, u64::from(list.is_active()));
        }
        self.pagevec_add(env, pfn, list);
        self.charge(self.costs.lru_move);
        self.lru_lock(self.lruvec_of(pfn), 1, IN_PAGEVEC);
    }

    /// Takes a page off its list for good: it is truncated, freed or migrated away.
    #[inline]
    pub fn lru_del(&mut self, pfn: Pfn) {
        self.lru_unlink(pfn);
    }

    /// Takes a page off its list for a while, if it is on one (`isolate_lru_page()`).
    pub fn lru_isolate(&mut self, pfn: Pfn) -> bool {
        if !self.frames[pfn].has(Frame::LRU) {
            return false;
        }
        self.lru_unlink(pfn);
        let frame = &mut self.frames[pfn];
        debug_assert!(!frame.has(Frame::ISOLATED));
        frame.set(Frame::ISOLATED);
        let (file, pages) = (is_file_lru(frame), frame.nr_pages());
        self.note_isolated(self.lruvec_of(pfn), file, i64::from(pages));
        true
    }

    /// Gives an isolated page back to its list (`putback_lru_page()`).
    pub fn lru_putback(&mut self, env: &Env, pfn: Pfn) {
        self.lru_forget_isolated(pfn);
        self.lru_add(env, pfn);
    }

    /// An isolated page does not come back: it was freed or replaced by its copy.
    pub fn lru_forget_isolated(&mut self, pfn: Pfn) {
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.has(Frame::ISOLATED) && !frame.has(Frame::LRU));
        frame.clear(Frame::ISOLATED);
        let (file, pages) = (is_file_lru(frame), frame.nr_pages());
        self.note_isolated(self.lruvec_of(pfn), file, -i64::from(pages));
    }

    /// The writeback of a page that reclaim waits for has ended: it goes to the tail of its inactive list if it still
    /// looks reclaimable (`rotate_reclaimable_page()`).
    pub fn rotate_reclaimable(&mut self, pfn: Pfn) {
        let frame = &self.frames[pfn];
        if frame.has_any(Frame::LOCKED | Frame::DIRTY | Frame::UNEVICTABLE) || !frame.has(Frame::LRU) {
            return;
        }
        let counted = self.counted(pfn);
        self.lru_unlink(pfn);
        self.frames[pfn].clear(Frame::ACTIVE);
        self.lru_link(pfn, End::Back);
        self.stat.count(VmEvent::Pgrotated, counted);
        self.charge(self.costs.lru_move);
    }

    /// Moves an inactive page to its active list (`activate_page()`).
    pub fn activate_page(&mut self, pfn: Pfn) {
        let frame = &self.frames[pfn];
        if !frame.has(Frame::LRU) || frame.has_any(Frame::ACTIVE | Frame::UNEVICTABLE) {
            return;
        }
        let counted = self.counted(pfn);
        self.lru_unlink(pfn);
        self.frames[pfn].set(Frame::ACTIVE);
        let list = self.lru_link(pfn, End::Front);
        self.stat.count(VmEvent::Pgactivate, counted);
        let lru = self.lruvec_of(pfn);
        self.note_recent(lru, list.is_file(), 1, 1);
        self.charge(self.costs.lru_move);
        self.lru_lock(lru, 2, IN_PAGEVEC);
    }

    /// An unmapped page could not be invalidated: it is made a good candidate for reclaim. A clean page goes to the
    /// tail of the inactive list; one that must be written first to its head, marked for reclaim after its writeback
    /// (`deactivate_file_page()`).
    pub fn deactivate_file_page(&mut self, pfn: Pfn) {
        let frame = &self.frames[pfn];
        if !frame.has(Frame::LRU) || frame.has_any(Frame::UNEVICTABLE | Frame::MAPPED) {
            return;
        }
        let (active, counted) = (frame.has(Frame::ACTIVE), self.counted(pfn));
        self.lru_unlink(pfn);
        let frame = &mut self.frames[pfn];
        frame.clear(Frame::ACTIVE | Frame::REFERENCED);
        let file = is_file_lru(frame);
        if frame.has_any(Frame::WRITEBACK | Frame::DIRTY) {
            self.lru_link(pfn, End::Front);
            self.frames[pfn].set(Frame::RECLAIM);
        } else {
            self.lru_link(pfn, End::Back);
            self.stat.count(VmEvent::Pgrotated, counted);
        }
        if active {
            self.stat.count(VmEvent::Pgdeactivate, counted);
        }
        self.note_recent(self.lruvec_of(pfn), file, 1, 0);
        self.charge(self.costs.lru_move);
    }

    /// What one page of this size adds to a counter of events.
    #[inline]
    pub(super) fn counted(&self, pfn: Pfn) -> u64 {
        match self.rules.scan_counting {
            ScanCounting::Entries => 1,
            ScanCounting::BasePages => u64::from(self.frames[pfn].nr_pages()),
        }
    }

    /// Counts pages in the ratio of rotated to scanned ones, where that balances the lists (`recent_scanned`).
    #[inline]
    pub(super) fn note_recent(&mut self, lru: LruvecId, file: bool, scanned: u64, rotated: u64) {
        if self.rules.scan_balance == ScanBalance::RotatedRatio {
            let lruvec = self.lruvec_mut(lru);
            lruvec.scanned[usize::from(file)] += scanned;
            lruvec.cost[usize::from(file)] += rotated;
        }
    }

    /// Counts isolated pages.
    #[inline]
    pub(super) fn note_isolated(&mut self, lru: LruvecId, file: bool, pages: i64) {
        let gauge = if file { NodeStat::IsolatedFile } else { NodeStat::IsolatedAnon };
        self.stat.node_add(lru.node, gauge, pages);
        let isolated = &mut self.lruvec_mut(lru).isolated[usize::from(file)];
        *isolated = isolated.wrapping_add_signed(pages);
    }

    /// Puts a page on its list, or into a generation, and counts it there.
    #[inline]
    pub(super) fn lru_link(&mut self, pfn: Pfn, end: End) -> LruList {
        let in_generation = self.belongs_in_generation(pfn);
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.is_lru_kind(), "{pfn:?} is {:?}", frame.kind());
        debug_assert!(!frame.has_any(Frame::LRU | Frame::ISOLATED), "{pfn:?} is on an LRU list or isolated");
        if in_generation {
            return self.lru_gen_add(pfn, end == End::Back);
        }
        frame.set(Frame::LRU);
        let (list, pages) = (lru_of(frame), frame.nr_pages());
        let (zone, lru) = (self.zone_of(pfn), self.lruvec_of(pfn));
        let lists = &mut self.nodes[lru.node.index()].lruvecs[usize::from(lru.part)].lists;
        match end {
            End::Front => lists[list as usize].push_front(&mut self.frames, pfn),
            End::Back => lists[list as usize].push_back(&mut self.frames, pfn),
        }
        self.lru_resize(lru, zone, list, i64::from(pages));
        list
    }

    /// Whether a page is kept in a generation while it is on the LRU.
    #[inline]
    fn belongs_in_generation(&self, pfn: Pfn) -> bool {
        self.lru_gen_enabled() && !self.frames[pfn].has(Frame::UNEVICTABLE)
    }

    /// Takes a page off its list; one that leaves an active generation is `ACTIVE` afterwards.
    #[inline]
    pub(super) fn lru_unlink(&mut self, pfn: Pfn) -> LruList {
        let in_generation = self.belongs_in_generation(pfn);
        let frame = &mut self.frames[pfn];
        debug_assert!(frame.has(Frame::LRU), "{pfn:?} is on no LRU list");
        if in_generation {
            return self.lru_gen_del(pfn, false);
        }
        frame.clear(Frame::LRU);
        let (list, pages) = (lru_of(frame), frame.nr_pages());
        let (zone, lru) = (self.zone_of(pfn), self.lruvec_of(pfn));
        self.nodes[lru.node.index()].lruvecs[usize::from(lru.part)].lists[list as usize].remove(&mut self.frames, pfn);
        self.lru_resize(lru, zone, list, -i64::from(pages));
        list
    }

    /// Puts the tails of a block of so many pages, which was split, in front of its head on that one's list, the first one next to it:
    /// lists are emptied from their end (`lru_add_split_folio()`).
    pub(crate) fn lru_insert_tails(&mut self, pfn: Pfn, pages: u32) {
        let tails = (1..pages).rev().map(|n| pfn.offset(n));
        if self.belongs_in_generation(pfn) {
            return self.lru_gen_add_tails(pfn, tails);
        }
        let (list, lru) = (lru_of(&self.frames[pfn]), self.lruvec_of(pfn));
        let list = &mut self.nodes[lru.node.index()].lruvecs[usize::from(lru.part)].lists[list as usize];
        for tail in tails {
            self.frames[tail].set(Frame::LRU);
            list.insert_before(&mut self.frames, pfn, tail);
        }
    }

    /// Counts base pages onto or off a list (`update_lru_size()`).
    #[inline]
    pub(super) fn lru_resize(&mut self, lru: LruvecId, zone: ZoneId, list: LruList, pages: i64) {
        let kind = self.zones[zone.index()].kind;
        let size = &mut self.lruvec_mut(lru).sizes[list as usize][kind as usize];
        debug_assert!(*size as i64 + pages >= 0, "{list:?} of {lru:?} would hold {size} {pages:+} pages");
        *size = size.wrapping_add_signed(pages);
        self.stat.node_add(lru.node, NODE_GAUGES[list as usize], pages);
        self.stat.zone_add(zone, ZONE_GAUGES[list as usize], pages);
    }

    /// All LRU lists of a node.
    pub(super) fn lruvecs_of(&self, node: NodeId) -> impl Iterator<Item = LruvecId> + use<> {
        let parts = self.nodes[node.index()].lruvecs.len() as u16;
        (0..parts).map(move |part| LruvecId { node, part })
    }

    /// Base pages on a list.
    #[inline]
    pub(super) fn lru_size(&self, lru: LruvecId, list: LruList) -> u64 {
        self.lruvec(lru).size(list, ZoneKind::Movable)
    }

    /// Base pages on a list and on those of the groups below.
    pub(crate) fn lru_size_below(&self, lru: LruvecId, list: LruList) -> u64 {
        self.sum_below(lru, |lru| self.lru_size(lru, list))
    }

    /// Isolated base pages of [anon, file] of a group and those below.
    pub(super) fn isolated_below(&self, lru: LruvecId) -> [u64; 2] {
        [0, 1].map(|kind| self.sum_below(lru, |lru| self.lruvec(lru).isolated[kind]))
    }

    /// Refaults of [anon, file] that made a page active, in a group and those below.
    pub(super) fn activated_below(&self, lru: LruvecId) -> [u64; 2] {
        [0, 1].map(|kind| self.sum_below(lru, |lru| self.lruvec(lru).activated[kind]))
    }

    fn sum_below(&self, lru: LruvecId, of: impl Fn(LruvecId) -> u64) -> u64 {
        if !self.memcg.in_use() {
            return of(lru);
        }
        let groups = self.memcg.subtree(MemcgId(lru.part)).iter();
        groups.map(|(memcg, _)| of(self.lruvec_of_memcg(lru.node, *memcg))).sum()
    }

    /// The lists that stand for all of a node or zone: its flags are there.
    pub(super) fn root_of(&self, lru: LruvecId) -> LruvecId {
        if self.zone_with(lru).is_some() { lru } else { LruvecId::of_node(lru.node) }
    }

    /// The gauge of a list over the whole node, for the recount.
    pub(super) fn lru_node_gauge(&self, node: NodeId, list: LruList) -> u64 {
        self.stat.node(node, NODE_GAUGES[list as usize])
    }

    /// Pages of a zone that reclaim could take; anonymous ones count while swap has room.
    pub(super) fn reclaimable_pages(&self, zone: ZoneId) -> u64 {
        self.zone_reclaimable_pages(zone, self.swap_free_pages() > 0)
    }

    /// The gauges of a list, for the recount.
    pub(super) fn lru_gauges(&self, zone: ZoneId, list: LruList) -> u64 {
        self.stat.zone(zone, ZONE_GAUGES[list as usize])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rules::Rules;

    use super::super::fixture::{LRU, Machine, NODE, rules_4_20};
    use super::*;
    use crate::Kind;

    #[test]
    fn new_pages_go_to_the_front_of_the_list_that_their_flags_name() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b c", Kind::File, 0);
        m.add("J K", Kind::File, Frame::ACTIVE);
        m.add("x", Kind::Anon, Frame::ACTIVE);
        assert_eq!(m.draw(), "inactive: c b a | active: K J");
        assert_eq!(m.draw_anon(), "inactive: | active: x");
        assert_eq!(m.mm.lru_size(LRU, LruList::InactiveFile), 3);
        assert_eq!(m.mm.stat.zone_sum(ZoneStat::ActiveAnon), 1);
        m.check();
    }

    #[test]
    fn a_page_whose_writeback_ended_goes_next_unless_it_was_dirtied_again() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b c", Kind::File, 0);
        m.add("J K", Kind::File, Frame::ACTIVE);
        m.mm.rotate_reclaimable(m.page('K'));
        assert_eq!(m.draw(), "inactive: c b a K | active: J");
        m.frame('c').set(Frame::DIRTY);
        m.mm.rotate_reclaimable(m.page('c'));
        assert_eq!(m.draw(), "inactive: c b a K | active: J");
        assert_eq!(m.mm.stat.event(VmEvent::Pgrotated), 1);
        m.check();
    }

    #[test]
    fn a_deactivated_page_goes_last_if_clean_and_first_if_it_must_be_written() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b", Kind::File, 0);
        m.add("J K", Kind::File, Frame::ACTIVE);
        m.frame('J').set(Frame::DIRTY);
        m.mm.deactivate_file_page(m.page('J'));
        m.mm.deactivate_file_page(m.page('K'));
        assert_eq!(m.draw(), "inactive: J b a K | active:");
        assert!(m.frame('J').has(Frame::RECLAIM) && !m.frame('K').has(Frame::RECLAIM));
        assert_eq!(m.mm.stat.event(VmEvent::Pgdeactivate), 2);
        m.frame('a').set(Frame::MAPPED);
        m.mm.deactivate_file_page(m.page('a'));
        assert_eq!(m.draw(), "inactive: J b a K | active:", "mapped pages are in use");
        m.check();
    }

    #[test]
    fn an_isolated_page_is_counted_until_it_comes_back() {
        let mut m = Machine::new(Rules::newest());
        m.add("a b c", Kind::File, 0);
        let b = m.page('b');
        assert!(m.mm.lru_isolate(b));
        assert!(!m.mm.lru_isolate(b), "it is on no list");
        assert_eq!(m.draw(), "inactive: c a | active:");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::IsolatedFile), 1);
        m.check();
        let env = m.env;
        m.mm.lru_putback(&env, b);
        assert_eq!(m.draw(), "inactive: b c a | active:");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::IsolatedFile), 0);
        m.check();
    }

    #[test]
    fn accesses_make_a_page_referenced_then_active_then_referenced_again() {
        let mut m = Machine::new(rules_4_20());
        m.add("a b c", Kind::File, 0);
        m.access('b');
        assert_eq!(m.draw(), "inactive: c b' a | active:");
        m.access('b');
        assert_eq!(m.draw(), "inactive: c a | active: b");
        m.access('b');
        assert_eq!(m.draw(), "inactive: c a | active: b'");
        assert_eq!(m.mm.nodes[0].lruvecs[0].nonresident_age, 1, "one activation");
        assert_eq!(m.mm.stat.event(VmEvent::Pgactivate), 1);
        // Three pages were added and one activated: of four looked at, one was rotated.
        assert_eq!((m.mm.nodes[0].lruvecs[0].scanned[1], m.mm.nodes[0].lruvecs[0].cost[1]), (4, 1));
        m.check();
    }

    /// The lists as plain vectors, front first.
    #[derive(Default)]
    struct Model([Vec<char>; 2], Vec<char>);

    impl Model {
        fn leave(&mut self, name: char) -> bool {
            let active = self.0[1].contains(&name);
            self.0.iter_mut().for_each(|list| list.retain(|n| *n != name));
            active
        }

        fn touch(&mut self, name: char, operation: u8) {
            let listed = self.0.iter().any(|list| list.contains(&name));
            match operation {
                0 if listed && !self.0[1].contains(&name) => {
                    self.leave(name);
                    self.0[1].insert(0, name);
                }
                1 if listed => {
                    self.leave(name);
                    self.0[0].push(name);
                }
                2 if listed => {
                    if self.leave(name) {
                        self.1.push(name);
                    }
                    self.0[0].push(name);
                }
                _ => {}
            }
        }

        fn draw(&self) -> String {
            let list = |at: usize| self.0[at].iter().map(|n| format!(" {n}")).collect::<String>();
            format!("inactive:{} | active:{}", list(0), list(1))
        }
    }

    proptest! {
        #[test]
        fn lists_equal_those_of_a_model(operations in prop::collection::vec((0_u8..3, 0_usize..8), 0..200)) {
            let mut m = Machine::new(Rules::newest());
            m.add("abcdefgh", Kind::File, 0);
            let mut model = Model::default();
            model.0[0] = "hgfedcba".chars().collect();
            for (operation, at) in operations {
                let name = "abcdefgh".as_bytes()[at] as char;
                let pfn = m.page(name);
                match operation {
                    0 => m.mm.activate_page(pfn),
                    1 => m.mm.rotate_reclaimable(pfn),
                    _ => m.mm.deactivate_file_page(pfn),
                }
                model.touch(name, operation);
                prop_assert_eq!(m.draw(), model.draw());
            }
            prop_assert_eq!(m.mm.stat.event(VmEvent::Pgdeactivate), model.1.len() as u64);
            m.check();
        }
    }
}
