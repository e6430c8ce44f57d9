//! Allocating and freeing an object.

use units::{Gfp, NodeId};

use super::{Cache, CacheId, Keeper, Obj, SlabRequest};
use crate::{Env, Mm};

impl Cache {
    /// A free object that a CPU has.
    #[inline]
    fn take(&mut self, cpu: usize) -> Option<Obj> {
        match &mut self.keeper {
            Keeper::Slub(lists) => lists.take(&mut self.slabs, self.shift, cpu),
            Keeper::Slab(arrays) => arrays.take(cpu),
        }
    }

    /// Gives a CPU free objects that its node has.
    fn refill(&mut self, cpu: usize, node: NodeId) -> bool {
        match &mut self.keeper {
            Keeper::Slub(lists) => lists.refill(&mut self.slabs, cpu, node),
            Keeper::Slab(arrays) => arrays.refill(&mut self.slabs, self.shift, cpu, node),
        }
    }

    /// A free object of a node that is not the CPU's.
    fn take_from_other(&mut self, cpu: usize, node: NodeId) -> Option<Obj> {
        match &mut self.keeper {
            Keeper::Slub(lists) => {
                lists.refill_from_other(&mut self.slabs, cpu, node);
                lists.take(&mut self.slabs, self.shift, cpu)
            }
            Keeper::Slab(arrays) => arrays.take_from_other(&mut self.slabs, self.shift, node),
        }
    }
}

impl Mm {
    /// Allocates an object; an error says what to take to the slow path: give its page to [`Mm::slab_add_page`] and
    /// repeat.
    pub fn slab_alloc(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Obj, SlabRequest> {
        self.charge(self.costs.slab_object);
        let obj = self.slab_take(env, cache, gfp)?;
        self.memcg_charge_object(env, cache, obj);
        Ok(obj)
    }

    fn slab_take(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Obj, SlabRequest> {
        let cpu = env.cpu.index();
        let owner = self.slabs.cache_mut(cache);
        if let Some(obj) = owner.take(cpu) {
            return Ok(obj);
        }
        if owner.refill(cpu, env.node) {
            return Ok(owner.take(cpu).expect("it was given some"));
        }
        self.slab_grow(env, cache, gfp)
    }

    /// An object of the slab that a CPU was given last.
    pub(super) fn slab_take_new(&mut self, env: &Env, cache: CacheId) -> Obj {
        let own = self.slabs.cache_mut(cache).take(env.cpu.index());
        own.or_else(|| self.slab_take_from_others(env, cache)).expect("a new slab has free objects")
    }

    /// An object for whoever may not sleep: as above, and with the first attempt of the allocator's slow path for each of the
    /// orders; none if those fail.
    pub(crate) fn slab_alloc_nowait(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Obj {
        self.slab_alloc(env, cache, gfp).unwrap_or_else(|SlabRequest { pages, fallback }| {
            let first = self.slow_path_start(env, pages);
            let page = first.or_else(|| fallback.and_then(|least| self.slow_path_start(env, least)));
            let Some(pfn) = page else { return Obj::NONE };
            self.slab_add_page(env, cache, pfn);
            self.slab_alloc(env, cache, gfp).expect("a new slab has free objects")
        })
    }

    /// A free object of another node, the nearest first.
    pub(super) fn slab_take_from_others(&mut self, env: &Env, cache: CacheId) -> Option<Obj> {
        let cache = self.slabs.cache_mut(cache);
        if self.nodes.len() == 1 {
            return None;
        }
        let zonelist = &self.nodes[env.node.index()].zonelist;
        let mut nodes = zonelist.iter().map(|zone| self.zones[zone.index()].node);
        nodes.find_map(|node| cache.take_from_other(env.cpu.index(), node))
    }

    /// Frees an object.
    pub fn slab_free(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        self.charge(self.costs.slab_object);
        self.memcg_uncharge_object(cache, obj);
        match self.slabs.cache(cache).keeper {
            Keeper::Slub(_) => self.slub_free(env, cache, obj),
            Keeper::Slab(_) => self.array_free(env, cache, obj),
        }
    }
}
