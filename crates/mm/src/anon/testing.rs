//! A small machine for tests of anonymous memory and swap.

use rules::{
    AnonStart, LruGenCaps, OomScore, PageTableStat, Rules, SlotOfWritten, SwapReadahead, SwapinLru, ThpDefrag,
    ThpEnabled, ThpNode, Tunables,
};
use units::{CpuId, Gfp, Nanos, NodeId, Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pages, Pfn, SpaceId};

use super::{Touch, TouchStop};
use crate::stat::{NodeStat, VmEvent};
use crate::swap::SwapSpec;
use crate::{
    AllocRequest, BioTarget, Costs, Effect, Env, Frame, MemoryLayout, Mm, NodeSpec, TaskFlags, ZoneKind, ZoneSpan,
};

/// More CPU time than any test uses.
pub(crate) const FOREVER: u64 = 1 << 60;

/// What 4.20-rc3 does, as far as anonymous memory is concerned.
pub(crate) fn rules_4_20() -> Rules {
    Rules {
        large_folios: rules::LargeFolios::Never,
        large_migration: rules::LargeMigration::Never,
        thp_node: ThpNode::LocalUnlessDirect,
        anon_start: AnonStart::Active,
        swapin_lru: SwapinLru::Active,
        swapin_workingset: rules::SwapinWorkingset::EveryPage,
        eviction_clock: rules::EvictionClock::TicksFirst,
        page_table_stat: PageTableStat::Leaves,
        oom_score: OomScore::AtLeastOne,
        swap_readahead: SwapReadahead::BySlot,
        slot_of_written: SlotOfWritten::GivenUp,
        ..Rules::newest()
    }
}

/// A machine with one space.
pub(crate) struct Machine {
    pub(crate) mm: Mm,
    pub(crate) env: Env,
    pub(crate) space: SpaceId,
    free_at_start: u64,
}

impl Machine {
    /// Nodes of `blocks` pageblocks each. Huge pages only where asked for, by the defrag default `madvise`.
    pub(crate) fn with_nodes(nodes: u32, blocks: u32, rules: Rules) -> Machine {
        Machine::tuned(nodes, blocks, rules, Tunables::default())
    }

    /// One node of 128 MiB with these parts of the multi-gen LRU.
    pub(crate) fn with_generations(lru_gen_enabled: LruGenCaps) -> Machine {
        Machine::tuned(1, 64, Rules::newest(), Tunables { lru_gen_enabled, ..Tunables::default() })
    }

    pub(crate) fn tuned(nodes: u32, blocks: u32, rules: Rules, tunables: Tunables) -> Machine {
        let pages = Pages(u64::from(blocks * PAGEBLOCK_PAGES));
        let zone = |n: u32| ZoneSpan {
            kind: ZoneKind::Normal,
            start: Pfn(n * blocks * PAGEBLOCK_PAGES),
            spanned: pages,
            present: pages,
            managed: pages,
            hole: None,
        };
        let distance = |at: u32| (0..nodes).map(|to| if to == at { 10 } else { 20 }).collect();
        let node = |n| NodeSpec { zones: vec![zone(n)], distance: distance(n) };
        let layout = MemoryLayout { nodes: (0..nodes).map(node).collect(), cpu_nodes: vec![NodeId(0); 2] };
        let tunables = Tunables { min_free_kbytes: 64, thp_enabled: ThpEnabled::Never, ..tunables };
        let mut mm = Mm::new(&layout, rules, tunables, Costs::default());
        let env = Env { now: Nanos::ZERO, cpu: CpuId(0), node: NodeId(0), task: TaskFlags::default() };
        let space = mm.space_create();
        let mut machine = Machine { mm, env, space, free_at_start: 0 };
        machine.free_at_start = machine.free();
        machine
    }

    /// One node of 128 MiB.
    pub(crate) fn new(rules: Rules) -> Machine {
        Machine::with_nodes(1, 64, rules)
    }

    /// The same with huge pages always, from free memory only.
    pub(crate) fn with_thp(rules: Rules) -> Machine {
        let mut machine = Machine::new(rules);
        machine.mm.tunables.thp_enabled = ThpEnabled::Always;
        machine.mm.tunables.thp_defrag = ThpDefrag::Never;
        machine
    }

    /// Adds a swap device of `pages` pages and the header.
    pub(crate) fn add_swap(&mut self, pages: u32, rotational: bool) {
        let device = self.mm.swap.devices().len() as u16;
        self.mm.swap.add_device(&SwapSpec { device, start_sector: 2048, pages: pages + 1, priority: -2, rotational });
    }

    /// Free pages on all lists, and what slabs took for bios.
    pub(crate) fn free(&self) -> u64 {
        let lists: u64 = self.mm.zones.iter().map(|z| z.free_pages + self.mm.pcp_pages(z.id)).sum();
        lists + self.gauge(NodeStat::SlabUnreclaimable)
    }

    pub(crate) fn event(&self, event: VmEvent) -> u64 {
        self.mm.stat.event(event)
    }

    pub(crate) fn gauge(&self, item: NodeStat) -> u64 {
        self.mm.stat.node_sum(item)
    }

    pub(crate) fn rss(&self) -> u64 {
        self.mm.spaces[self.space].rss_pages()
    }

    pub(crate) fn mmap(&mut self, pages: u32) -> u32 {
        self.mm.mmap_anon(self.space, pages, PAGEBLOCK_PAGES)
    }

    /// Starts an access without limit.
    pub(crate) fn begin(&self, vpn: u32, pages: u32, write: bool) -> Touch {
        Touch::new(self.space, vpn, pages, write, FOREVER)
    }

    pub(crate) fn go_on(&mut self, touch: &mut Touch, hand: Option<Pfn>) -> TouchStop {
        let env = self.env;
        self.mm.touch(&env, touch, hand)
    }

    /// Accesses a range that nothing can stop.
    pub(crate) fn touch(&mut self, vpn: u32, pages: u32, write: bool) {
        let mut touch = self.begin(vpn, pages, write);
        assert_eq!(self.go_on(&mut touch, None), TouchStop::Done);
    }

    /// The frame that a page is in.
    pub(crate) fn pfn(&self, vpn: u32) -> Pfn {
        match self.mm.slot_of(self.space, vpn) {
            super::Slot::Page(pfn) => pfn,
            other => panic!("page {vpn} is {other:?}"),
        }
    }

    /// One frame for the caller's slow path, whatever the watermarks say.
    pub(crate) fn reserve(&mut self, request: AllocRequest) -> Option<Pfn> {
        let mut env = self.env;
        env.task.memalloc = true;
        let request = AllocRequest { gfp: request.gfp.without(Gfp::NOMEMALLOC), ..request };
        let flags = self.mm.reserve_alloc_flags(&env, request.gfp).expect("a reclaimer may use the reserves");
        self.mm.drain_pcp_all(); // an earlier refill may hold all that is left, for another type
        self.mm.get_page_from_freelist(&env, request, flags)
    }

    /// Takes order-0 memory until the fast path has none left; what is below the watermark is on the buddy lists.
    pub(crate) fn exhaust(&mut self) -> Vec<Pfn> {
        let request = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE, order: Order(0), node: NodeId(0) };
        let env = self.env;
        let mut taken = Vec::new();
        while let Some(pfn) = self.mm.alloc_pages(&env, request) {
            taken.push(pfn);
            taken.extend(std::iter::from_fn(|| self.mm.alloc_pages(&env, request)));
            self.mm.drain_pcp_all();
        }
        taken
    }

    /// Breaks every free 2 MiB block: one page of each stays taken.
    pub(crate) fn fragment(&mut self) -> Vec<Pfn> {
        let request = AllocRequest { gfp: Gfp::TRANSHUGE_LIGHT, order: PAGEBLOCK_ORDER, node: NodeId(0) };
        let blocks: Vec<Pfn> = std::iter::from_fn(|| self.reserve(request)).collect();
        for &block in &blocks {
            self.mm.split_held(block);
            for n in 1..PAGEBLOCK_PAGES {
                self.give(block.offset(n));
            }
        }
        blocks
    }

    /// Frees an order-0 frame that nobody owns.
    pub(crate) fn give(&mut self, pfn: Pfn) {
        let env = self.env;
        self.mm.free_pages(&env, pfn, Order(0));
    }

    /// Does what reclaim does to get one page to swap, up to starting its write. False if swap is full.
    pub(crate) fn swap_out(&mut self, vpn: u32) -> bool {
        let (env, pfn) = (self.env, self.pfn(vpn));
        let has_slot = self.mm.frames[pfn].has(Frame::SWAPCACHE);
        if !has_slot && !self.mm.add_to_swap(&env, pfn) {
            return false;
        }
        assert!(self.mm.try_to_unmap(&env, pfn));
        if self.mm.frames[pfn].has(Frame::DIRTY) {
            self.mm.pageout_anon(&env, pfn);
        }
        true
    }

    /// Does what reclaim does with a clean, unmapped page.
    pub(crate) fn drop_cached(&mut self, pfn: Pfn) {
        self.mm.lru_isolate(pfn);
        self.mm.lru_forget_isolated(pfn);
        let env = self.env;
        self.mm.swapcache_remove(&env, pfn, 7);
        self.give(pfn);
    }

    /// Takes the bios that were submitted: frame, sector, write.
    pub(crate) fn bios(&mut self) -> Vec<(Pfn, u64, bool)> {
        let mut effects = Vec::new();
        self.mm.effects.take_into(&mut effects);
        let bio = |effect: &Effect| match effect {
            Effect::Submit(bio) => match bio.target {
                BioTarget::Swap { pfn } => Some((pfn, bio.sector, bio.write)),
                _ => None,
            },
            _ => None,
        };
        effects.iter().filter_map(bio).collect()
    }

    /// Ends everything that is in flight.
    pub(crate) fn finish_io(&mut self) -> usize {
        let (env, bios) = (self.env, self.bios());
        for &(pfn, _, write) in &bios {
            if write {
                self.mm.end_swap_write(&env, pfn, true);
            } else {
                self.mm.end_swap_read(&env, pfn, true);
            }
        }
        bios.len()
    }

    /// Every structure equals a recount.
    pub(crate) fn check(&self) {
        let mut found = Vec::new();
        self.mm.validate_anon(&mut found);
        self.mm.validate_swap(&mut found);
        self.mm.validate_zone(&mut found);
        self.mm.validate_reclaim(&mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    /// Ends the space; every page must be free again then, but for `held` ones.
    pub(crate) fn end(mut self, held: u64) {
        let (env, space) = (self.env, self.space);
        self.mm.space_exit(&env, space);
        self.finish_io();
        self.check();
        assert_eq!(self.free() + held, self.free_at_start);
        assert_eq!(self.mm.swap_free_pages(), self.mm.swap_total_pages());
    }
}
