//! Kernel memory of groups: slab objects, page tables, kernel stacks and pages of pipes.
//!
//! Rule: an object of an accounted cache belongs to the group of the task that allocates it, with its size and the 8 B that say
//! so; page tables, kernel stacks and pages of pipes do by the page. Bytes are charged as whole pages, and up to a page stays charged for
//! the next object.
//! Source: `__memcg_slab_post_alloc_hook()`, `obj_full_size()`, `obj_cgroup_charge()`, `refill_obj_stock()` (mm/memcontrol.c),
//! `GFP_PGTABLE_USER` (include/asm-generic/pgalloc.h), `memcg_charge_kernel_stack()` (kernel/fork.c); 6.1 and 6.12.
//! Since/until: [`ObjectAccounting`]: until 5.8 a group has slabs of its own and pays for their pages; here it pays for its
//! objects, without the 8 B.
//! Abstracted: what stays charged is a page of each group, not of each CPU. Whether an object can be charged is found out
//! before it is allocated; who may not sleep charges it whatever the limits. A buffer head is the task's group's, not its page's.
//! Charging an object takes no time but that of charging pages.
//! Omitted: per-CPU memory, sockets, vmalloc.

use rules::ObjectAccounting;
use units::{Gfp, MemcgId, NodeId, Order, PAGE_SIZE, Pfn};

use super::ROOT;
use crate::slab::{CacheId, Obj};
use crate::vfs::{Need, Share};
use crate::{Env, Mm};

/// Bytes that say which group an object belongs to.
const OWNER_BYTES: u64 = 8;

/// What a page of a group's kernel memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelPage {
    /// A page table.
    Table,
    /// A kernel stack, or a part of one.
    Stack,
    /// Bytes of a pipe.
    Pipe,
}

/// Kernel memory of one group without those below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct KernelMemory {
    /// Pages that are charged for its slab objects, whose bytes are counted by node ([`crate::Lruvec::slab_bytes`]).
    pub(super) object_pages: u64,
    /// Pages of each kind.
    pub(super) pages: [u64; 3],
}

impl Mm {
    /// Bytes of a group's own slab objects.
    fn object_bytes(&self, memcg: MemcgId) -> u64 {
        let of = |node: NodeId| self.lruvec(self.lruvec_of_memcg(node, memcg)).slab_bytes;
        self.nodes.iter().flat_map(|node| of(node.id)).sum()
    }

    /// Pages to charge before a group's objects may take so many bytes more.
    fn pages_missing(&self, memcg: MemcgId, bytes: u64) -> u64 {
        let pages = (self.object_bytes(memcg) + bytes).div_ceil(PAGE_SIZE);
        pages.saturating_sub(self.memcg[memcg].kernel.object_pages)
    }

    /// Bytes that an object of a cache counts with; none if the cache is not accounted.
    pub(super) fn accounted_size(&self, cache: CacheId) -> Option<u64> {
        self.slabs.is_accounted(cache).then(|| self.charged_size(cache))
    }

    /// Bytes that an object of a cache counts with once it is charged.
    pub(super) fn charged_size(&self, cache: CacheId) -> u64 {
        let owner = if self.rules.object_accounting == ObjectAccounting::Vectors { OWNER_BYTES } else { 0 };
        u64::from(self.slabs.object_size(cache)) + owner
    }

    /// Sees to it that an object can be charged to the task's group; `Err` says that a limit forbids it and has to be dealt
    /// with first.
    #[inline]
    pub(crate) fn memcg_reserve_object(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<(), Need> {
        let memcg = env.task.memcg;
        if memcg == ROOT {
            return Ok(());
        }
        match self.accounted_size(cache).map_or(0, |size| self.pages_missing(memcg, size)) {
            0 => Ok(()),
            pages => self.memcg_reserve(env, memcg, Order(pages.next_power_of_two().ilog2() as u8), gfp),
        }
    }

    /// An object was allocated: it belongs to the task's group.
    #[inline]
    pub(crate) fn memcg_charge_object(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        if env.task.memcg != ROOT {
            self.charge_object_to(env, env.task.memcg, cache, obj);
        }
    }

    fn charge_object_to(&mut self, env: &Env, memcg: MemcgId, cache: CacheId, obj: Obj) {
        let Some(size) = self.accounted_size(cache) else { return };
        self.slabs.set_owner(cache, obj, memcg);
        *self.slab_bytes_of(cache, obj) += size;
        let pages = self.pages_missing(memcg, 0);
        if pages > 0 {
            self.memcg.use_stock(env.cpu, memcg, pages);
            self.memcg[memcg].kernel.object_pages += pages;
        }
    }

    /// An object is freed: its group does not pay for it any more.
    #[inline]
    pub(crate) fn memcg_uncharge_object(&mut self, cache: CacheId, obj: Obj) {
        if self.memcg.in_use() {
            self.uncharge_object(cache, obj);
        }
    }

    fn uncharge_object(&mut self, cache: CacheId, obj: Obj) {
        let memcg = self.slabs.share_of(cache, obj).memcg;
        if memcg == ROOT {
            return;
        }
        let size = self.accounted_size(cache).expect("only objects of accounted caches have an owner");
        *self.slab_bytes_of(cache, obj) -= size;
        self.slabs.set_owner(cache, obj, ROOT);
        let kept = self.object_bytes(memcg).div_ceil(PAGE_SIZE) + 1;
        let kernel = &mut self.memcg[memcg].kernel;
        let unused = kernel.object_pages.saturating_sub(kept);
        kernel.object_pages -= unused;
        self.memcg.uncount(memcg, unused);
    }

    /// Bytes of objects as reclaimable as these on their node, of their group.
    fn slab_bytes_of(&mut self, cache: CacheId, obj: Obj) -> &mut u64 {
        let Share { node, memcg } = self.slabs.share_of(cache, obj);
        let kind = usize::from(!self.slabs.is_reclaimable(cache));
        let lru = self.lruvec_of_memcg(node, memcg);
        &mut self.lruvec_mut(lru).slab_bytes[kind]
    }

    /// A page from the allocator is kernel memory of the task's group; what [`Mm::memcg_reserve`] saw to is used up.
    pub(crate) fn memcg_commit_kernel(&mut self, env: &Env, pfn: Pfn, of: KernelPage) {
        let memcg = env.task.memcg;
        self.memcg_commit(env, memcg, pfn);
        if memcg != ROOT {
            self.memcg[memcg].kernel.pages[of as usize] += u64::from(self.frames[pfn].nr_pages());
        }
    }

    /// A page that may be a group's kernel memory is about to be freed.
    pub(crate) fn memcg_forget_kernel(&mut self, pfn: Pfn, of: KernelPage) {
        let memcg = self.memcg.of_page(pfn);
        if memcg != ROOT {
            self.memcg[memcg].kernel.pages[of as usize] -= u64::from(self.frames[pfn].nr_pages());
        }
    }

    /// Pages of kernel memory of one kind, of a group itself.
    pub(crate) fn memcg_own_kernel_pages(&self, memcg: MemcgId, of: KernelPage) -> u64 {
        self.memcg[memcg].kernel.pages[of as usize]
    }

    /// The same of a group and those below it.
    pub fn memcg_kernel_pages(&self, memcg: MemcgId, of: KernelPage) -> u64 {
        self.memcg.subtree(memcg).iter().map(|(id, _)| self.memcg_own_kernel_pages(*id, of)).sum()
    }

    /// Pages charged for slab objects of a group and those below it.
    pub fn memcg_object_pages(&self, memcg: MemcgId) -> u64 {
        self.memcg.subtree(memcg).iter().map(|(id, _)| self.memcg[*id].kernel.object_pages).sum()
    }

    /// Bytes of [reclaimable, unreclaimable] slab objects of a group and those below it.
    pub fn memcg_slab_bytes(&self, memcg: MemcgId) -> [u64; 2] {
        let below = || self.memcg.subtree(memcg).iter().map(|(id, _)| *id);
        let all = |kind: usize| {
            let of_nodes = |id| self.nodes.iter().map(move |node| self.lruvec_of_memcg(node.id, id));
            below().flat_map(of_nodes).map(|lru| self.lruvec(lru).slab_bytes[kind]).sum()
        };
        [all(0), all(1)]
    }
}
