//! Freeing of an object, and of a slab that became empty.
//!
//! Rule: an object of a slab that a CPU holds just goes back. A full slab that gets its first free object goes on
//! the freeing CPU's list of partial slabs; when that list holds more than `cpu_partial`, all of it goes to the nodes
//! first. A slab on a node's list that becomes empty is given back if the node has at least `min_partial` partial
//! slabs. Source: `__slab_free()`, `put_cpu_partial()`, `unfreeze_partials()`, `deactivate_slab()`, mm/slub.c, 4.20.
//! Since/until: until 3.1 ([`CpuPartial`](rules::CpuPartial)) CPUs have no such lists: a full slab goes to its node's, at the end; until 3.0
//! it is given back there as soon as it is empty (`__slab_free()`, 2.6.39 and 3.1).
//! Abstracted: nothing more. Omitted: bulk free; CPU hotplug.

use super::alloc::slab_stat;
use super::{Cache, CacheId, NONE, Obj, Place, Slab};
use crate::{Env, Kind, Mm};

/// What is to be done with a slab after an object was freed.
enum After {
    Nothing,
    ToCpu(u32),
    Discard(u32),
}

impl Cache {
    /// Gives a slot back and decides.
    #[inline]
    fn release(&mut self, obj: Obj) -> After {
        let number = obj.0 >> self.shift;
        let slot = obj.0 & ((1 << self.shift) - 1);
        let (slab, free) = self.slabs.with_slots(number);
        let word = &mut free[slot as usize / 64];
        debug_assert!(slab.inuse > 0 && *word >> (slot % 64) & 1 == 0, "{}: {obj:?} freed twice", self.spec.name);
        *word |= 1 << (slot % 64);
        slab.inuse -= 1;
        // Its node's list would not keep it if it were empty.
        let excess = self.nodes[slab.node.index()].len >= self.keep_freed;
        match slab.place {
            Place::Full if self.cpu_partial > 0 => After::ToCpu(number),
            Place::Full if slab.inuse == 0 && excess => After::Discard(number),
            Place::Full => {
                self.add_partial(number, false);
                After::Nothing
            }
            Place::Node if slab.inuse == 0 && excess => {
                self.remove_partial(number);
                After::Discard(number)
            }
            _ => After::Nothing,
        }
    }

    /// Whether the CPU's list must go to the nodes before another slab is put on it.
    fn cpu_partial_is_full(&self, cpu: usize) -> bool {
        let weight = self.cpus[cpu].weight;
        let list = self.cpus[cpu].partial != NONE;
        list && if self.cpu_partial_slabs { weight >= self.cpu_partial } else { weight > self.cpu_partial }
    }
}

impl Mm {
    /// Frees an object.
    pub fn slab_free(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        self.charge(self.costs.slab_object);
        let cpu = env.cpu.index();
        let owner = &mut self.slabs.caches[cache.index()];
        match owner.release(obj) {
            After::Nothing => {}
            After::Discard(number) => self.discard_slab(env, cache, number),
            After::ToCpu(number) => {
                if owner.cpu_partial_is_full(cpu) {
                    self.unfreeze_partials(env, cache);
                }
                self.slabs.caches[cache.index()].push_cpu_partial(cpu, number);
            }
        }
    }

    /// Moves a CPU's partial slabs to the lists of their nodes, and gives back the empty ones that these do not want.
    fn unfreeze_partials(&mut self, env: &Env, cache: CacheId) {
        let owner = &mut self.slabs.caches[cache.index()];
        let list = &mut owner.cpus[env.cpu.index()];
        let mut at = std::mem::replace(&mut list.partial, NONE);
        list.weight = 0;
        while at != NONE {
            let number = at;
            at = self.slabs.caches[cache.index()].slabs[number].next;
            self.slab_to_node(env, cache, number, false);
        }
    }

    /// Takes the slab that a CPU allocates from away from it.
    pub(super) fn flush_cpu_slab(&mut self, env: &Env, cache: CacheId) {
        let owner = &mut self.slabs.caches[cache.index()];
        let number = std::mem::replace(&mut owner.cpus[env.cpu.index()].current, NONE);
        if number == NONE {
            return;
        }
        let slab = &mut owner.slabs[number];
        if slab.inuse == slab.objects {
            slab.place = Place::Full;
        } else {
            self.slab_to_node(env, cache, number, true);
        }
    }

    /// Puts a slab with free objects on its node's list, or gives it back.
    fn slab_to_node(&mut self, env: &Env, cache: CacheId, number: u32, first: bool) {
        let owner = &mut self.slabs.caches[cache.index()];
        let slab = &mut owner.slabs[number];
        if slab.inuse == slab.objects {
            slab.place = Place::Full;
        } else if slab.inuse == 0 && owner.nodes[slab.node.index()].len >= owner.min_partial {
            self.discard_slab(env, cache, number);
        } else {
            owner.add_partial(number, first);
        }
    }

    /// Gives the pages of an empty slab that is on no list back.
    fn discard_slab(&mut self, env: &Env, cache: CacheId, number: u32) {
        let owner = &mut self.slabs.caches[cache.index()];
        let slab = &owner.slabs[number];
        debug_assert!(slab.inuse == 0);
        let Slab { pfn, node, objects, .. } = *slab;
        owner.nr_slabs -= 1;
        owner.nr_objects -= u64::from(objects);
        owner.slabs.remove(number);
        let charges = owner.charges.take(number);
        let stat = slab_stat(owner.spec.reclaimable);
        let order = self.frames[pfn].order();
        self.stat.node_add(node, stat, -i64::from(order.pages()));
        self.frames[pfn].set_kind(Kind::Held, order);
        self.free_pages(env, pfn, order);
        self.free_charges(env, objects, charges);
    }
}
