//! Freeing of an object, and of a slab that became empty.
//!
//! Rule: an object of a slab that a CPU holds just goes back. A full slab that gets its first free object goes on
//! the freeing CPU's list of partial slabs; when that list holds more than `cpu_partial`, all of it goes to the nodes
//! first. A slab on a node's list that becomes empty is given back if the node has at least `min_partial` partial
//! slabs. Source: `__slab_free()`, `put_cpu_partial()`, `unfreeze_partials()`, `deactivate_slab()`, mm/slub.c, 4.20.
//! Since/until: until 3.1 ([`CpuPartial`](rules::CpuPartial)) CPUs have no such lists: a full slab goes to its node's, at the end; until 3.0
//! it is given back there as soon as it is empty (`__slab_free()`, 2.6.39 and 3.1).
//! Abstracted: nothing more. Omitted: bulk free; CPU hotplug.

use super::super::table::Table;
use super::super::{CacheId, Keeper, NONE, Obj, Place};
use super::Lists;
use crate::{Env, Mm};

/// What is to be done with a slab after an object was freed.
enum After {
    Nothing,
    ToCpu(u32),
    Discard(u32),
}

impl Lists {
    /// Gives a slot back and decides.
    #[inline]
    fn release(&mut self, slabs: &mut Table, shift: u32, obj: Obj) -> After {
        let number = obj.0 >> shift;
        let slab = slabs.give_slot(number, obj.0 & ((1 << shift) - 1));
        let list = &mut self.nodes[slab.node.index()];
        // Its node's list would not keep it if it were empty.
        let excess = list.len >= self.keep_freed;
        match slab.place {
            Place::Full if self.cpu_partial > 0 => After::ToCpu(number),
            Place::Full if slab.inuse == 0 && excess => After::Discard(number),
            Place::Full => {
                list.add(slabs, number, Place::Node, false);
                After::Nothing
            }
            Place::Node if slab.inuse == 0 && excess => {
                list.remove(slabs, number);
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

    /// Puts a slab on its node's list if it has free objects; whether it is to be given back instead.
    fn put_on_node(&mut self, slabs: &mut Table, number: u32, first: bool) -> bool {
        let list = &mut self.nodes[slabs[number].node.index()];
        if slabs.free_objects(number) == 0 {
            slabs[number].place = Place::Full;
        } else if slabs[number].inuse == 0 && list.len >= self.min_partial {
            return true;
        } else {
            list.add(slabs, number, Place::Node, first);
        }
        false
    }
}

impl Mm {
    /// Frees an object of SLUB.
    pub(in super::super) fn slub_free(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        let cpu = env.cpu.index();
        let (lists, slabs, shift) = self.slub_lists(cache);
        match lists.release(slabs, shift, obj) {
            After::Nothing => {}
            After::Discard(number) => self.discard_slab(env, cache, number),
            After::ToCpu(number) => {
                if lists.cpu_partial_is_full(cpu) {
                    self.unfreeze_partials(env, cache);
                }
                let (lists, slabs, _) = self.slub_lists(cache);
                lists.push_cpu_partial(slabs, cpu, number);
            }
        }
    }

    /// The lists of a cache, its slabs, and how its objects are numbered.
    #[inline]
    fn slub_lists(&mut self, cache: CacheId) -> (&mut Lists, &mut Table, u32) {
        let owner = self.slabs.cache_mut(cache);
        let Keeper::Slub(lists) = &mut owner.keeper else { unreachable!("all caches are of one allocator") };
        (lists, &mut owner.slabs, owner.shift)
    }

    /// Moves a CPU's partial slabs to the lists of their nodes, and gives back the empty ones that these do not want.
    fn unfreeze_partials(&mut self, env: &Env, cache: CacheId) {
        let (lists, ..) = self.slub_lists(cache);
        let list = &mut lists.cpus[env.cpu.index()];
        let mut at = std::mem::replace(&mut list.partial, NONE);
        list.weight = 0;
        while at != NONE {
            let (lists, slabs, _) = self.slub_lists(cache);
            let next = slabs[at].next;
            if lists.put_on_node(slabs, at, false) {
                self.discard_slab(env, cache, at);
            }
            at = next;
        }
    }

    /// Takes the slab that a CPU allocates from away from it.
    pub(in super::super) fn flush_cpu_slab(&mut self, env: &Env, cache: CacheId) {
        let (lists, slabs, _) = self.slub_lists(cache);
        let number = std::mem::replace(&mut lists.cpus[env.cpu.index()].current, NONE);
        if number != NONE && lists.put_on_node(slabs, number, true) {
            self.discard_slab(env, cache, number);
        }
    }
}
