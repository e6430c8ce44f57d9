//! Anonymous memory: address spaces, page tables, faults, huge pages.
//!
//! Rule: a space is a set of areas and a table of 2 MiB regions over all of it; a region is empty, a huge page, or
//! a page table of 512 slots. A slot is empty, a frame, the zero page or a swap entry.
//! Source: `struct mm_struct`, `struct vm_area_struct` (include/linux/mm_types.h), mm/mmap.c, mm/memory.c; 4.20 and 6.12.
//! Abstracted: addresses start low and stay dense (the kernel maps from the top down); the page table is found by
//! the space, not by the area, as in hardware; a space is one process, its threads share it.
//! Omitted: fork and sharing of anonymous pages, mlock, mremap, stacks and program text, NUMA policies and NUMA
//! balancing, userfaultfd, KSM, the huge zero page (a read fault maps base zero pages), page table
//! isolation (an order-1 PGD).

mod fault;
mod file_fault;
mod gfp;
mod khugepaged;
mod oom;
mod pgtable;
mod split;
mod start;
mod swap_readahead;
mod swapin;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod validate;
mod vma;
mod zap;

pub use fault::{Touch, TouchStop};
pub use gfp::{huge_attempts, thp_enabled_for, thp_gfp_mask};
pub use khugepaged::{CollapseTarget, KhugepagedScan};
pub use oom::OomChoice;
pub use start::StartAnon;
pub use vma::{Advice, ThpAdvice, Vma, VmaKind};

use units::{MemcgId, Pfn, SpaceId};

use crate::memcg::MemcgStat;
use crate::reclaim::MmList;
use crate::stat::{NodeStat, VmEvent};
use crate::swap::TokenClaim;
use crate::{Env, Mm};

pub(crate) use khugepaged::Khugepaged;
pub(crate) use pgtable::{Leaves, PageTables, Region, Slot};

/// Pages in a 2 MiB region: one page table, or one huge page.
pub(crate) const REGION_PAGES: u32 = units::PAGEBLOCK_PAGES;
/// log2 of the pages in a region.
pub(crate) const REGION_SHIFT: u32 = 9;

/// One address space (`struct mm_struct`).
#[derive(Debug, Default)]
pub struct Space {
    /// In use; a dead one is given out again by `space_create`.
    pub(crate) live: bool,
    /// Areas in the order of their start, neighbours with equal properties merged.
    pub(crate) vmas: Vec<Vma>,
    /// What is mapped.
    pub(crate) tables: PageTables,
    /// Resident anonymous pages (`MM_ANONPAGES`), in base pages.
    rss: u64,
    /// Pages on swap (`MM_SWAPENTS`).
    swapents: u64,
    /// `oom_score_adj`, -1000 to 1000.
    oom_score_adj: i16,
    /// Chosen by the OOM killer and not released yet.
    oom_victim: bool,
    /// Nodes on which its page tables have not been walked since it last ran, a bit each (`lru_gen.bitmap`).
    pub(crate) lru_gen_ran: u64,
    /// Memory cgroup of its process.
    pub(crate) memcg: MemcgId,
    /// Nothing is left to be gained by killing it (`MMF_OOM_SKIP`).
    oom_skip: bool,
    /// khugepaged has it in its queue (`MMF_VM_HUGEPAGE`).
    khugepaged: bool,
    /// Its claim to the swap token.
    pub(crate) token: TokenClaim,
    /// Threads of it that sleep in a page fault, with `mmap_sem` held.
    pub(crate) faults_asleep: u32,
}

impl Space {
    /// Whether the OOM killer chose it.
    pub fn is_oom_victim(&self) -> bool {
        self.oom_victim
    }

    /// Areas in the order of their start.
    pub fn vmas(&self) -> &[Vma] {
        &self.vmas
    }

    /// Resident anonymous pages (`MM_ANONPAGES`), in base pages.
    pub fn rss_pages(&self) -> u64 {
        self.rss
    }

    /// Pages on swap (`MM_SWAPENTS`).
    pub fn swap_pages(&self) -> u64 {
        self.swapents
    }

    /// Frames of its page tables without the top level, as `mm_pgtables_bytes()` counts them.
    pub fn pgtable_pages(&self) -> u64 {
        self.tables.nr_frames()
    }
}

/// All address spaces.
#[derive(Debug, Default)]
pub struct Spaces {
    table: Vec<Space>,
    dead: Vec<SpaceId>,
    /// The spaces whose page tables the aging walks, by memory cgroup.
    pub(crate) mm_lists: Vec<MmList>,
    /// Page tables of all spaces.
    pub(crate) leaves: pgtable::Leaves,
}

impl Spaces {
    /// The ids of all live spaces, oldest id first.
    pub fn live(&self) -> impl Iterator<Item = SpaceId> + '_ {
        (0..self.table.len() as u32).map(SpaceId).filter(|id| self.table[id.index()].live)
    }

    /// Host bytes that page tables and areas occupy.
    pub fn host_bytes(&self) -> usize {
        let spaces = self.table.iter().map(|s| size_of::<Space>() + s.tables.host_bytes()).sum::<usize>();
        spaces + self.leaves.host_bytes()
    }
}

impl std::ops::Index<SpaceId> for Spaces {
    type Output = Space;
    #[inline]
    fn index(&self, id: SpaceId) -> &Space {
        &self.table[id.index()]
    }
}

impl std::ops::IndexMut<SpaceId> for Spaces {
    #[inline]
    fn index_mut(&mut self, id: SpaceId) -> &mut Space {
        &mut self.table[id.index()]
    }
}

/// Counter changes of a run of pages, settled at once: most runs stay on one node.
#[derive(Default)]
pub(crate) struct Tally {
    faults: u64,
    rss: i64,
    /// Pageblock of the last page: its neighbours are on the same node.
    block: u32,
    node: units::NodeId,
    mapped: i64,
}

impl Tally {
    /// One more fault.
    fn fault(&mut self) {
        self.faults += 1;
    }

    /// Base pages that became (or ceased to be) mapped on a node.
    #[inline]
    fn map(&mut self, mm: &mut Mm, pfn: Pfn, pages: i64) {
        if pfn.0 >> REGION_SHIFT != self.block || self.mapped == 0 {
            let node = mm.node_of(pfn);
            mm.stat.node_add(self.node, NodeStat::AnonMapped, self.mapped);
            (self.block, self.node, self.mapped) = (pfn.0 >> REGION_SHIFT, node, 0);
        }
        self.mapped += pages;
        self.rss += pages;
    }

    /// Books everything.
    fn settle(self, mm: &mut Mm, space: SpaceId) {
        mm.stat.node_add(self.node, NodeStat::AnonMapped, self.mapped);
        mm.stat.count(VmEvent::Pgfault, self.faults);
        mm.memcg.count_stat(mm.memcg_of_space(space), MemcgStat::Pgfault, self.faults);
        let rss = &mut mm.spaces[space].rss;
        *rss = rss.checked_add_signed(self.rss).expect("more pages unmapped than were mapped");
    }
}

impl Mm {
    /// A new, empty address space. Ids of spaces that exited are used again.
    pub fn space_create(&mut self) -> SpaceId {
        let id = self.spaces.dead.pop().unwrap_or_else(|| {
            self.spaces.table.push(Space::default());
            SpaceId(self.spaces.table.len() as u32 - 1)
        });
        let space = &mut self.spaces[id];
        assert!(!space.live && space.vmas.is_empty() && space.rss == 0);
        *space = Space { live: true, ..Space::default() };
        self.lru_gen_add_mm(id);
        id
    }

    /// Ends an address space: frees its pages, swap slots and page tables (`exit_mmap()`).
    pub fn space_exit(&mut self, env: &Env, space: SpaceId) {
        assert!(self.spaces[space].live, "{space:?} exits twice");
        self.khugepaged_exit(space);
        if let Some(last) = self.spaces[space].vmas.last() {
            let end = last.end;
            self.munmap(env, space, 0, end);
        }
        self.free_top_table(env, space);
        self.put_swap_token(space);
        let ended = &mut self.spaces[space];
        assert!(ended.rss == 0 && ended.swapents == 0, "{space:?} ends with {} + {} pages", ended.rss, ended.swapents);
        assert_eq!(ended.tables.nr_frames(), 0, "{space:?} ends with page tables");
        let memcg = std::mem::take(ended).memcg;
        self.spaces.dead.push(space);
        self.lru_gen_del_mm(space, memcg);
    }

    /// Puts a space into a memory cgroup; what it has brought into memory stays where it is charged (`cgroup.procs`).
    pub fn memcg_attach(&mut self, space: SpaceId, memcg: MemcgId) {
        let old = std::mem::replace(&mut self.spaces[space].memcg, memcg);
        self.lru_gen_del_mm(space, old);
        self.lru_gen_add_mm(space);
    }

    /// Memory cgroup of a space.
    pub fn memcg_of_space(&self, space: SpaceId) -> MemcgId {
        self.spaces[space].memcg
    }

    /// Sets `oom_score_adj` of a space: -1000 (never kill) to 1000.
    pub fn set_oom_score_adj(&mut self, space: SpaceId, adj: i16) {
        assert!((-1000..=1000).contains(&adj), "oom_score_adj {adj}");
        self.spaces[space].oom_score_adj = adj;
    }

    /// Whether a page that no page table maps is one of a mapped file, cached and up to date.
    fn file_page_cached(&self, space: SpaceId, vpn: u32) -> bool {
        let Some(VmaKind::File { file, base }) = self.spaces[space].find(vpn).map(|vma| vma.kind) else { return false };
        match self.pagecache_get(file, vpn - base) {
            crate::pagecache::Slot::Page(pfn) => self.frames[pfn].has(crate::Frame::UPTODATE),
            _ => false,
        }
    }

    /// Whether a page is in memory, as `mincore()` says: mapped, or in the swap cache or page cache and up to date.
    pub fn mincore(&self, space: SpaceId, vpn: u32) -> bool {
        match self.slot_of(space, vpn) {
            Slot::None => self.file_page_cached(space, vpn),
            Slot::Page(_) | Slot::Zero => true,
            Slot::Swap(entry) => {
                self.swap.cached(entry).is_some_and(|pfn| self.frames[pfn].has(crate::Frame::UPTODATE))
            }
        }
    }
}
