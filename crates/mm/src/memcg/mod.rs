//! Memory cgroups, version 2: a tree of groups, each with limits, protection, usage and LRU lists of its own.
//!
//! | file | what |
//! |---|---|
//! | `charge` | pages are charged to a group and all groups above it, in batches |
//! | `swap` | swap slots, charged the same way |
//! | `dirty` | what may be dirty in a group |
//! | `kernel` | slab objects, page tables, kernel stacks and pages of pipes |
//! | `protect` | what `memory.min` and `memory.low` come to in the tree |
//! | `walk` | the order in which reclaim goes through groups |
//! | `fifo` | the LRU of groups of the multi-gen LRU |
//! | `high` | how long a task waits that is above `memory.high` |
//! | `stat` | `memory.stat` and `memory.events` |
//!
//! Rule: a page belongs to the group of the task that brought it into memory, a page from swap to the one that it was
//! charged to before. Groups come in the order of a walk that takes each one before those below it, brothers in the order
//! in which they were made. Pages of the root group are charged to nobody.
//! Source: `struct mem_cgroup` (include/linux/memcontrol.h), mm/memcontrol.c, mm/page_counter.c,
//! Documentation/admin-guide/cgroup-v2.rst; 6.1 and 6.12.
//! Abstracted: as long as there is only the root group, pages have no record of their group, so that nothing is paid for
//! groups that nobody uses. A group that is made after something was evicted would find shadows that know no group, or,
//! if it is the 64th beside the root group, have no room for it: that is refused.
//! Omitted: what a group itself takes (in a guest of 6.12 with one CPU 20 KiB of slabs and 1.8 KiB per CPU), removal of groups, moving a group's
//! pages to another, version 1 (soft limits, memory and swap together), writeback by group, hugetlb.

mod charge;
mod dirty;
mod fifo;
mod high;
mod kernel;
mod protect;
mod stat;
mod swap;
mod validate;
mod walk;

#[cfg(test)]
mod tests;

use thiserror::Error;
use units::{MemcgId, Pfn};

pub use charge::Uncharged;
pub(crate) use dirty::{GroupDirty, GroupDomain};
pub use fifo::Fifo;
pub(crate) use fifo::{NR_BINS, Rotate};
pub use high::{MAX_HIGH_DELAY, MIN_HIGH_DELAY};
pub use kernel::KernelPage;
pub(crate) use protect::Protection;
pub(crate) use stat::Refault;
pub use stat::{MemcgEvent, MemcgStat};
use walk::WALKS;
pub use walk::{MemcgWalk, SharedWalk};

use crate::reclaim::MEMCGS_MAX;
use crate::{Lruvec, LruvecId, Mm};
use charge::Stock;
use kernel::KernelMemory;

/// No limit.
pub const UNLIMITED: u64 = u64::MAX;

/// The root group.
pub const ROOT: MemcgId = MemcgId(0);

/// What a group may use and what it is promised, in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemcgLimits {
    /// `memory.min`: reclaim leaves it alone whatever happens.
    pub min: u64,
    /// `memory.low`: reclaim leaves it alone as long as it finds something elsewhere.
    pub low: u64,
    /// `memory.high`: above it the group's tasks reclaim, and wait.
    pub high: u64,
    /// `memory.max`: above it nothing is charged; what cannot be reclaimed then costs a process its life.
    pub max: u64,
    /// `memory.swap.high`: above it the group's tasks wait.
    pub swap_high: u64,
    /// `memory.swap.max`.
    pub swap_max: u64,
}

impl Default for MemcgLimits {
    fn default() -> MemcgLimits {
        MemcgLimits { min: 0, low: 0, high: UNLIMITED, max: UNLIMITED, swap_high: UNLIMITED, swap_max: UNLIMITED }
    }
}

/// One group.
#[derive(Clone, Debug)]
pub struct Memcg {
    name: Box<str>,
    parent: Option<MemcgId>,
    children: Vec<MemcgId>,
    /// What it may use.
    pub limits: MemcgLimits,
    /// Pages charged to it and the groups below it, those in stock included (`page_counter` of memory).
    usage: u64,
    /// Most that ever was (`memory.peak`).
    peak: u64,
    /// Slots charged to it and the groups below it.
    swap: u64,
    /// Pages that belong to it and to no other group.
    own: u64,
    /// Slots that belong to it and to no other group.
    own_swap: u64,
    kernel: KernelMemory,
    events: [u64; MemcgEvent::COUNT],
    stat: [u64; MemcgStat::COUNT],
    /// Its own dirty pages.
    dirty: GroupDirty,
    /// Those of it and the groups below it when statistics were last added up.
    flushed_dirty: GroupDirty,
    /// Its dirty limit.
    pub(crate) domain: GroupDomain,
}

impl Memcg {
    fn new(name: &str, parent: Option<MemcgId>) -> Memcg {
        Memcg {
            name: name.into(),
            parent,
            children: Vec::new(),
            limits: MemcgLimits::default(),
            usage: 0,
            peak: 0,
            swap: 0,
            own: 0,
            own_swap: 0,
            kernel: KernelMemory::default(),
            events: [0; MemcgEvent::COUNT],
            stat: [0; MemcgStat::COUNT],
            dirty: GroupDirty::default(),
            flushed_dirty: GroupDirty::default(),
            domain: GroupDomain::default(),
        }
    }

    /// Path from the root, without a slash at its start.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group above it.
    pub fn parent(&self) -> Option<MemcgId> {
        self.parent
    }

    /// `memory.current`, in pages.
    pub fn usage(&self) -> u64 {
        self.usage
    }

    /// `memory.peak`, in pages.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// `memory.swap.current`, in pages.
    pub fn swap_usage(&self) -> u64 {
        self.swap
    }
}

/// Why a group cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum MemcgError {
    /// There are as many as there may be.
    #[error("there can be {MEMCGS_MAX} groups at most, the root group included")]
    TooMany,
    /// Pages have been evicted already.
    #[error("groups must be made before anything was evicted from memory")]
    TooLate,
    /// This kernel's lists are those of zones.
    #[error("the groups of a kernel whose zones have their own LRU lists are not modelled")]
    ZoneLists,
    /// Another has this name.
    #[error("there is a group of this name")]
    Exists,
}

/// All groups.
#[derive(Debug)]
pub struct Memcgs {
    list: Vec<Memcg>,
    /// All groups in the order of a walk, each with the number of groups in its subtree.
    order: Vec<(MemcgId, usize)>,
    /// Group of each frame's page, by the first frame of a block; empty as long as there is only the root group.
    pages: Vec<MemcgId>,
    /// Group of each swap slot that is in use, up to the highest that was ever charged to one.
    slots: Vec<MemcgId>,
    /// What each CPU has charged and not used.
    stocks: Vec<Stock>,
    /// Shared walks, by target, node and priority.
    walks: Vec<SharedWalk>,
    /// Pages that the running task charged above `memory.high`.
    over_high: u64,
}

impl Default for Memcgs {
    fn default() -> Memcgs {
        Memcgs {
            list: vec![Memcg::new("", None)],
            order: vec![(ROOT, 1)],
            pages: Vec::new(),
            slots: Vec::new(),
            stocks: Vec::new(),
            walks: Vec::new(),
            over_high: 0,
        }
    }
}

impl Memcgs {
    /// Whether there is a group beside the root group.
    #[inline]
    pub fn in_use(&self) -> bool {
        !self.pages.is_empty()
    }

    /// All groups, by their number.
    pub fn ids(&self) -> impl Iterator<Item = MemcgId> + use<> {
        (0..self.list.len() as u16).map(MemcgId)
    }

    /// Group that a page is charged to.
    #[inline]
    pub fn of_page(&self, pfn: Pfn) -> MemcgId {
        self.pages.get(pfn.index()).copied().unwrap_or(ROOT)
    }

    /// The group of that name.
    pub fn find(&self, name: &str) -> Option<MemcgId> {
        self.ids().find(|id| *self[*id].name == *name)
    }

    /// A group and those below it, in the order of a walk.
    pub(crate) fn subtree(&self, root: MemcgId) -> &[(MemcgId, usize)] {
        let at = self.order.iter().position(|(id, _)| *id == root).expect("a group has a place");
        &self.order[at..at + self.order[at].1]
    }

    /// A group and those above it, the nearest first.
    pub(crate) fn upwards(&self, from: MemcgId) -> impl Iterator<Item = MemcgId> + '_ {
        std::iter::successors(Some(from), |id| self[*id].parent)
    }

    fn reorder(&mut self) {
        fn visit(list: &[Memcg], id: MemcgId, order: &mut Vec<(MemcgId, usize)>) {
            let at = order.len();
            order.push((id, 1));
            for child in &list[id.index()].children {
                visit(list, *child, order);
            }
            order[at].1 = order.len() - at;
        }
        self.order.clear();
        visit(&self.list, ROOT, &mut self.order);
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        (self.pages.capacity() + self.slots.capacity()) * size_of::<MemcgId>()
    }
}

impl std::ops::Index<MemcgId> for Memcgs {
    type Output = Memcg;
    #[inline]
    fn index(&self, id: MemcgId) -> &Memcg {
        &self.list[id.index()]
    }
}

impl std::ops::IndexMut<MemcgId> for Memcgs {
    #[inline]
    fn index_mut(&mut self, id: MemcgId) -> &mut Memcg {
        &mut self.list[id.index()]
    }
}

impl Mm {
    /// Makes a group below another one; `name` is its path from the root.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn memcg_create(&mut self, parent: MemcgId, name: &str) -> Result<MemcgId, MemcgError> {
        if !self.rules.has_memory_cgroups() {
            return Err(MemcgError::ZoneLists);
        }
        if self.memcg.list.len() == MEMCGS_MAX {
            return Err(MemcgError::TooMany);
        }
        if self.memcg.find(name).is_some() {
            return Err(MemcgError::Exists);
        }
        self.shadows_with_memcgs(self.memcg.list.len() + 1).then_some(()).ok_or(MemcgError::TooLate)?;
        if !self.memcg.in_use() {
            self.memcg.pages = vec![ROOT; self.frames.len()];
            self.memcg.stocks = vec![Stock::default(); self.nr_cpus()];
        }
        let id = MemcgId(self.memcg.list.len() as u16);
        self.memcg.list.push(Memcg::new(name, Some(parent)));
        self.memcg[parent].children.push(id);
        self.memcg.reorder();
        self.memcg.walks.resize(self.memcg.list.len() * self.nodes.len() * WALKS, SharedWalk::default());
        self.lruvecs_of_new_memcg();
        Ok(id)
    }

    /// Gives a group its LRU lists on every node.
    fn lruvecs_of_new_memcg(&mut self) {
        let generations = self.lru_gen_enabled();
        for node in &mut self.nodes {
            node.lruvecs.push(Lruvec { lru_gen: generations.then(Box::default), ..Lruvec::default() });
            node.fifo.add(node.lruvecs.len() - 1);
        }
    }

    /// LRU lists of a group on a node.
    #[inline]
    pub(crate) fn lruvec_of_memcg(&self, node: units::NodeId, memcg: MemcgId) -> LruvecId {
        LruvecId { node, part: memcg.0 }
    }

    /// Group that LRU lists belong to: the root group where zones have lists of their own.
    #[inline]
    pub(crate) fn memcg_of(&self, lru: LruvecId) -> MemcgId {
        if self.rules.lru_scope == rules::LruScope::Zone { ROOT } else { MemcgId(lru.part) }
    }
}
