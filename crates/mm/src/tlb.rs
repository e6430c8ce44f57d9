//! Translations that other CPUs still hold of pages that reclaim has unmapped.
//!
//! Rule: a page that is unmapped may be used through another CPU's TLB until that CPU has been interrupted and has flushed it. Reclaim gathers the
//! spaces whose pages it unmaps and interrupts the CPUs that run them once for the whole batch, before any page is freed. A page that is to be
//! written must not change meanwhile: if an entry that was taken away since the last flush was dirty, and so writable, the flush comes
//! before the write. So each page of memory that is written to costs interrupts of its own when it is swapped out.
//! Source: `set_tlb_ubc_flush_pending()`, `try_to_unmap_flush()`, `try_to_unmap_flush_dirty()` (mm/rmap.c, 4.20 and 6.12) and their
//! callers in `shrink_page_list()`.
//! Since/until: [`TlbFlush::Batched`] since 4.3; before it each page is flushed as it is unmapped.
//! Abstracted: which CPUs those are, and what it costs them, is the caller's knowledge ([`Effect::FlushTlb`]).
//! Omitted: flushes at munmap, mprotect and migration, and of pages of files, whose entries are clean by the time that they are written;
//! TLB misses after a flush.

use rules::TlbFlush;
use smallvec::SmallVec;
use units::SpaceId;

use crate::{Effect, Mm};

/// What one reclaimer has unmapped since its last flush (`struct tlbflush_unmap_batch`).
#[derive(Debug, Default)]
pub(crate) struct TlbBatch {
    spaces: SmallVec<[SpaceId; 4]>,
    /// An entry among them was dirty.
    writable: bool,
}

impl Mm {
    /// A page table entry of a space has been taken away, which was dirty or not.
    pub(crate) fn tlb_unmapped(&mut self, space: SpaceId, dirty: bool) {
        if self.rules.tlb_flush == TlbFlush::AtOnce {
            return self.effects.push(Effect::FlushTlb(space));
        }
        self.tlb.writable |= dirty;
        if !self.tlb.spaces.contains(&space) {
            self.tlb.spaces.push(space);
        }
    }

    /// A batch is to be freed (`try_to_unmap_flush()`).
    pub(crate) fn tlb_flush(&mut self) {
        self.tlb.writable = false;
        for space in self.tlb.spaces.drain(..) {
            self.effects.push(Effect::FlushTlb(space));
        }
    }

    /// A page is to be written (`try_to_unmap_flush_dirty()`).
    pub(crate) fn tlb_flush_written(&mut self) {
        if self.tlb.writable {
            self.tlb_flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anon::testing::{Machine, rules_4_20};

    fn flushes(m: &mut Machine) -> Vec<SpaceId> {
        let mut effects = Vec::new();
        m.mm.effects.take_into(&mut effects);
        effects.iter().filter_map(|e| if let Effect::FlushTlb(space) = e { Some(*space) } else { None }).collect()
    }

    #[test]
    fn one_flush_serves_a_batch_unless_a_dirty_page_is_written() {
        let mut m = Machine::new(rules_4_20());
        let (a, b) = (SpaceId(1), SpaceId(2));
        for space in [a, b, a] {
            m.mm.tlb_unmapped(space, false);
        }
        m.mm.tlb_flush_written();
        assert_eq!(flushes(&mut m), [], "no entry was writable");
        m.mm.tlb_unmapped(a, true);
        m.mm.tlb_flush_written();
        assert_eq!(flushes(&mut m), [a, b], "all that is pending");
        m.mm.tlb_unmapped(b, false);
        m.mm.tlb_flush_written();
        assert_eq!(flushes(&mut m), [], "that was clean again");
        m.mm.tlb_flush();
        m.mm.tlb_flush();
        assert_eq!(flushes(&mut m), [b]);
    }

    #[test]
    fn before_4_3_each_page_is_flushed() {
        let mut m = Machine::new(rules::Rules { tlb_flush: TlbFlush::AtOnce, ..rules_4_20() });
        for dirty in [false, true] {
            m.mm.tlb_unmapped(SpaceId(1), dirty);
        }
        assert_eq!(flushes(&mut m).len(), 2);
        m.mm.tlb_flush();
        assert_eq!(flushes(&mut m), []);
    }
}
