//! Recounts address spaces against the frame table and the counters.

use units::{NodeId, Pfn, SpaceId};

use super::pgtable::Level;
use super::{REGION_PAGES, REGION_SHIFT, Region, Slot, VmaKind};
use crate::stat::{NodeStat, ZoneStat};
use crate::{Frame, Kind, Mm, Violation};

/// What the page tables hold.
#[derive(Default)]
struct Recount {
    rss: u64,
    swapents: u64,
    tables: u64,
    leaves: u64,
    mapped: Vec<i64>,
    huge: Vec<i64>,
    table_zones: Vec<i64>,
}

impl Mm {
    /// Checks every address space: each entry leads to a frame that leads back, and the counters equal a recount.
    pub(crate) fn validate_anon(&self, violations: &mut Vec<Violation>) {
        let mut report = |pfn: Option<Pfn>, what: String| violations.push(Violation { place: "anon", pfn, what });
        let mut all = Recount {
            mapped: vec![0; self.nodes.len()],
            huge: vec![0; self.nodes.len()],
            table_zones: vec![0; self.zones.len()],
            ..Recount::default()
        };
        for id in self.spaces.live() {
            let before = (all.rss, all.swapents, all.tables);
            self.recount_space(id, &mut all, &mut report);
            let space = &self.spaces[id];
            let counted = (space.rss, space.swapents, space.tables.nr_frames());
            let found = (all.rss - before.0, all.swapents - before.1, all.tables - before.2);
            if counted != found {
                report(None, format!("{id:?}: rss, swap, tables {counted:?}, recount {found:?}"));
            }
        }
        let mut queued: Vec<SpaceId> = self.khugepaged.queued().collect();
        queued.sort_unstable();
        let flagged: Vec<SpaceId> = self.spaces.live().filter(|id| self.spaces[*id].khugepaged).collect();
        if queued != flagged {
            report(None, format!("khugepaged has {queued:?} in its queue, of which {flagged:?} know"));
        }
        if all.leaves != self.spaces.leaves.in_use() as u64 {
            report(None, format!("{} page tables in use, recount {}", self.spaces.leaves.in_use(), all.leaves));
        }
        for node in 0..self.nodes.len() {
            for (item, found) in [(NodeStat::AnonMapped, &all.mapped), (NodeStat::AnonThps, &all.huge)] {
                let counted = self.stat.node(NodeId(node as u8), item);
                if counted as i64 != found[node] {
                    report(None, format!("node {node}: {} is {counted}, recount {}", item.name(), found[node]));
                }
            }
        }
        for (zone, found) in self.zones.iter().zip(&all.table_zones) {
            let counted = self.stat.zone(zone.id, ZoneStat::PageTablePages);
            if counted as i64 != *found {
                report(None, format!("{:?}: nr_page_table_pages is {counted}, recount {found}", zone.id));
            }
        }
        self.validate_anon_frames(&mut report);
    }

    fn recount_space(&self, id: SpaceId, all: &mut Recount, report: &mut impl FnMut(Option<Pfn>, String)) {
        let space = &self.spaces[id];
        for pair in space.vmas.windows(2) {
            if pair[0].end > pair[1].start {
                report(None, format!("{id:?}: areas {pair:?} overlap"));
            }
        }
        let pgd = space.tables.upper_frames().filter(|pfn| self.frames[*pfn].kind() == Kind::PageTable);
        for (nth, pfn) in pgd.enumerate() {
            let level = if nth == 0 { Level::Pgd } else { Level::Pmd };
            all.tables += u64::from(level != Level::Pgd);
            all.table_zones[self.zone_of(pfn).index()] += i64::from(self.table_counted(level));
        }
        for (n, region) in space.tables.regions().iter().enumerate() {
            let base = (n as u32) << REGION_SHIFT;
            let table = match *region {
                Region::None => continue,
                Region::Huge { pfn, deposit } => {
                    self.check_mapping(id, base, pfn, report);
                    all.rss += u64::from(REGION_PAGES);
                    all.mapped[self.node_of(pfn).index()] += i64::from(REGION_PAGES);
                    all.huge[self.node_of(pfn).index()] += 1;
                    deposit
                }
                Region::Table(leaf) => {
                    all.leaves += 1;
                    for vpn in base..base + REGION_PAGES {
                        self.recount_slot(id, leaf, vpn, all, report);
                    }
                    self.spaces.leaves.frame(leaf)
                }
            };
            if self.frames[table].kind() != Kind::PageTable || self.frames[table].place != id.0 {
                report(Some(table), format!("is no page table of {id:?}"));
            }
            all.tables += 1;
            all.table_zones[self.zone_of(table).index()] += i64::from(self.table_counted(Level::Pte));
        }
    }

    fn recount_slot(
        &self,
        id: SpaceId,
        leaf: u32,
        vpn: u32,
        all: &mut Recount,
        report: &mut impl FnMut(Option<Pfn>, String),
    ) {
        let slot = self.spaces.leaves.get(leaf, vpn);
        if slot != Slot::None && self.spaces[id].find(vpn).is_none() {
            report(None, format!("{id:?} maps page {vpn} outside its areas"));
        }
        match slot {
            Slot::Page(pfn) if self.frames[pfn].kind() == Kind::File => self.check_file_mapping(id, vpn, pfn, report),
            Slot::Page(pfn) => {
                self.check_mapping(id, vpn, pfn, report);
                all.rss += 1;
                all.mapped[self.node_of(pfn).index()] += 1;
            }
            Slot::Swap(entry) => {
                all.swapents += 1;
                if !self.swap.is_used(entry) {
                    report(None, format!("{id:?} page {vpn}: {entry:?} is free"));
                }
            }
            Slot::Zero | Slot::None => {}
        }
    }

    fn check_mapping(&self, id: SpaceId, vpn: u32, pfn: Pfn, report: &mut impl FnMut(Option<Pfn>, String)) {
        let frame = &self.frames[pfn];
        if frame.kind() != Kind::Anon || !frame.has(Frame::MAPPED | Frame::SWAPBACKED | Frame::UPTODATE) {
            report(Some(pfn), format!("{id:?} maps it at {vpn}; it is {:?}", frame.kind()));
        } else if self.anon_home(pfn) != (id, vpn) {
            report(Some(pfn), format!("{id:?} maps it at {vpn}; it belongs to {:?}", self.anon_home(pfn)));
        }
    }

    fn check_file_mapping(&self, id: SpaceId, vpn: u32, pfn: Pfn, report: &mut impl FnMut(Option<Pfn>, String)) {
        let frame = &self.frames[pfn];
        let own = self.spaces[id].find(vpn).map(|vma| vma.kind);
        let ((owner, _), indices) = (self.file_home(pfn), self.folio_indices(pfn));
        let right =
            matches!(own, Some(VmaKind::File { file, base }) if file == owner && indices.contains(&(vpn - base)));
        if !right || !frame.has(Frame::MAPPED | Frame::UPTODATE) {
            report(Some(pfn), format!("{id:?} maps it at {vpn}; it holds {indices:?} of {owner:?}"));
        }
    }

    /// Every anonymous frame is mapped where it says, or is in the swap cache, or is isolated and has lost its owner.
    fn validate_anon_frames(&self, report: &mut impl FnMut(Option<Pfn>, String)) {
        for pfn in (0..self.frames.len() as u32).map(Pfn) {
            let frame = &self.frames[pfn];
            if frame.kind() != Kind::Anon {
                continue;
            }
            let mapped = frame.has(Frame::MAPPED);
            if mapped {
                let (space, vpn) = self.anon_home(pfn);
                if self.slot_of(space, vpn) != Slot::Page(pfn) {
                    report(Some(pfn), format!("is not what {space:?} maps at {vpn}"));
                }
            }
            if frame.has(Frame::SWAPCACHE) && self.swap.cached(self.swap_entry(pfn)) != Some(pfn) {
                report(Some(pfn), format!("{:?} holds another page", self.swap_entry(pfn)));
            }
            if !mapped && self.is_orphan(pfn) && !frame.has_any(Frame::ISOLATED | Frame::LOCKED | Frame::WRITEBACK) {
                report(Some(pfn), "belongs to nobody and is not freed".to_string());
            }
        }
    }
}
