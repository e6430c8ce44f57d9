//! Memory of bios: of a slab, or of the reserve of a pool.
//!
//! Rule: what a bio consists of is had from its submission to its end. Who submits it may have to free memory by that, so that he neither
//! reclaims for it nor takes from the zones' reserves; what the slab cannot give then comes from the reserve of its pool: two bios and two
//! arrays of the most vectors for all who have none of their own, 32 each for XFS's writes. When that is used up, he sleeps until something
//! comes back, be it the slab's, for a reserve is filled first; and then asks the slab with reclaim, unless he reclaims himself: a slow device
//! holds reclaim and flushers back, whatever there is to be freed elsewhere.
//! Source: `mempool_alloc()`, `mempool_free()` (mm/mempool.c), `bio_alloc_bioset()`, `bvec_alloc()`, `BIO_POOL_SIZE` (block/bio.c), `__swap_writepage()` (mm/page_io.c),
//! 3.1, 4.20, 6.1 and 6.12; `xfs_ioend_pool` (fs/xfs, 3.1), `xfs_ioend_bioset` (4.20), `iomap_ioend_bioset` (6.12), `4 * MAX_BUF_PER_PAGE`. Guests of 6.1 that swap
//! against `io.max` sleep nowhere else while they reclaim; the flusher of one of 3.1 slept 4 to 20 ms at a time for vectors.
//! Abstracted: who writes sleeps after what he wrote in one go, not amidst it, so that some are in use beyond the reserve, and what the slab gives him
//! then is for his next bio. A bio that has ended when its submission returns is not allocated. The sleep has no limit (5 s, after which
//! the slab is asked again).
//! The first time the slab is asked as if it might reclaim, so that a try of a higher order wakes nobody: with kswapd woken for it, reclaim meets
//! 1090 pages again under writeback in the runs of thpfio3 under 4.18, in guests 320.
//! Omitted: bios of reads and of metadata; XFS's bios themselves where ioends are apart (until 4.6); that who syncs a file sleeps, too.

use units::Gfp;

use crate::slab::{CacheId, Obj};
use crate::vfs::Need;
use crate::{Bio, BioMemory, Env, Mm};

/// `GFP_NOIO`, as `mempool_alloc()` has it.
const GFP: Gfp = Gfp::NOIO.with(Gfp::NOMEMALLOC).with(Gfp::NORETRY).with(Gfp::NOWARN);

/// What a pool keeps in reserve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserve {
    /// Bios of `fs_bio_set`.
    Bio,
    /// Their vectors, the most that one may have.
    Vectors,
    /// XFS's writes.
    Ioend,
    /// Vectors of XFS's writes, where their bios have a set of their own.
    IoendVectors,
}

impl Reserve {
    /// How many there are of each.
    const SIZES: [u32; 4] = [2, 2, 32, 32];

    /// The cache of its pool.
    fn cache(self) -> CacheId {
        match self {
            Reserve::Bio => CacheId::BIO,
            Reserve::Vectors | Reserve::IoendVectors => CacheId::BIOVEC_MAX,
            Reserve::Ioend => CacheId::XFS_IOEND,
        }
    }
}

/// Where a part of a bio is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BioPart {
    /// There is no such part, or it stands on a stack.
    Nothing,
    /// An object of a slab, and the pool that it is of.
    Slab(CacheId, Obj, Option<Reserve>),
    Reserve(Reserve),
}

/// The reserve of a pool.
#[derive(Debug, Default)]
struct Pool {
    /// What is in use of it.
    used: u32,
    /// What has filled it in place of parts that are still in use.
    filled: Vec<Obj>,
}

/// The reserves of all pools.
#[derive(Debug, Default)]
pub(crate) struct BioPools {
    pools: [Pool; Reserve::SIZES.len()],
}

impl Mm {
    /// Whether more is in use of a reserve than there is.
    pub fn is_overdrawn(&self, reserve: Reserve) -> bool {
        self.bio_pools.pools[reserve as usize].used > Reserve::SIZES[reserve as usize]
    }

    /// The reserve that who submits a bio would have had to wait for, if any.
    pub fn overdraws(&self, bio: &Bio) -> Option<Reserve> {
        bio.memory.parts.iter().find_map(|part| match part {
            BioPart::Reserve(reserve) => self.is_overdrawn(*reserve).then_some(*reserve),
            BioPart::Nothing | BioPart::Slab(..) => None,
        })
    }

    /// What is missing for another of a pool that was overdrawn, for who may reclaim for it: allocate it.
    pub fn refill_bios(&mut self, env: &Env, reserve: Reserve) -> Option<Need> {
        let cache = reserve.cache();
        match self.slab_alloc(env, cache, GFP) {
            Ok(obj) => self.slab_free(env, cache, obj),
            Err(request) => return Some(Need::Slab(cache, request)),
        }
        None
    }

    /// A part of a bio: from its cache, that of its pool, which may be larger, or the reserve.
    pub(crate) fn alloc_bio_part(&mut self, env: &Env, cache: CacheId, reserve: Reserve) -> BioPart {
        let larger = Some(reserve.cache()).filter(|of_pool| *of_pool != cache);
        for cache in [Some(cache), larger].into_iter().flatten() {
            let obj = self.slab_alloc_nowait(env, cache, GFP);
            if obj.is_some() {
                return BioPart::Slab(cache, obj, Some(reserve).filter(|reserve| reserve.cache() == cache));
            }
        }
        self.bio_pools.pools[reserve as usize].used += 1;
        BioPart::Reserve(reserve)
    }

    pub(crate) fn free_bio_part(&mut self, env: &Env, part: BioPart) {
        match part {
            BioPart::Nothing => {}
            BioPart::Slab(cache, obj, reserve) => {
                let pool = reserve.map(|reserve| &mut self.bio_pools.pools[reserve as usize]);
                match pool.filter(|pool| pool.used > 0) {
                    Some(pool) => {
                        pool.used -= 1;
                        pool.filled.push(obj);
                    }
                    None => self.slab_free(env, cache, obj),
                }
            }
            BioPart::Reserve(reserve) => {
                let pool = &mut self.bio_pools.pools[reserve as usize];
                match pool.filled.pop() {
                    Some(obj) => self.slab_free(env, reserve.cache(), obj),
                    None => pool.used -= 1,
                }
            }
        }
    }

    /// Gives a bio to swap that is to be queued its memory; the one vector is inside it.
    pub(crate) fn alloc_swap_bio(&mut self, env: &Env, bio: Bio) -> Bio {
        let part = self.alloc_bio_part(env, CacheId::BIO, Reserve::Bio);
        Bio { memory: BioMemory { parts: [part, BioPart::Nothing, BioPart::Nothing], ..bio.memory }, ..bio }
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

    fn at_rest(mm: &Mm) -> bool {
        mm.bio_pools.pools.iter().all(|pool| pool.used == 0 && pool.filled.is_empty())
    }

    #[test]
    fn a_bio_has_an_object_from_its_submission_to_its_end() {
        let (mut mm, env) = (machine(1, 1 << 14, rules_4_20()), on(0));
        let bios: Vec<Bio> = (0..50).map(|n| mm.alloc_swap_bio(&env, write_of(n))).collect();
        assert!(bios.iter().all(|bio| mm.overdraws(bio).is_none()));
        let parts: Vec<BioPart> = bios.iter().map(|bio| bio.memory.parts[0]).collect();
        let mut objects: Vec<Obj> = parts
            .iter()
            .map(|part| match part {
                BioPart::Slab(CacheId::BIO, obj, _) => *obj,
                other => panic!("{other:?}"),
            })
            .collect();
        objects.sort_unstable();
        objects.dedup();
        assert_eq!(objects.len(), 50);
        parts.iter().for_each(|part| mm.free_bio_part(&env, *part));
        assert!(at_rest(&mm));
    }

    #[test]
    fn below_the_watermark_a_reserve_is_left_and_reclaim_takes_no_more_of_the_zones() {
        let (mut mm, mut env) = (machine(1, 1 << 14, rules_4_20()), on(0));
        env.task.memalloc = true;
        exhaust(&mut mm, Some(crate::zone::Wmark::Min));
        let before = free(&mm);
        let caches = [
            (CacheId::BIO, Reserve::Bio, 2),
            (CacheId::BIOVEC_MAX, Reserve::Vectors, 2),
            (CacheId::XFS_IOEND, Reserve::Ioend, 32),
            (CacheId::BIOVEC_MAX, Reserve::IoendVectors, 32),
        ];
        for (cache, reserve, size) in caches {
            let parts: Vec<BioPart> = (0..size).map(|_| mm.alloc_bio_part(&env, cache, reserve)).collect();
            assert!(parts.iter().all(|part| *part == BioPart::Reserve(reserve)) && !mm.is_overdrawn(reserve));
            let one_more = mm.alloc_bio_part(&env, cache, reserve);
            assert!(mm.is_overdrawn(reserve));
            assert_eq!(free(&mm), before);
            // Any of them that ends lets whoever waits go on.
            mm.free_bio_part(&env, parts[0]);
            assert!(!mm.is_overdrawn(reserve));
            parts[1..].iter().chain([&one_more]).for_each(|part| mm.free_bio_part(&env, *part));
        }
        assert!(at_rest(&mm));
    }

    #[test]
    fn what_ends_fills_the_reserve_before_the_slab() {
        let (mut mm, env) = (machine(1, 1 << 14, rules_4_20()), on(0));
        let of_slab = mm.alloc_swap_bio(&env, write_of(0));
        exhaust(&mut mm, Some(crate::zone::Wmark::Min));
        // The slab's other bios are all in use.
        let mut rest = Vec::new();
        while let Ok(obj) = mm.slab_alloc(&env, CacheId::BIO, GFP) {
            rest.push(obj);
        }
        let reserved: Vec<Bio> = (1..4).map(|n| mm.alloc_swap_bio(&env, write_of(n))).collect();
        assert!(mm.is_overdrawn(Reserve::Bio));
        mm.free_bio(&env, &of_slab.memory.parts);
        assert!(!mm.is_overdrawn(Reserve::Bio));
        let fourth = mm.alloc_swap_bio(&env, write_of(4));
        assert_eq!(mm.overdraws(&fourth), Some(Reserve::Bio), "the slab has got nothing");
        reserved.iter().chain([&fourth]).for_each(|bio| mm.free_bio(&env, &bio.memory.parts));
        assert!(at_rest(&mm));
        assert!(mm.slab_alloc(&env, CacheId::BIO, GFP).is_ok(), "now it has");
    }

    #[test]
    fn who_submits_waits_for_the_reserve_that_his_own_bio_overdraws() {
        let (mut mm, env) = (machine(1, 1 << 14, rules_4_20()), on(0));
        exhaust(&mut mm, Some(crate::zone::Wmark::Min));
        let bios: Vec<Bio> = (0..3).map(|n| mm.alloc_swap_bio(&env, write_of(n))).collect();
        assert_eq!(mm.overdraws(&bios[2]), Some(Reserve::Bio));
        let vectors = mm.alloc_bio_part(&env, CacheId::BIOVEC_MAX, Reserve::Vectors);
        let parts = [BioPart::Nothing, vectors, BioPart::Nothing];
        let other = Bio { memory: BioMemory { parts, ..BioMemory::NONE }, ..write_of(9) };
        assert_eq!(mm.overdraws(&other), None, "of vectors one is left");
        bios.iter().chain([&other]).for_each(|bio| mm.free_bio(&env, &bio.memory.parts));
    }
}
