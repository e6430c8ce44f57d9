//! A small machine whose LRU lists tests can set up and draw.

use rules::{
    AnonStart, BoostedSlab, Compaction, KswapdBalance, KswapdRun, KswapdSleep, KswapdZone, LruScope,
    ProportionalReclaim, ReclaimForCompaction, ReclaimThrottle, Rules, ScanBalance, ScanCounting, SlabCaller,
    SlabPressure, SwapinLru, Tunables, WatermarkBoost, WatermarkCheck,
};
use units::{Bytes, CpuId, FileId, Gfp, Nanos, NodeId, Order, Pages, Pfn};

use super::{BalancePgdat, DirectReclaim, Step, ThrottleReason};
use crate::env::TaskFlags;
use crate::stat::VmEvent;
use crate::vfs::FsSpec;
use crate::{
    AllocRequest, Costs, Effect, Env, Frame, Kind, LruList, LruvecId, MemoryLayout, Mm, NodeSpec, ZoneKind, ZoneSpan,
};

pub(super) const NODE: NodeId = NodeId(0);
/// Its LRU lists.
pub(super) const LRU: LruvecId = LruvecId::of_node(NODE);
/// First frame of the Normal zone; below it lies DMA32.
pub(super) const NORMAL_START: u32 = 16_384;
const NORMAL_PAGES: u32 = 65_536;
/// Block device of the file system.
pub(super) const DEVICE: u16 = 3;

/// What 4.20 does, as far as reclaim is concerned.
pub(super) fn rules_4_20() -> Rules {
    Rules {
        large_folios: rules::LargeFolios::Never,
        large_migration: rules::LargeMigration::Never,
        watermark_boost: WatermarkBoost::Off,
        boosted_slab: BoostedSlab::Skip,
        slab_pressure: SlabPressure::PriorityAtLeastBatch,
        reclaim_throttle: ReclaimThrottle::Congestion,
        isolation_wait: rules::IsolationWait::Sleep,
        anon_start: AnonStart::Active,
        swapin_lru: SwapinLru::Active,
        swapin_workingset: rules::SwapinWorkingset::EveryPage,
        eviction_clock: rules::EvictionClock::TicksFirst,
        empty_zones: rules::EmptyZones::Nothing,
        scan_balance: ScanBalance::RotatedRatio,
        scan_counting: ScanCounting::Entries,
        reclaim_for_compaction: ReclaimForCompaction::UntilGapReclaimed,
        proportional_reclaim: ProportionalReclaim::ScanRest,
        kswapd_zone: KswapdZone::LowestUnlessAsked,
        ..Rules::newest()
    }
}

/// What 2.6.39 does, as far as kswapd is concerned: without compaction.
pub(super) fn rules_2_6_39() -> Rules {
    Rules {
        slab_pressure: SlabPressure::LruScannedInFull,
        slab_caller: SlabCaller::Reclaimer,
        lru_scope: LruScope::Zone,
        kswapd_balance: KswapdBalance::EveryZone,
        kswapd_run: KswapdRun::AgainWithSlab,
        kswapd_sleep: KswapdSleep::IfBalanced,
        watermark_check: WatermarkCheck::EveryOrder,
        compaction: Compaction::NotBuilt,
        ..rules_4_20()
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
    let task = TaskFlags { memalloc: true, kswapd, ..TaskFlags::default() };
    Env { now: Nanos::ZERO, cpu: CpuId(0), node: NODE, task }
}

/// A machine and the pages that a test names by letters.
pub(super) struct Machine {
    pub(super) mm: Mm,
    pub(super) env: Env,
    /// The file that all page cache belongs to.
    pub(super) file: FileId,
    pub(super) names: Vec<(char, Pfn)>,
    next_index: u32,
}

impl Machine {
    pub(super) fn new(rules: Rules) -> Machine {
        Machine::tuned(rules, Tunables::default())
    }

    /// One with tunables of its own.
    pub(super) fn tuned(rules: Rules, tunables: Tunables) -> Machine {
        let mut mm = Mm::new(&layout(), rules, tunables, Costs::default());
        let env = env(true);
        let fs = mm.vfs_mkfs(FsSpec::xfs(DEVICE, Bytes::gib(4)));
        let root = mm.vfs_root(fs);
        let file = mm.vfs_create(&env, root).expect("memory is plentiful").file;
        Machine { mm, env, file, names: Vec::new(), next_index: 0 }
    }

    /// Adds pages of a kind to the lists that `flags` name; the last one is the most recent.
    pub(super) fn add(&mut self, names: &str, kind: Kind, flags: u32) {
        for name in names.chars().filter(|c| !c.is_whitespace()) {
            self.add_from(name, kind, flags, Gfp::HIGHUSER_MOVABLE);
        }
    }

    /// Adds one page from the zones that `gfp` allows.
    pub(super) fn add_from(&mut self, name: char, kind: Kind, flags: u32, gfp: Gfp) {
        let pfn = self.add_page(kind, flags, gfp).expect("the machine is empty");
        self.names.push((name, pfn));
    }

    /// Adds one page without a name; `None` once the fast path has nothing left.
    pub(super) fn add_page(&mut self, kind: Kind, flags: u32, gfp: Gfp) -> Option<Pfn> {
        let request = AllocRequest { gfp, order: Order(0), node: NODE };
        let (mm, env) = (&mut self.mm, &self.env);
        let pfn = mm.alloc_pages(env, request)?;
        if kind == Kind::Anon {
            let frame = &mut mm.frames[pfn];
            frame.set_kind(kind, Order(0));
            frame.set(flags | Frame::SWAPBACKED);
            mm.lru_add(env, pfn);
            return Some(pfn);
        }
        if mm.pagecache_insert(env, pfn, self.file, self.next_index).is_err() {
            mm.free_pages(env, pfn, Order(0));
            return None;
        }
        self.next_index += 1;
        if flags & Frame::ACTIVE != 0 {
            mm.lru_del(pfn);
            mm.frames[pfn].set(flags);
            mm.lru_add(env, pfn);
        }
        mm.frames[pfn].set(flags);
        Some(pfn)
    }

    /// Fills memory with pages until the fast path has nothing left; returns how many.
    pub(super) fn fill(&mut self, kind: Kind, flags: u32) -> u64 {
        let mut pages = 0;
        while self.add_page(kind, flags, Gfp::HIGHUSER_MOVABLE).is_some() {
            pages += 1;
        }
        pages
    }

    /// Whether the node has a zone above its high watermark.
    pub(super) fn balanced(&self) -> bool {
        self.mm.pgdat_balanced(NODE, Order(0), ZoneKind::Normal)
    }

    /// Effects since this was last called.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.mm.effects.take_into(&mut effects);
        effects
    }

    /// Runs something to its end, and says how often it took a step and what it waited for. Each step may look at 32
    /// pages of the inactive lists at most, or 64 of a generation, or at a huge one.
    pub(super) fn run(&mut self, mut step: impl FnMut(&mut Mm, &Env) -> Step) -> (u32, Vec<ThrottleReason>) {
        let (mut steps, mut waits) = (0, Vec::new());
        let batch_max = if self.mm.lru_gen_enabled() { 64 } else { 32 };
        loop {
            let scanned = |mm: &Mm| mm.stat.event(VmEvent::PgscanKswapd) + mm.stat.event(VmEvent::PgscanDirect);
            let before = scanned(&self.mm);
            let result = step(&mut self.mm, &self.env);
            let batch = scanned(&self.mm) - before;
            assert!(batch <= batch_max || batch == 512, "{batch} pages in a step");
            steps += 1;
            assert!(steps < 10_000_000, "it does not end");
            match result {
                Step::More => {}
                Step::OutOfMemory => unreachable!("no test sets a least age"),
                Step::Throttle(reason, _) => {
                    self.mm.throttle_end(NODE, reason);
                    waits.push(reason);
                }
                Step::Wait(bio) => self.mm.submit(&self.env, bio),
                Step::WaitPage(pfn) => self.written(pfn),
                Step::WaitAging(node) => panic!("nobody else walks page tables on {node:?}"),
                Step::Done => return (steps, waits),
            }
        }
    }

    /// The writeback of a page ends, of which nothing but its flag ever began.
    pub(super) fn written(&mut self, pfn: Pfn) {
        assert!(self.mm.frames[pfn].take(Frame::WRITEBACK), "{pfn:?} is not being written");
    }

    /// A run of kswapd; returns it and what it waited for.
    pub(super) fn kswapd(&mut self, order: Order) -> (BalancePgdat, Vec<ThrottleReason>) {
        let mut run = BalancePgdat::new(&mut self.mm, NODE, order, ZoneKind::Normal);
        let (_, waits) = self.run(|mm, env| run.step(mm, env));
        (run, waits)
    }

    /// A direct reclaim; returns its progress and what it waited for.
    pub(super) fn direct(&mut self, gfp: Gfp, order: Order) -> (u64, Vec<ThrottleReason>) {
        self.env = env(false);
        let request = AllocRequest { gfp, order, node: NODE };
        let mut reclaim = DirectReclaim::new(request, ZoneKind::Normal);
        let (_, waits) = self.run(|mm, env| reclaim.step(mm, env));
        self.env = env(true);
        (reclaim.progress(), waits)
    }

    /// The name of a page.
    pub(super) fn name(&self, pfn: Pfn) -> char {
        self.names.iter().find(|(_, p)| *p == pfn).map_or('?', |(n, _)| *n)
    }

    pub(super) fn page(&self, name: char) -> Pfn {
        self.names.iter().find(|(n, _)| *n == name).expect("a page of that name").1
    }

    pub(super) fn frame(&mut self, name: char) -> &mut Frame {
        let pfn = self.page(name);
        &mut self.mm.frames[pfn]
    }

    pub(super) fn access(&mut self, name: char) {
        let (env, pfn) = (self.env, self.page(name));
        self.mm.mark_page_accessed(&env, pfn);
    }

    fn draw_list(&self, list: LruList) -> String {
        let list = self.mm.nodes[0].lruvecs[0].lists[list as usize];
        let mark = |pfn: Pfn| if self.mm.frames[pfn].has(Frame::REFERENCED) { "'" } else { "" };
        list.iter(&self.mm.frames).map(|pfn| format!(" {}{}", self.name(pfn), mark(pfn))).collect()
    }

    /// The file lists, most recent first; `'` marks a referenced page.
    pub(super) fn draw(&self) -> String {
        let [inactive, active] = [LruList::InactiveFile, LruList::ActiveFile].map(|list| self.draw_list(list));
        format!("inactive:{inactive} | active:{active}")
    }

    /// The anonymous lists.
    pub(super) fn draw_anon(&self) -> String {
        let [inactive, active] = [LruList::InactiveAnon, LruList::ActiveAnon].map(|list| self.draw_list(list));
        format!("inactive:{inactive} | active:{active}")
    }

    /// Every list, size and gauge is as it should be.
    pub(super) fn check(&self) {
        let mut violations = Vec::new();
        self.mm.validate_reclaim(&mut violations);
        assert!(violations.is_empty(), "{violations:?}");
    }
}
