//! Freeing of an object, and of slabs without any in use.

use units::NodeId;

use super::super::table::Table;
use super::super::{CacheId, Keeper, Obj, Place};
use super::{ALIEN_LIMIT, Arrays, Node};
use crate::{Env, Mm};

/// Slabs that are to be given back.
pub(super) type Discarded = Vec<u32>;

impl Node {
    /// Gives an object back to its slab, which is one of this node's.
    fn put(&mut self, slabs: &mut Table, shift: u32, obj: Obj) {
        let number = obj.0 >> shift;
        let was_full = slabs[number].place == Place::Full;
        let slab = slabs.give_slot(number, obj.0 & ((1 << shift) - 1));
        self.free_objects += 1;
        if !was_full {
            self.partial.remove(slabs, number);
        }
        if slab.inuse == 0 {
            self.empty.add(slabs, number, Place::Empty, true);
        } else {
            self.partial.add(slabs, number, Place::Node, false);
        }
    }

    /// Takes the slab that has been empty longest off its list.
    pub(super) fn drop_empty(&mut self, slabs: &mut Table) -> Option<u32> {
        let number = (self.empty.len > 0).then_some(self.empty.tail)?;
        self.empty.remove(slabs, number);
        self.free_objects -= slabs.objects(number);
        Some(number)
    }

    /// Gives objects of this node back to their slabs (`free_block()`); the slabs that are too many then.
    pub(super) fn free_block(
        &mut self,
        slabs: &mut Table,
        shift: u32,
        objects: impl Iterator<Item = Obj>,
        discarded: &mut Discarded,
    ) {
        objects.for_each(|obj| self.put(slabs, shift, obj));
        while self.free_objects > self.free_limit {
            let Some(number) = self.drop_empty(slabs) else { return };
            discarded.push(number);
        }
    }
}

impl Arrays {
    /// Frees an object of the CPU's own node.
    #[inline]
    fn free_local(&mut self, slabs: &mut Table, shift: u32, cpu: usize, node: NodeId, obj: Obj) -> Discarded {
        let mut discarded = Discarded::new();
        if self.cpus[cpu].objects.len() >= self.limit as usize {
            self.flush(slabs, shift, cpu, node, &mut discarded);
        }
        self.cpus[cpu].objects.push(obj);
        discarded
    }

    /// Gives the objects that a CPU has had longest to what its node's CPUs share, or to the slabs (`cache_flusharray()`).
    fn flush(&mut self, slabs: &mut Table, shift: u32, cpu: usize, node: NodeId, discarded: &mut Discarded) {
        let node = &mut self.nodes[node.index()];
        let room = (self.shared_limit as usize).saturating_sub(node.shared.objects.len());
        let array = &mut self.cpus[cpu].objects;
        if room > 0 {
            node.shared.objects.extend(array.drain(..room.min(self.batch as usize)));
        } else {
            node.free_block(slabs, shift, array.drain(..self.batch as usize), discarded);
        }
    }

    /// Frees an object of another node than the CPU's.
    fn free_alien(&mut self, slabs: &mut Table, shift: u32, node: NodeId, home: NodeId, obj: Obj) -> Discarded {
        let mut discarded = Discarded::new();
        if self.nodes[node.index()].alien[home.index()].len() >= ALIEN_LIMIT {
            self.drain_alien(slabs, shift, node, home, &mut discarded);
        }
        self.nodes[node.index()].alien[home.index()].push(obj);
        discarded
    }

    /// Gives what a node has of another one back (`__drain_alien_cache()`).
    pub(super) fn drain_alien(
        &mut self,
        slabs: &mut Table,
        shift: u32,
        node: NodeId,
        home: NodeId,
        discarded: &mut Discarded,
    ) {
        let mut objects = std::mem::take(&mut self.nodes[node.index()].alien[home.index()]);
        let home_node = &mut self.nodes[home.index()];
        let room = (self.shared_limit as usize).saturating_sub(home_node.shared.objects.len());
        let kept = objects.len().saturating_sub(room);
        home_node.shared.objects.extend(objects.drain(kept..));
        home_node.free_block(slabs, shift, objects.drain(..), discarded);
        self.nodes[node.index()].alien[home.index()] = objects;
    }
}

impl Mm {
    /// Frees an object of SLAB.
    pub(in super::super) fn array_free(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        let owner = self.slabs.cache_mut(cache);
        let (slabs, shift) = (&mut owner.slabs, owner.shift);
        let Keeper::Slab(arrays) = &mut owner.keeper else { unreachable!("all caches are of one allocator") };
        let (node, home) = (env.node, slabs[obj.0 >> shift].node);
        let discarded = if node == home {
            arrays.free_local(slabs, shift, env.cpu.index(), node, obj)
        } else {
            arrays.free_alien(slabs, shift, node, home, obj)
        };
        for number in discarded {
            self.discard_slab(env, cache, number);
        }
    }
}
