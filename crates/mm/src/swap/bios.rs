//! Memory of the bios that carry pages to swap.
//!
//! Rule: each has a bio of its own from its submission to its end. Who allocates it has to free memory, so that it neither reclaims
//! for it nor takes from the reserves; what the slab cannot give then comes from a reserve of two bios. When that is used
//! up, reclaim sleeps until one comes back: a limit or a slow device before swap holds reclaim back, whatever there is to
//! be freed elsewhere.
//! Source: `__swap_writepage()` (mm/page_io.c), `bio_alloc_bioset()`, `BIO_POOL_SIZE` (block/bio.c), `mempool_alloc()` (mm/mempool.c), 4.20,
//! 6.1 and 6.12. Guests of 6.1 that swap against `io.max` sleep nowhere else while they reclaim.
//! Abstracted: a reclaimer sleeps after its batch, not amidst it, so that some bios are in use beyond the reserve. A bio that has ended when its
//! submission returns is not allocated.
//! Omitted: other users of `fs_bio_set`.

use units::Gfp;

use crate::slab::CacheId;
use crate::{Bio, BioMemory, Env, Mm};

/// `BIO_POOL_SIZE`.
const RESERVE: u32 = 2;
/// `GFP_NOIO`, as `mempool_alloc()` has it when it asks for the first time.
const GFP: Gfp =
    Gfp::NOIO.without(Gfp::DIRECT_RECLAIM).with(Gfp::NOMEMALLOC).with(Gfp::NORETRY).with(Gfp::NOWARN);

impl Mm {
    /// Whether a reclaimer that writes to swap has to wait for the end of a write.
    pub fn lacks_swap_bios(&self) -> bool {
        self.swap.reserved_bios > RESERVE
    }

    /// Gives a bio that is to be queued its memory.
    pub(crate) fn alloc_swap_bio(&mut self, env: &Env, bio: Bio) -> Bio {
        let obj = self.slab_alloc_nowait(env, CacheId::BIO, GFP);
        self.swap.reserved_bios += u32::from(!obj.is_some());
        Bio { memory: BioMemory { bio: obj, ..BioMemory::NONE }, ..bio }
    }

    /// A bio that was queued has ended.
    pub(crate) fn free_swap_bio(&mut self, env: &Env, bio: &Bio) {
        if bio.memory.bio.is_some() {
            self.slab_free(env, CacheId::BIO, bio.memory.bio);
        } else {
            self.swap.reserved_bios -= 1;
        }
    }
}
