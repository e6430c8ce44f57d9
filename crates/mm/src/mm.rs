//! All memory of a machine, and the calls that need more than one part of it.

use rules::{LruPolicy, LruScope, Rules, Tunables};
use units::{NodeId, Pages, Pfn, ZoneId};

use crate::anon::{Khugepaged, Spaces};
use crate::bio_pool::BioPools;
use crate::contention::Contention;
use crate::memcg::Memcgs;
use crate::pagecache::PageCache;
use crate::pipe::Pipes;
use crate::reclaim::Reclaim;
use crate::slab::{Rcu, Slabs};
use crate::stat::VmStat;
use crate::swap::Swap;
use crate::tlb::TlbBatch;
use crate::trace::Trace;
use crate::vfs::Vfs;
use crate::writeback::Writeback;
use crate::zone::{PageBlocks, Pcps, Zone};
use crate::{Costs, Effects, Frames, Lruvec, LruvecId, MemoryLayout, Node, Violation};

/// All memory of a machine.
pub struct Mm {
    /// The frame table.
    pub frames: Frames,
    /// Pageblocks: migratetype, zone, compaction's skip hint.
    pub blocks: PageBlocks,
    /// Zones, in the order of their start.
    pub zones: Vec<Zone>,
    /// Per-CPU page lists.
    pub pcps: Pcps,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Inodes, dentries and file system metadata.
    pub vfs: Vfs,
    /// Page cache.
    pub pagecache: PageCache,
    /// Address spaces and anonymous memory.
    pub spaces: Spaces,
    /// Where huge pages are made of base pages.
    pub(crate) khugepaged: Khugepaged,
    /// Memory cgroups.
    pub memcg: Memcgs,
    /// Pipes.
    pub pipes: Pipes,
    /// Slab caches.
    pub slabs: Slabs,
    /// Objects that wait for a grace period.
    pub rcu: Rcu,
    /// Swap devices.
    pub swap: Swap,
    /// Dirty limits and bandwidth estimates.
    pub writeback: Writeback,
    /// What reclaim remembers between passes.
    pub reclaim: Reclaim,
    /// Counters.
    pub stat: VmStat,
    /// LRU locks.
    pub(crate) contention: Contention,
    /// TLB entries that are out of date.
    pub(crate) tlb: TlbBatch,
    /// Devices whose bios end at once, by device number.
    pub(crate) copy_devices: Vec<crate::copy_device::CopyDevice>,
    /// Reserves of memory for bios.
    pub(crate) bio_pools: BioPools,
    /// Tracepoints.
    pub trace: Trace,
    /// What is to be done outside.
    pub effects: Effects,
    /// The rule in force for each decision.
    pub rules: Rules,
    /// Tunables.
    pub tunables: Tunables,
    /// CPU costs.
    pub costs: Costs,
    /// What the watermarks keep free (`min_free_kbytes`), in KiB.
    pub(crate) min_free_kib: u64,
    /// CPU time used since the caller last took it, in ns.
    cpu_ns: u64,
}

impl Mm {
    /// The machine just after boot: all managed memory free, nothing else in use.
    pub fn new(layout: &MemoryLayout, rules: Rules, tunables: Tunables, costs: Costs) -> Mm {
        let nr_zones = layout.nodes.iter().map(|n| n.zones.len()).sum();
        let mut mm = Mm {
            frames: Frames::new(layout.end_pfn(), layout.present().0),
            blocks: PageBlocks::new(layout),
            zones: Zone::all(layout),
            pcps: Pcps::new(layout),
            nodes: Node::all(layout),
            vfs: Vfs::default(),
            pagecache: PageCache::default(),
            spaces: Spaces::default(),
            khugepaged: Khugepaged::default(),
            memcg: Memcgs::default(),
            pipes: Pipes::default(),
            slabs: Slabs::new(layout.cpu_nodes.clone(), layout.nodes.len()),
            rcu: Rcu::new(layout.cpu_nodes.len()),
            swap: Swap::new(rules.swap_shadows),
            writeback: Writeback::default(),
            reclaim: Reclaim::new(layout.nodes.len(), nr_zones, layout.end_pfn() as usize),
            stat: VmStat::new(nr_zones, layout.nodes.len()),
            contention: Contention::default(),
            tlb: TlbBatch::default(),
            copy_devices: Vec::new(),
            bio_pools: BioPools::default(),
            trace: Trace::default(),
            effects: Effects::default(),
            rules,
            tunables,
            costs,
            min_free_kib: 0,
            cpu_ns: 0,
        };
        mm.setup_lruvecs();
        mm.free_all_at_boot(layout);
        mm.setup_lowmem_reserve();
        mm.setup_watermarks();
        mm.setup_slabs();
        mm.setup_writeback();
        mm
    }

    /// Charges CPU time to the running task.
    #[inline]
    pub fn charge(&mut self, ns: u64) {
        self.cpu_ns += ns;
    }

    /// CPU time charged since this was last called, in ns.
    #[inline]
    pub fn take_cpu_ns(&mut self) -> u64 {
        std::mem::take(&mut self.cpu_ns)
    }

    /// CPU time charged and not taken yet, in ns.
    #[inline]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Zone of a frame.
    #[inline]
    pub fn zone_of(&self, pfn: Pfn) -> ZoneId {
        self.blocks.zone_of(pfn)
    }

    /// Node of a frame.
    #[inline]
    pub fn node_of(&self, pfn: Pfn) -> NodeId {
        self.zones[self.blocks.zone_of(pfn).index()].node
    }

    /// LRU lists that a frame's page belongs on.
    #[inline]
    pub fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        let lru = self.zones[self.blocks.zone_of(pfn).index()].lru;
        if self.memcg.in_use() { LruvecId { part: self.memcg.of_page(pfn).0, ..lru } } else { lru }
    }

    /// The LRU lists with this name.
    #[inline]
    pub fn lruvec(&self, id: LruvecId) -> &Lruvec {
        &self.nodes[id.node.index()].lruvecs[usize::from(id.part)]
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn lruvec_mut(&mut self, id: LruvecId) -> &mut Lruvec {
        &mut self.nodes[id.node.index()].lruvecs[usize::from(id.part)]
    }

    /// Gives each zone lists of its own where the kernel does ([`LruScope::Zone`]), and each node generations where it has
    /// them ([`LruPolicy::MultiGen`]) and they are switched on.
    fn setup_lruvecs(&mut self) {
        if self.rules.lru_scope == LruScope::Node {
            if self.rules.lru_policy != LruPolicy::TwoLists && self.tunables.lru_gen_enabled.core() {
                self.nodes.iter_mut().for_each(|node| node.lruvecs[0].lru_gen = Some(Box::default()));
            }
            return;
        }
        for node in &mut self.nodes {
            node.lruvecs = vec![Lruvec::default(); node.zones.len()];
            for (part, zone) in node.zones.iter().enumerate() {
                self.zones[zone.index()].lru = LruvecId { node: node.id, part: part as u16 };
            }
        }
    }

    /// Memory given to the allocator (`MemTotal`).
    pub fn total_pages(&self) -> Pages {
        Pages(self.zones.iter().map(|z| z.managed).sum())
    }

    /// Memory of a node given to the allocator (`Node N MemTotal`).
    pub fn node_pages(&self, node: NodeId) -> Pages {
        Pages(self.zones.iter().filter(|z| z.node == node).map(|z| z.managed).sum())
    }

    /// CPUs of the machine.
    pub fn nr_cpus(&self) -> usize {
        self.pcps.nr_cpus()
    }

    /// Host bytes of everything that grows with the machine or with what it holds.
    pub fn host_bytes(&self) -> usize {
        self.frames.host_bytes()
            + self.blocks.len() * 3
            + self.slabs.host_bytes()
            + self.rcu.host_bytes()
            + self.vfs.host_bytes()
            + self.pagecache_host_bytes()
            + self.spaces.host_bytes()
            + self.swap.host_bytes()
            + self.memcg.host_bytes()
            + self.pipes.host_bytes()
            + self.writeback.host_bytes()
            + self.contention.host_bytes()
    }

    /// Checks every structure against a recount of the frames (`--verify`).
    pub fn validate(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.validate_zone(&mut violations);
        self.validate_reclaim(&mut violations);
        self.validate_compaction(&mut violations);
        self.validate_slab(&mut violations);
        self.validate_vfs(&mut violations);
        self.validate_pagecache(&mut violations);
        self.validate_writeback(&mut violations);
        self.validate_anon(&mut violations);
        self.validate_swap(&mut violations);
        self.validate_memcg(&mut violations);
        self.validate_pipes(&mut violations);
        violations
    }
}
