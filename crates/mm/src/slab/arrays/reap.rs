//! What SLAB keeps and nobody uses goes back in time.
//!
//! Rule: every two seconds each CPU gives back a fifth of what each of its arrays may hold, unless it took from that array since, and what
//! its node has of one other node; every four seconds it looks at what its node's CPUs share in the same way, and gives back empty slabs,
//! a fifth of the limit, unless one was taken since.
//! Source: `cache_reap()`, `drain_array()`, `drain_freelist()`, `reap_alien()`, mm/slab.c, 4.20.
//! Abstracted: all CPUs do so at one time (the kernel has each begin at a second, three ticks after the one before), and ask about
//! the same other node. Omitted: the CPU time of the worker that does it, but for the slabs it gives back.

use units::{CpuId, Nanos, NodeId};

use super::super::Keeper;
use super::super::table::Table;
use super::free::Discarded;
use super::{Array, Arrays};
use crate::{Env, Mm};

/// How often CPUs look at their arrays (`REAPTIMEOUT_AC`).
pub const REAP_INTERVAL: Nanos = Nanos::secs(2);
/// How often one looks at what a node keeps (`REAPTIMEOUT_NODE`).
const NODE_INTERVAL: Nanos = Nanos::secs(4);

impl Array {
    /// How many objects are to go, of an array that may hold `limit`.
    fn surplus(&mut self, limit: u32) -> usize {
        if std::mem::take(&mut self.touched) {
            return 0;
        }
        let (held, fifth) = (self.objects.len(), limit.div_ceil(5) as usize);
        if fifth > held { held.div_ceil(2) } else { fifth }
    }
}

impl Arrays {
    /// What a CPU does for a cache; the slabs to be given back.
    fn reap(&mut self, slabs: &mut Table, shift: u32, env: &Env, alien: NodeId) -> Discarded {
        let mut discarded = Discarded::new();
        if alien != env.node {
            self.drain_alien(slabs, shift, env.node, alien, &mut discarded);
        }
        let node = &mut self.nodes[env.node.index()];
        let array = &mut self.cpus[env.cpu.index()];
        let freed = array.surplus(self.limit);
        node.free_block(slabs, shift, array.objects.drain(..freed), &mut discarded);
        if node.next_reap > env.now {
            return discarded;
        }
        node.next_reap = env.now + NODE_INTERVAL;
        let mut shared = std::mem::take(&mut node.shared);
        let freed = shared.surplus(self.shared_limit);
        node.free_block(slabs, shift, shared.objects.drain(..freed), &mut discarded);
        node.shared = shared;
        if !std::mem::take(&mut node.empty_touched) {
            let slabs_to_free = node.free_limit.div_ceil(5 * self.objects);
            discarded.extend((0..slabs_to_free).map_while(|_| node.drop_empty(slabs)));
        }
        discarded
    }
}

impl Mm {
    /// Each CPU gives back what it keeps of caches and does not use; nothing with SLUB.
    pub fn slab_reap(&mut self, env: &Env) {
        let nr_nodes = self.nodes.len() as u64;
        // The node that is asked about goes round from time to time.
        let alien = NodeId((env.now.0 / REAP_INTERVAL.0 % nr_nodes) as u8);
        for cpu in 0..self.slabs.cpu_nodes.len() {
            let env = Env { cpu: CpuId(cpu as u16), node: self.slabs.cpu_nodes[cpu], ..*env };
            for cache in 0..self.slabs.caches.len() {
                let owner = &mut self.slabs.caches[cache];
                let Keeper::Slab(arrays) = &mut owner.keeper else { return };
                let id = owner.id;
                for number in arrays.reap(&mut owner.slabs, owner.shift, &env, alien) {
                    self.discard_slab(&env, id, number);
                }
            }
        }
    }
}
