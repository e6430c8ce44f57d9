//! A small machine whose LRU lists tests can set up and draw.

use rules::{
    AnonStart, BoostedSlab, KswapdZone, ProportionalReclaim, ReclaimForCompaction, ReclaimThrottle, Rules, ScanBalance,
    ScanCounting, SlabPressure, Tunables, WatermarkBoost,
};
use units::{CpuId, FileId, Gfp, Nanos, NodeId, Order, Pages, Pfn};

use crate::env::TaskFlags;
use crate::{AllocRequest, Costs, Env, Frame, Kind, LruList, MemoryLayout, Mm, NodeSpec, ZoneKind, ZoneSpan};

pub(super) const NODE: NodeId = NodeId(0);
/// First frame of the Normal zone; below it lies DMA32.
pub(super) const NORMAL_START: u32 = 16_384;
const NORMAL_PAGES: u32 = 65_536;

/// What 4.20 does, as far as reclaim is concerned.
pub(super) fn rules_4_20() -> Rules {
    Rules {
        watermark_boost: WatermarkBoost::Off,
        boosted_slab: BoostedSlab::Skip,
        slab_pressure: SlabPressure::PriorityAtLeastBatch,
        reclaim_throttle: ReclaimThrottle::Congestion,
        anon_start: AnonStart::Active,
        scan_balance: ScanBalance::RotatedRatio,
        scan_counting: ScanCounting::Entries,
        reclaim_for_compaction: ReclaimForCompaction::UntilGapReclaimed,
        proportional_reclaim: ProportionalReclaim::ScanRest,
        kswapd_zone: KswapdZone::LowestUnlessAsked,
        ..Rules::newest()
    }
}

/// One node: 64 MiB of DMA32 and 256 MiB of Normal.
pub(super) fn layout() -> MemoryLayout {
    let zone = |kind, start, pages| ZoneSpan {
        kind,
        start: Pfn(start),
        spanned: Pages(u64::from(pages)),
        present: Pages(u64::from(pages)),
        managed: Pages(u64::from(pages)),
        hole: None,
    };
    let zones = vec![zone(ZoneKind::Dma32, 0, NORMAL_START), zone(ZoneKind::Normal, NORMAL_START, NORMAL_PAGES)];
    MemoryLayout { nodes: vec![NodeSpec { zones, distance: vec![10] }], cpu_nodes: vec![NODE] }
}

pub(super) fn env(kswapd: bool) -> Env {
    let task = TaskFlags { memalloc: true, kswapd, oom_victim: false };
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NODE, task }
}

/// A machine and the pages that a test names by letters.
pub(super) struct Machine {
    pub mm: Mm,
    pub env: Env,
    names: Vec<(char, Pfn)>,
}

impl Machine {
    pub fn new(rules: Rules) -> Machine {
        let mm = Mm::new(&layout(), rules, Tunables::default(), Costs::default());
        Machine { mm, env: env(true), names: Vec::new() }
    }

    /// Adds pages of a kind to the lists that `flags` name; the last one is the most recent.
    pub fn add(&mut self, names: &str, kind: Kind, flags: u32) {
        for name in names.chars().filter(|c| !c.is_whitespace()) {
            self.add_from(name, kind, flags, Gfp::HIGHUSER_MOVABLE);
        }
    }

    /// Adds one page from the zones that `gfp` allows.
    pub fn add_from(&mut self, name: char, kind: Kind, flags: u32, gfp: Gfp) {
        let request = AllocRequest { gfp, order: Order(0), node: NODE };
        let pfn = self.mm.alloc_pages(&self.env, request).expect("the machine is empty");
        let frame = &mut self.mm.frames[pfn];
        frame.set_kind(kind, Order(0));
        frame.owner = FileId(0).0;
        frame.index = self.names.len() as u32;
        frame.set(flags | if kind == Kind::Anon { Frame::SWAPBACKED } else { 0 });
        self.mm.lru_add(&self.env, pfn);
        self.names.push((name, pfn));
    }

    pub fn page(&self, name: char) -> Pfn {
        self.names.iter().find(|(n, _)| *n == name).expect("a page of that name").1
    }

    pub fn frame(&mut self, name: char) -> &mut Frame {
        let pfn = self.page(name);
        &mut self.mm.frames[pfn]
    }

    pub fn access(&mut self, name: char) {
        let (env, pfn) = (self.env, self.page(name));
        self.mm.mark_page_accessed(&env, pfn);
    }

    fn draw_list(&self, list: LruList) -> String {
        let list = self.mm.nodes[0].lruvec.lists[list as usize];
        let name = |pfn: Pfn| self.names.iter().find(|(_, p)| *p == pfn).map_or('?', |(n, _)| *n);
        let mark = |pfn: Pfn| if self.mm.frames[pfn].has(Frame::REFERENCED) { "'" } else { "" };
        list.iter(&self.mm.frames).map(|pfn| format!(" {}{}", name(pfn), mark(pfn))).collect()
    }

    /// The file lists, most recent first; `'` marks a referenced page.
    pub fn draw(&self) -> String {
        let [inactive, active] = [LruList::InactiveFile, LruList::ActiveFile].map(|list| self.draw_list(list));
        format!("inactive:{inactive} | active:{active}")
    }

    /// The anonymous lists.
    pub fn draw_anon(&self) -> String {
        let [inactive, active] = [LruList::InactiveAnon, LruList::ActiveAnon].map(|list| self.draw_list(list));
        format!("inactive:{inactive} | active:{active}")
    }

    /// Every list, size and gauge is as it should be.
    pub fn check(&self) {
        let mut violations = Vec::new();
        self.mm.validate_reclaim(&mut violations);
        assert!(violations.is_empty(), "{violations:?}");
    }
}
