//! khugepaged: which regions of base pages it makes huge pages of.
//!
//! Rule: spaces with an area that may have huge pages queue up, in the order in which that was found out. khugepaged goes over
//! them, some 4096 pages at a time, region by region, and remembers where it was. A region becomes a huge page if it lies whole in such an
//! area, has a page table with no more than `max_ptes_none` empty entries, one of its pages was used lately, and all of them are ordinary:
//! on an LRU list, in no swap cache, isolated or locked by nobody. The huge page comes from the node that most of the pages are on; they
//! are copied, what was missing is zeroed, and they are freed.
//! Source: `khugepaged_scan_mm_slot()`, `khugepaged_scan_pmd()`, `collapse_huge_page()`, `__khugepaged_enter()`, `khugepaged_find_target_node()`
//! (mm/huge_memory.c, 3.19; mm/khugepaged.c, 4.20 and 6.12).
//! Since/until: [`CollapsePages`].
//! Abstracted: a space that a mapping makes eligible queues up once it has a page, as until 5.17; who faults a huge page queues up at once. A group
//! without room for a huge page keeps its base pages; the kernel reclaims for it. Of nodes with as many pages each it is the first; the kernel takes
//! turns among them.
//! Omitted: pages of files and of tmpfs; reading back up to 64 pages from swap (4.8): a region with a swapped page stays as it is; that nobody else
//! faults in a space while its pages are copied (`mmap_lock`).

use std::collections::VecDeque;
use std::ops::Range;

use rules::{AnonStart, CollapsePages, ThpEffort};
use smallvec::{SmallVec, smallvec};
use units::{Gfp, NodeId, PAGEBLOCK_ORDER, Pfn, SpaceId};

use super::fault::access_flags;
use super::{REGION_PAGES, Region, Slot, Tally, Vma, VmaKind, thp_enabled_for};
use crate::stat::{NodeStat, VmEvent};
use crate::{AllocRequest, Effect, Env, Frame, Kind, Mm};

/// The spaces that khugepaged goes over, and where it is.
#[derive(Debug, Default)]
pub(crate) struct Khugepaged {
    /// In the order in which they came.
    queue: VecDeque<SpaceId>,
    /// The one it is in, by its place in the queue, and the page to go on with; none between two rounds.
    at: Option<(usize, u32)>,
}

/// A region that is to become a huge page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollapseTarget {
    space: SpaceId,
    /// First page of the region.
    base: u32,
    /// Where the huge page is to come from.
    node: NodeId,
}

/// What a look at spaces came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KhugepagedScan {
    /// Pages that it went over, and one for each space and area.
    pub progress: u32,
    /// What it ended at.
    pub target: Option<CollapseTarget>,
}

/// Regions that lie whole inside an area.
fn whole_regions(vma: &Vma) -> Range<u32> {
    let start = vma.start.next_multiple_of(REGION_PAGES);
    start..(vma.end & !(REGION_PAGES - 1)).max(start)
}

impl Khugepaged {
    /// Takes a space out of the queue; who was in it goes on with the next.
    fn remove(&mut self, space: SpaceId) {
        let Some(place) = self.queue.iter().position(|queued| *queued == space) else { return };
        self.queue.remove(place);
        self.at = match self.at {
            Some((at, _)) if at == place => Some((at, 0)),
            Some((at, vpn)) if at > place => Some((at - 1, vpn)),
            other => other,
        };
    }

    /// The queue, for checks.
    pub(super) fn queued(&self) -> impl Iterator<Item = SpaceId> + '_ {
        self.queue.iter().copied()
    }
}

impl Mm {
    /// Whether there is a space to go over.
    pub fn khugepaged_has_work(&self) -> bool {
        !self.khugepaged.queue.is_empty()
    }

    /// Whether a round is over, or none has begun.
    pub fn khugepaged_between_rounds(&self) -> bool {
        self.khugepaged.at.is_none()
    }

    /// Puts a space in the queue, unless it is there (`khugepaged_enter()`).
    pub(super) fn khugepaged_enter(&mut self, space: SpaceId) {
        if std::mem::replace(&mut self.spaces[space].khugepaged, true) {
            return;
        }
        if self.khugepaged.queue.is_empty() {
            self.effects.push(Effect::WakeKhugepaged);
        }
        self.khugepaged.queue.push_back(space);
    }

    /// The same if the area around a page may have huge pages now, and pages are mapped already.
    pub(super) fn khugepaged_enter_area(&mut self, space: SpaceId, vpn: u32) {
        let owner = &self.spaces[space];
        if owner.rss > 0 && owner.find(vpn).is_some_and(|vma| self.may_collapse_in(&vma)) {
            self.khugepaged_enter(space);
        }
    }

    /// A space ends (`khugepaged_exit()`).
    pub(super) fn khugepaged_exit(&mut self, space: SpaceId) {
        if self.spaces[space].khugepaged {
            self.khugepaged.remove(space);
        }
    }

    fn may_collapse_in(&self, vma: &Vma) -> bool {
        vma.kind == VmaKind::Anon
            && thp_enabled_for(self.tunables.thp_enabled, vma.thp)
            && !whole_regions(vma).is_empty()
    }

    /// Goes over regions until something can be made a huge page, `pages` pages were looked at, or a space is done.
    pub fn khugepaged_scan_mm_slot(&mut self, pages: u32) -> KhugepagedScan {
        let (place, from) = *self.khugepaged.at.get_or_insert((0, 0));
        let Some(&space) = self.khugepaged.queue.get(place) else {
            self.khugepaged.at = None;
            return KhugepagedScan { progress: 1, target: None };
        };
        let (scan, stop) = self.scan_space(space, from, pages);
        self.khugepaged.at = match stop {
            Some(vpn) => Some((place, vpn)),
            None if place + 1 < self.khugepaged.queue.len() => Some((place + 1, 0)),
            None => None,
        };
        scan
    }

    /// Goes over the regions of a space from a page on; says where to go on there, unless it is done.
    fn scan_space(&mut self, space: SpaceId, from: u32, pages: u32) -> (KhugepagedScan, Option<u32>) {
        let mut progress = 1;
        let first = self.spaces[space].vmas.partition_point(|vma| vma.end <= from);
        for nth in first..self.spaces[space].vmas.len() {
            let vma = self.spaces[space].vmas[nth];
            if !self.may_collapse_in(&vma) {
                progress += 1;
                continue;
            }
            let regions = whole_regions(&vma);
            for base in (regions.start.max(from)..regions.end).step_by(REGION_PAGES as usize) {
                progress += REGION_PAGES;
                let target = self.khugepaged_scan_pmd(space, base);
                if target.is_some() || progress >= pages {
                    return (KhugepagedScan { progress, target }, Some(base + REGION_PAGES));
                }
            }
        }
        (KhugepagedScan { progress, target: None }, None)
    }

    /// Whether the region at a page can be a huge page.
    fn khugepaged_scan_pmd(&mut self, space: SpaceId, base: u32) -> Option<CollapseTarget> {
        let Region::Table(leaf) = self.spaces[space].tables.region(base) else { return None };
        let (mut none, mut used) = (0, false);
        let mut nodes: SmallVec<[u32; 8]> = smallvec![0; self.nodes.len()];
        for vpn in base..base + REGION_PAGES {
            self.charge(self.costs.walk_pte);
            match self.spaces.leaves.get(leaf, vpn) {
                Slot::None | Slot::Zero => {
                    none += 1;
                    if none > self.tunables.khugepaged_max_ptes_none {
                        return None;
                    }
                }
                Slot::Page(pfn) if self.is_ordinary(pfn) => {
                    used |= self.frames[pfn].has_any(Frame::YOUNG | Frame::REFERENCED);
                    nodes[self.node_of(pfn).index()] += 1;
                }
                Slot::Page(_) | Slot::Swap(_) => return None,
            }
        }
        // The first of those with as many.
        let node = (0..nodes.len()).rev().max_by_key(|node| nodes[*node])?;
        used.then_some(CollapseTarget { space, base, node: NodeId(node as u8) })
    }

    /// Nobody but the page table and the LRU list holds a page.
    fn is_ordinary(&self, pfn: Pfn) -> bool {
        const HELD: u32 = Frame::SWAPCACHE | Frame::LOCKED | Frame::WRITEBACK | Frame::PINNED | Frame::ISOLATED;
        let frame = &self.frames[pfn];
        let written = self.rules.collapse_pages == CollapsePages::Any || frame.has(Frame::WRITTEN);
        written && frame.has(Frame::LRU) && !frame.has_any(HELD)
    }

    /// What is asked for to make a region a huge page of.
    pub fn khugepaged_request(&self, target: CollapseTarget) -> AllocRequest {
        let effort = if self.rules.thp_effort == ThpEffort::Once { Gfp::NORETRY } else { Gfp::NONE };
        let gfp = if self.tunables.khugepaged_defrag == 1 { Gfp::TRANSHUGE.with(effort) } else { Gfp::TRANSHUGE_LIGHT };
        AllocRequest { gfp: gfp.with(Gfp::THISNODE), order: PAGEBLOCK_ORDER, node: target.node }
    }

    /// An allocation for it ended.
    pub fn khugepaged_allocated(&mut self, success: bool) {
        let event = if success { VmEvent::ThpCollapseAlloc } else { VmEvent::ThpCollapseAllocFailed };
        self.stat.count(event, 1);
    }

    /// Makes a region a huge page, if it still can be; else `pfn` is freed. A group without room for it keeps its base
    /// pages.
    pub fn collapse_huge_page(&mut self, env: &Env, target: CollapseTarget, pfn: Pfn) -> bool {
        let CollapseTarget { space, base, .. } = target;
        let owner = &self.spaces[space];
        let area = owner.find(base).filter(|vma| owner.live && vma.holds_region(base) && self.may_collapse_in(vma));
        let can = area.is_some() && self.khugepaged_scan_pmd(space, base).is_some();
        let memcg = self.memcg_of_space(space);
        if !can || self.memcg_reserve(env, memcg, PAGEBLOCK_ORDER, Gfp::TRANSHUGE).is_err() {
            self.free_pages(env, pfn, PAGEBLOCK_ORDER);
            return false;
        }
        let mut tally = Tally::default();
        let deposit = self.empty_table(env, space, base, &mut tally);
        self.map_collapsed(env, (space, base), (pfn, deposit), &mut tally);
        tally.settle(self, space);
        true
    }

    /// Copies and frees the pages of a region; returns the frame of its page table.
    fn empty_table(&mut self, env: &Env, space: SpaceId, base: u32, tally: &mut Tally) -> Pfn {
        let Region::Table(leaf) = self.spaces[space].tables.region(base) else { unreachable!("it was looked at") };
        self.tlb_unmapped(space, true);
        self.tlb_flush();
        for vpn in base..base + REGION_PAGES {
            let slot = self.spaces.leaves.get(leaf, vpn);
            self.spaces.leaves.set(leaf, vpn, Slot::None);
            let Slot::Page(old) = slot else {
                self.charge(self.costs.zero_page);
                continue;
            };
            tally.map(self, old, -1);
            self.charge(self.costs.copy_page + self.costs.zap_page);
            self.frames[old].clear(Frame::MAPPED);
            self.free_unmapped(env, old);
        }
        self.spaces.leaves.release(leaf)
    }

    /// Maps the huge page where the page table was, which stays in deposit.
    fn map_collapsed(
        &mut self,
        env: &Env,
        (space, base): (SpaceId, u32),
        (pfn, deposit): (Pfn, Pfn),
        tally: &mut Tally,
    ) {
        self.spaces[space].tables.set_region(base, Region::Huge { pfn, deposit });
        self.set_huge_home(pfn, (space, base));
        let start = if self.rules.anon_start == AnonStart::Active { Frame::ACTIVE } else { 0 };
        let frame = &mut self.frames[pfn];
        frame.set_kind(Kind::Anon, PAGEBLOCK_ORDER);
        frame.set(Frame::SWAPBACKED | Frame::MAPPED | Frame::UPTODATE | access_flags(true) | start);
        self.memcg_commit(env, self.memcg_of_space(space), pfn);
        tally.map(self, pfn, i64::from(REGION_PAGES));
        self.stat.node_add(self.node_of(pfn), NodeStat::AnonThps, 1);
        self.lru_add(env, pfn);
    }
}
