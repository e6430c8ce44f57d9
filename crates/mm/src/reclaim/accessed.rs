//! What a second access does to a page: `mark_page_accessed()`.
//!
//! Rule:
//! ```text
//! inactive            -> inactive, referenced
//! inactive, referenced -> active
//! active              -> active, referenced
//! ```
//! An activation ages the pages that are not resident, as an eviction does.
//! Source: `mark_page_accessed()` (mm/swap.c, 4.20), `folio_mark_accessed()` (6.12), `workingset_activation()`
//! (mm/workingset.c).
//! Since/until: the multi-gen LRU counts accesses instead. Only file pages age the others until 5.7 ([`ScanBalance::RotatedRatio`]), all since 5.8.
//! Abstracted: a page that is not yet on a list is taken to be in the caller's pagevec and gets `ACTIVE` for when
//! it is added; until 3.10 accesses do not do that (pagevec.rs).
//! Omitted: idle page tracking.

use rules::ScanBalance;
use units::Pfn;

use super::lru::is_file_lru;
use crate::{Env, Frame, Mm};

/// What an access changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Accessed {
    /// Nothing.
    Nothing,
    /// The page is now referenced.
    Reference,
    /// The page becomes active.
    Activate,
}

#[inline]
fn accessed(frame: &Frame) -> Accessed {
    if !frame.has(Frame::REFERENCED) {
        Accessed::Reference
    } else if frame.has_any(Frame::UNEVICTABLE | Frame::ACTIVE) {
        Accessed::Nothing
    } else {
        Accessed::Activate
    }
}

impl Mm {
    /// Notes an access to a page through a system call, or one found when its mapping was removed.
    #[inline]
    pub fn mark_page_accessed(&mut self, _env: &Env, pfn: Pfn) {
        if self.lru_gen_enabled() {
            return self.lru_gen_inc_refs(pfn);
        }
        let frame = &mut self.frames[pfn];
        match accessed(frame) {
            Accessed::Nothing => {}
            Accessed::Reference => frame.set(Frame::REFERENCED),
            Accessed::Activate if self.waits_in_pagevec(pfn) => {}
            Accessed::Activate => self.activate_accessed(pfn),
        }
    }

    fn activate_accessed(&mut self, pfn: Pfn) {
        let frame = &mut self.frames[pfn];
        frame.clear(Frame::REFERENCED);
        let (file, listed) = (is_file_lru(frame), frame.has(Frame::LRU));
        if !listed && !frame.has(Frame::ISOLATED) {
            frame.set(Frame::ACTIVE);
        }
        if listed {
            self.activate_page(pfn);
        }
        if file || self.rules.scan_balance != ScanBalance::RotatedRatio {
            self.age_nonresident(self.lruvec_of(pfn), self.counted(pfn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_active_at_its_second_access() {
        let mut frame = Frame::RESERVED;
        assert_eq!(accessed(&frame), Accessed::Reference);
        frame.set(Frame::REFERENCED);
        assert_eq!(accessed(&frame), Accessed::Activate);
        frame.set(Frame::ACTIVE);
        assert_eq!(accessed(&frame), Accessed::Nothing);
        frame.clear(Frame::REFERENCED);
        assert_eq!(accessed(&frame), Accessed::Reference);
    }

    #[test]
    fn an_unevictable_page_never_becomes_active() {
        let mut frame = Frame::RESERVED;
        frame.set(Frame::UNEVICTABLE | Frame::REFERENCED);
        assert_eq!(accessed(&frame), Accessed::Nothing);
    }
}
