//! What a slot of the page-cache tree holds: a u32. 0 is empty, a page is its frame number plus one, a shadow is bit 31
//! and the 31 bits of `workingset_eviction`.

use units::Pfn;

use super::Slot;

const SHADOW: u32 = 1 << 31;

/// What a slot holds.
#[inline]
pub(super) fn unpack(raw: u32) -> Slot {
    if raw == 0 {
        Slot::Empty
    } else if is_shadow(raw) {
        Slot::Shadow(raw & !SHADOW)
    } else {
        Slot::Page(Pfn(raw - 1))
    }
}

/// The slot of a page.
#[inline]
pub(super) fn page(pfn: Pfn) -> u32 {
    debug_assert!(pfn.0 < SHADOW - 1);
    pfn.0 + 1
}

/// The slot of a shadow.
#[inline]
pub(super) fn shadow(shadow: u32) -> u32 {
    debug_assert!(shadow < SHADOW);
    shadow | SHADOW
}

/// Whether a slot holds a shadow.
#[inline]
pub(super) fn is_shadow(raw: u32) -> bool {
    raw & SHADOW != 0
}

/// Whether a slot holds a page.
#[inline]
pub(super) fn is_page(raw: u32) -> bool {
    raw != 0 && !is_shadow(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_tell_pages_from_shadows() {
        assert_eq!(unpack(0), Slot::Empty);
        assert_eq!(unpack(page(Pfn(0))), Slot::Page(Pfn(0)));
        assert_eq!(unpack(shadow(0)), Slot::Shadow(0));
        assert_eq!(unpack(shadow(0x7fff_ffff)), Slot::Shadow(0x7fff_ffff));
        assert!(is_page(page(Pfn(9))) && !is_page(shadow(9)) && !is_page(0));
    }
}
