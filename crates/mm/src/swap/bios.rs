//! Memory of the bios that carry pages to swap.
//!
//! Rule: each has a bio of its own from its submission to its end. Who allocates it has to free memory, so that it neither reclaims
//! for it nor takes from the reserves; what the slab cannot give then comes from a reserve of two bios. When that is used
//! up, reclaim sleeps until one comes back: a limit or a slow device before swap holds reclaim back, whatever there is to
//! be freed elsewhere.
//! Source: `__swap_writepage()` (mm/page_io.c), `bio_alloc_bioset()`, `BIO_POOL_SIZE` (block/bio.c), `mempool_alloc()` (mm/mempool.c), 4.20,
//! 6.1 and 6.12. Guests of 6.1 that swap against `io.max` sleep nowhere else while they reclaim.
//! Abstracted: a reclaimer sleeps after its batch, not amidst it, so that some bios are in use beyond the reserve. A bio that has ended when its
//! submission returns is not allocated. The sleep has no limit (5 s, after which the slab is asked again).
//! Omitted: other users of `fs_bio_set`; that who writes back from zswap sleeps, too.

use units::Gfp;

use crate::slab::CacheId;
use crate::{Bio, BioMemory, Env, Mm};

/// `BIO_POOL_SIZE`.
const RESERVE: u32 = 2;
/// `GFP_NOIO`, as `mempool_alloc()` has it when it asks for the first time.
const GFP: Gfp = Gfp::NOIO.without(Gfp::DIRECT_RECLAIM).with(Gfp::NOMEMALLOC).with(Gfp::NORETRY).with(Gfp::NOWARN);

impl Mm {
    /// Whether a reclaimer that writes to swap has to wait for the end of a write.
    pub fn lacks_swap_bios(&self) -> bool {
        self.swap.reserved_bios > RESERVE
    }

    /// Gives a bio that is to be queued its memory.
    pub(crate) fn alloc_swap_bio(&mut self, env: &Env, bio: Bio) -> Bio {
        let obj = self.slab_alloc_nowait(env, CacheId::BIO, GFP);
        self.swap.reserved_bios += u32::from(!obj.is_some());
        let mut memory = BioMemory::NONE;
        memory.objects[0].1 = obj;
        Bio { memory, ..bio }
    }

    /// A bio that was queued has ended.
    pub(crate) fn free_swap_bio(&mut self, env: &Env, bio: &Bio) {
        let (cache, obj) = bio.memory.objects[0];
        if obj.is_some() {
            self.slab_free(env, cache, obj);
        } else {
            self.swap.reserved_bios -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use units::Pfn;

    use super::*;
    use crate::BioTarget;
    use crate::slab::tests::{exhaust, machine, on, rules_4_20};

    fn write_of(pfn: u32) -> Bio {
        let target = BioTarget::Swap { pfn: Pfn(pfn) };
        Bio { device: 5, sector: 0, pages: 1, write: true, sync: false, target, memory: BioMemory::NONE }
    }

    fn free(mm: &Mm) -> u64 {
        mm.zones.iter().map(|zone| zone.free_pages + mm.pcp_pages(zone.id)).sum()
    }

    #[test]
    fn a_bio_has_an_object_from_its_submission_to_its_end() {
        let (mut mm, env) = (machine(1, 1 << 14, rules_4_20()), on(0));
        let bios: Vec<Bio> = (0..50).map(|n| mm.alloc_swap_bio(&env, write_of(n))).collect();
        assert!(bios.iter().all(|bio| bio.memory.objects[0].1.is_some()) && !mm.lacks_swap_bios());
        let mut objects: Vec<_> = bios.iter().map(|bio| bio.memory.objects[0].1).collect();
        objects.sort_unstable();
        objects.dedup();
        assert_eq!(objects.len(), 50);
        bios.iter().for_each(|bio| mm.free_swap_bio(&env, bio));
        assert_eq!(mm.swap.reserved_bios, 0);
    }

    #[test]
    fn below_the_watermark_two_bios_are_left_and_reclaim_takes_no_more_of_its_reserves() {
        let (mut mm, mut env) = (machine(1, 1 << 14, rules_4_20()), on(0));
        env.task.memalloc = true;
        exhaust(&mut mm, Some(crate::zone::Wmark::Min));
        let before = free(&mm);
        let bios: Vec<Bio> = (0..RESERVE).map(|n| mm.alloc_swap_bio(&env, write_of(n))).collect();
        assert!(bios.iter().all(|bio| !bio.memory.objects[0].1.is_some()) && !mm.lacks_swap_bios());
        let third = mm.alloc_swap_bio(&env, write_of(9));
        assert!(mm.lacks_swap_bios());
        assert_eq!(free(&mm), before);
        // Any of them that ends lets reclaim go on.
        mm.free_swap_bio(&env, &bios[0]);
        assert!(!mm.lacks_swap_bios());
        mm.free_swap_bio(&env, &bios[1]);
        mm.free_swap_bio(&env, &third);
        assert_eq!(mm.swap.reserved_bios, 0);
    }
}
