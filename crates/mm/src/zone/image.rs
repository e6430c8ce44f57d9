//! The kernel's image in a zone.
//!
//! Rule: text and read-only data are each padded to whole huge pages, so that they are mapped with nothing else. What pads them goes to
//! the page allocator when the read-only data is protected, the last step of boot before the first program. Until then no allocation saw
//! those pageblocks, so they are Movable as all are at first; as pieces of pageblocks go before whole ones and a request of another type
//! falls back to the largest block there is, the first Movable pages take them.
//! Source: `mark_rodata_ro()` (arch/x86/mm/init_64.c), `X64_ALIGN_RODATA_BEGIN` and `X64_ALIGN_RODATA_END` (arch/x86/kernel/vmlinux.lds.S).
//! Abstracted: all of it is in use when something starts, as the migrate scanner found it in guests: of 6.1 (text ends at frame 0x1e02) it
//! took all 510 pages up to 0x2000, of 6.12 (read-only data ends at 0x2aa8) the first 32 from there.
//! The image lies where it was linked to, as with `nokaslr`.
//! Omitted: data and bss, which lie behind in what is reserved; what of the image is freed because only boot needs it; the images of 4.18 and 5.0, which are free
//! as something starts (validation/README.md).

use units::{Order, PAGEBLOCK_PAGES, Pages, Pfn, ZoneId};

use crate::{Frame, Kind, Mm};

/// Where a kernel's text and read-only data lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelImage {
    /// First frame of the text, that of a pageblock.
    pub start: Pfn,
    /// The text.
    pub text: Pages,
    /// The read-only data, which begins with the first pageblock behind the text.
    pub rodata: Pages,
}

impl KernelImage {
    /// The text and the read-only data with what pads each: first frame, first frame of the padding, first frame behind.
    fn segments(&self) -> [(u32, u32, u32); 2] {
        let padded = |start: u32, pages: Pages| {
            let end = start + pages.0 as u32;
            (start, end, end.next_multiple_of(PAGEBLOCK_PAGES))
        };
        let text = padded(self.start.0, self.text);
        [text, padded(text.2, self.rodata)]
    }
}

impl Mm {
    /// Lets the padding of the image, instead of as many of the lowest frames behind it, be managed memory of a zone that is all in use;
    /// gives back those frames. None if this zone does not begin with the image, or manages memory that lies in it.
    pub(super) fn free_image_gaps(&mut self, zone: ZoneId, image: &KernelImage) -> Vec<Pfn> {
        let segments = image.segments();
        let state = &self.zones[zone.index()];
        let zone_end = state.start.0 + state.spanned as u32;
        let image_end = segments[1].2;
        let kind = |pfn: u32| self.frames[Pfn(pfn)].kind();
        if image.start != state.start || image_end > zone_end {
            return Vec::new();
        }
        let gaps: Vec<Pfn> = segments.iter().flat_map(|(_, from, to)| (*from..*to).map(Pfn)).collect();
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
