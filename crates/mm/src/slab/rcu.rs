//! Objects that are freed once no reader can hold them any more.
//!
//! Rule: an object that is looked up without locks is freed after a grace period that began after it was given up. A CPU notes at its tick
//! what was given up since the one before; the grace period that begins then ends at the next tick, and the objects are freed at the one
//! after that, each on the CPU that gave it up: two to three ticks later.
//! Source: `call_rcu()`, `rcu_accelerate_cbs()`, `rcu_do_batch()`, kernel/rcu/tree.c (4.4 and 6.12); `dentry_free()`, fs/dcache.c;
//! `destroy_inode()`, fs/inode.c; `xfs_inode_free_callback()`, fs/xfs/xfs_icache.c; `radix_tree_node_free()`, lib/radix-tree.c.
//! Abstracted: every CPU passes a quiescent state between two ticks, and frees all that it may at once (the kernel frees ten at a time, of
//! more than 10,000 all, in a softirq or its thread). Omitted: open files (until 6.6), tasks and their memory, which are freed at once here.

use units::{CpuId, NodeId};

use super::{CacheId, Obj, ObjectRuns};
use crate::{Effect, Env, Mm};

/// From a CPU's tick to the one at which it frees what was given up before.
const TICKS: usize = 3;

/// What a CPU has given up.
#[derive(Debug, Default)]
struct GivenUp {
    node: NodeId,
    /// Since the last tick, between that and the one before, and before that one.
    since: [ObjectRuns; TICKS],
}

/// What waits for the end of a grace period, by CPU.
#[derive(Debug, Default)]
pub struct Rcu {
    cpus: Vec<GivenUp>,
    /// A tick is to be told of.
    armed: bool,
}

impl Rcu {
    pub(crate) fn new(nr_cpus: usize) -> Rcu {
        Rcu { cpus: (0..nr_cpus).map(|_| GivenUp::default()).collect(), armed: false }
    }

    pub(crate) fn host_bytes(&self) -> usize {
        self.cpus.iter().flat_map(|cpu| &cpu.since).map(ObjectRuns::host_bytes).sum()
    }
}

impl Mm {
    /// Frees an object after a grace period.
    pub(crate) fn slab_free_rcu(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        let given_up = &mut self.rcu.cpus[env.cpu.index()];
        given_up.node = env.node;
        given_up.since[0].push(cache, obj);
        if !std::mem::replace(&mut self.rcu.armed, true) {
            self.effects.push(Effect::ArmRcu);
        }
    }

    /// The tick of all CPUs: frees what no reader can hold any more; whether anything is left, so that the next tick matters, too.
    pub fn rcu_tick(&mut self, env: &Env) -> bool {
        let mut left = false;
        for cpu in 0..self.rcu.cpus.len() {
            let given_up = &mut self.rcu.cpus[cpu];
            let due = std::mem::take(&mut given_up.since[TICKS - 1]);
            given_up.since.rotate_right(1);
            left |= given_up.since.iter().any(|objects| !objects.is_empty());
            let env = Env { cpu: CpuId(cpu as u16), node: given_up.node, ..*env };
            for (cache, obj) in due.iter() {
                self.slab_free(&env, cache, obj);
            }
        }
        self.rcu.armed = left;
        left
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;
    use units::Gfp;

    use super::*;
    use crate::zone::testing::{env, one_zone};

    /// Dentries that are not free.
    fn in_use(mm: &Mm) -> u32 {
        mm.slabs.cache(CacheId::DENTRY).slabs.iter().map(|(_, slab)| u32::from(slab.inuse)).sum()
    }

    #[test]
    fn what_is_given_up_between_two_ticks_is_freed_at_the_third() {
        let mut mm = one_zone(8, Rules::newest());
        let objects: Vec<(u16, Obj)> = [0, 1]
            .into_iter()
            .flat_map(|cpu| (0..43).map(move |_| cpu))
            .map(|cpu| (cpu, mm.slab_alloc(&env(cpu), CacheId::DENTRY, Gfp::KERNEL).expect("memory is plentiful")))
            .collect();
        for (cpu, obj) in &objects[..80] {
            mm.slab_free_rcu(&env(*cpu), CacheId::DENTRY, *obj);
        }
        assert!(mm.rcu_tick(&env(0)) && mm.rcu_tick(&env(0)));
        // Given up later: not freed with the others.
        mm.slab_free_rcu(&env(1), CacheId::DENTRY, objects[80].1);
        assert_eq!(in_use(&mm), 86, "a reader may hold them");
        assert!(mm.rcu_tick(&env(0)), "one waits");
        assert_eq!(in_use(&mm), 6);
        assert!(mm.rcu_tick(&env(0)));
        assert!(!mm.rcu_tick(&env(0)), "nothing waits any more");
        assert_eq!(in_use(&mm), 5);
    }

    #[test]
    fn a_tick_is_asked_for_once_until_nothing_waits() {
        let mut mm = one_zone(8, Rules::newest());
        let asked = |mm: &mut Mm| {
            let mut effects = Vec::new();
            mm.effects.take_into(&mut effects);
            effects.into_iter().filter(|effect| *effect == Effect::ArmRcu).count()
        };
        for round in 0..2 {
            for _ in 0..3 {
                let obj = mm.slab_alloc(&env(0), CacheId::DENTRY, Gfp::KERNEL).expect("memory is plentiful");
                mm.slab_free_rcu(&env(0), CacheId::DENTRY, obj);
            }
            assert_eq!(asked(&mut mm), 1, "{round}");
            while mm.rcu_tick(&env(0)) {}
            assert_eq!(asked(&mut mm), 0, "{round}");
        }
    }
}
