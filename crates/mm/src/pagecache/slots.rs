//! What a slot of the page-cache tree holds: a u32. 0 is empty, a page is its frame number plus one and bit 30 while it is
//! dirty (`PAGECACHE_TAG_DIRTY`), a shadow is bit 31 and the 31 bits of `workingset_eviction`.

use units::Pfn;

use super::Slot;

const SHADOW: u32 = 1 << 31;
const DIRTY: u32 = 1 << 30;

/// What a slot holds.
#[inline]
pub(super) fn unpack(raw: u32) -> Slot {
    if raw == 0 {
        Slot::Empty
    } else if is_shadow(raw) {
        Slot::Shadow(raw & !SHADOW)
    } else {
        Slot::Page(Pfn((raw & !DIRTY) - 1))
    }
}

/// The slot of a page.
#[inline]
pub(super) fn page(pfn: Pfn) -> u32 {
    debug_assert!(pfn.0 < DIRTY - 1);
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

/// Whether a slot holds a dirty page.
#[inline]
pub(super) fn is_dirty(raw: u32) -> bool {
    raw & (SHADOW | DIRTY) == DIRTY
}

/// The slot of a page that is dirty or clean now.
#[inline]
pub(super) fn tagged(raw: u32, dirty: bool) -> u32 {
    debug_assert!(is_page(raw), "only a page that is cached is tagged");
    if dirty { raw | DIRTY } else { raw & !DIRTY }
}

/// What stands in a slot after `old`: the tag is the slot's, whichever page it has.
#[inline]
pub(super) fn in_place_of(raw: u32, old: u32) -> u32 {
    if is_dirty(old) && is_page(raw) { raw | DIRTY } else { raw }
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

    #[test]
    fn a_tag_stays_when_the_page_is_another_one() {
        let dirty = tagged(page(Pfn(9)), true);
        assert_eq!((is_dirty(dirty), unpack(dirty)), (true, Slot::Page(Pfn(9))));
        assert_eq!(in_place_of(page(Pfn(3)), dirty), tagged(page(Pfn(3)), true));
        assert_eq!((in_place_of(0, dirty), in_place_of(page(Pfn(3)), page(Pfn(9)))), (0, page(Pfn(3))));
        assert!(!is_dirty(shadow(0x7fff_ffff)) && tagged(dirty, false) == page(Pfn(9)));
    }
}
