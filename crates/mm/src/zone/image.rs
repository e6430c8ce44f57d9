//! The kernel's image in a zone.
//!
//! Rule: text and read-only data are each padded to whole huge pages, so that they are mapped with nothing else. What pads them goes to
//! the page allocator when the read-only data is protected, the last step of boot before the first program. Until then no allocation saw
//! those pageblocks, so they are Movable as all are at first; as pieces of pageblocks go before whole ones and a request of another type
//! falls back to the largest block there is, the first Movable pages take them.
//! What only boot needs (its code and data, and what may be shared with an encrypted machine's host) goes to the allocator just before.
//! Source: `mark_rodata_ro()` (arch/x86/mm/init_64.c), `X64_ALIGN_RODATA_BEGIN` and `X64_ALIGN_RODATA_END` (arch/x86/kernel/vmlinux.lds.S), `free_initmem()`
//! (arch/x86/mm/init.c), `mem_encrypt_free_decrypted_mem()` (arch/x86/mm/mem_encrypt.c).
//! Abstracted: all of it is in use when something starts, as the migrate scanner found it in guests: of 6.1 (text ends at frame 0x1e02) it
//! took all 510 pages up to 0x2000, of 6.12 (read-only data ends at 0x2aa8) the first 32 from there. Where a kernel's file says that it is
//! free, as flags of pages showed it in guests of 5.0, whose small free blocks it is, free blocks lie there as far as they are
//! whole pieces of it.
//! The image lies where it was linked to, as with `nokaslr`.
//! Omitted: what only boot needs, where a kernel's file does not tell of it; data and bss, which lie between in what is reserved; the image of 4.18, which is free,
//! too (validation/README.md).

use units::{Order, PAGEBLOCK_PAGES, Pages, Pfn, ZoneId};

use crate::{Frame, Kind, Mm};

/// Where a kernel's image lies, and what of it becomes memory like any other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelImage {
    /// First frame of the text, that of a pageblock.
    pub start: Pfn,
    /// The text.
    pub text: Pages,
    /// The read-only data, which begins with the first pageblock behind the text.
    pub rodata: Pages,
    /// What only boot needs, behind those: first frame, and first frame behind, in the order in which they are freed.
    pub boot_only: Vec<(Pfn, Pfn)>,
    /// Whether what is freed of it is still free as something starts, not in use.
    pub free: bool,
}

impl KernelImage {
    /// What is freed, in that order: first frames, and first frames behind.
    fn freed(&self) -> Vec<(u32, u32)> {
        let padding = |start: u32, pages: Pages| {
            let end = start + pages.0 as u32;
            (end, end.next_multiple_of(PAGEBLOCK_PAGES))
        };
        let text = padding(self.start.0, self.text);
        let boot_only = self.boot_only.iter().map(|(from, to)| (from.0, to.0));
        boot_only.chain([text, padding(text.1, self.rodata)]).collect()
    }
}

impl Mm {
    /// Lets what is freed of the image, instead of as many of the lowest frames behind it, be managed memory of a zone that is all in use;
    /// gives back those frames, in the order in which they are freed. None if this zone does not begin with the image, or manages memory
    /// that lies in it.
    pub(super) fn free_image_gaps(&mut self, zone: ZoneId, image: &KernelImage) -> Vec<Pfn> {
        let freed = image.freed();
        let state = &self.zones[zone.index()];
        let zone_end = state.start.0 + state.spanned as u32;
        let image_end = freed.iter().map(|(_, to)| *to).max().unwrap_or(image.start.0);
        let kind = |pfn: u32| self.frames[Pfn(pfn)].kind();
        if image.start != state.start || image_end > zone_end {
            return Vec::new();
        }
        let gaps: Vec<Pfn> = freed.into_iter().flat_map(|(from, to)| (from..to).map(Pfn)).collect();
        let behind = (image_end..zone_end).filter(|pfn| kind(*pfn) == Kind::Kernel).map(Pfn);
        let behind: Vec<Pfn> = behind.take(gaps.len()).collect();
        if behind.len() < gaps.len() || (image.start.0..image_end).any(|pfn| kind(pfn) != Kind::Reserved) {
            return Vec::new();
        }
        for pfn in behind {
            self.frames[pfn] = Frame::RESERVED;
        }
        for pfn in &gaps {
            // Frames that boot does not free have no links of lists yet.
            self.frames[*pfn] = Frame::RESERVED;
            self.frames[*pfn].set_kind(Kind::Kernel, Order(0));
        }
        gaps
    }
}
