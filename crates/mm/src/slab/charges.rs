//! What it takes to charge the objects of a slab to memory cgroups.
//!
//! Rule: once a cgroup but the root is in use, each new slab of an accounted cache gets a vector of 8 B for each of its
//! objects, from kmalloc, which lives as long as the slab.
//! Source: `account_slab()`, `alloc_slab_obj_exts()`, `__memcg_slab_post_alloc_hook()`, mm/slub.c, `struct slabobj_ext`, 6.12.
//! Since/until: [`ObjectAccounting`].
//! Abstracted: a vector is allocated without sleeping, with the slab and not with the first object that is charged.
//! What is charged, and to whom: [`crate::memcg`].

use rules::ObjectAccounting;
use units::Gfp;

use super::{CacheId, Obj};
use crate::{Env, Mm};

/// Bytes of a vector for each object.
const ENTRY: u32 = 8;

/// The kmalloc cache for a vector of so many objects.
fn cache_for(objects: u32) -> Option<CacheId> {
    CacheId::kmalloc(objects * ENTRY)
}

impl Mm {
    /// Gives a new slab its vector, if it needs one.
    pub(super) fn attach_charges(&mut self, env: &Env, cache: CacheId, number: u32) {
        let owner = self.slabs.cache(cache);
        let accounting = self.memcg.in_use() && self.rules.object_accounting == ObjectAccounting::Vectors;
        if !accounting || !owner.spec.accounted {
            return;
        }
        let Some(kmalloc) = cache_for(owner.slabs.objects(number)) else { return };
        let charges = self.slab_alloc_nowait(env, kmalloc, Gfp::NOFS);
        self.slabs.cache_mut(cache).charges.set(number, charges);
    }

    /// Frees the vector of a slab that is gone.
    pub(super) fn free_charges(&mut self, env: &Env, objects: u32, charges: Obj) {
        if charges.is_some() {
            self.slab_free(env, cache_for(objects).expect("it was allocated"), charges);
        }
    }
}
