//! What anonymous pages hold where that matters: where they are compressed.
//!
//! Rule: the first store to a page fills it with what [`Contents`] says of its place: one byte over and over, and behind it so
//! many random ones that the page compresses to its size; a page of one word is a page of zeros, as 99 % of them are. A later store
//! writes what the page holds there anyway.
//! Abstracted: the place is the page's address, another one than on the twin, so that single pages differ and only their sizes
//! are spread alike. No compressor finds anything in random bytes, where programs' data have much to be found; what that takes
//! is part of a guest's machine. Filling a page on its first store takes a copy and a memset of 4 KiB together (512 words where
//! instructions are counted), which a store to all of it takes on the twin too, but a store to a byte does not; afterwards it
//! loads another byte.
#![allow(unsafe_code)]

use std::ops::Range;

use units::{Content, Contents, PAGE_SIZE};

const PAGE: usize = PAGE_SIZE as usize;
/// Fills what is not random; not zero, so that a page that was filled is known.
const FILL: u8 = 0x5a;
/// Bytes that compressing adds. LZ4: two tokens, the first byte, 2 for the match's offset, and 1 for each 255 bytes of the match and
/// of the literals, together 17 (doc/lz4_Block_format.md). In guests LZ4 adds 22, Zstandard 20, LZO 31 or 32.
const OVERHEAD: usize = 22;

/// Fills pages.
#[derive(Clone, Debug)]
pub(crate) struct PageFill {
    contents: Contents,
    /// A page of random bytes, none of them zero.
    random: Vec<u8>,
}

impl PageFill {
    pub(crate) fn new(contents: Contents) -> PageFill {
        // Marsaglia's xorshift with 64 bits (13, 7, 17), of whose bytes one in the midst.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut byte = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let mut next = || std::iter::repeat_with(&mut byte).find(|byte| *byte != 0).unwrap_or(FILL);
        PageFill { contents, random: (0..PAGE).map(|_| next()).collect() }
    }

    /// How many bytes of the page at an address are random; none if it is zeros.
    fn random_bytes(&self, page: usize) -> Option<usize> {
        match self.contents.of((page / PAGE) as u32) {
            Content::SameFilled => None,
            Content::Bytes(bytes) if bytes as usize == PAGE => Some(PAGE),
            Content::Bytes(bytes) => Some((bytes as usize).saturating_sub(OVERHEAD).max(1)),
        }
    }

    /// Stores to `length` bytes from `start`, and fills the pages that were not.
    ///
    /// # Safety
    /// The pages that they lie in are mapped for writing, and accessed as raw memory only.
    pub(crate) unsafe fn store(&self, start: *mut u8, length: usize) {
        let (mut at, end) = (start as usize, start as usize + length);
        while at < end {
            let page = at / PAGE * PAGE;
            let part = at - page..(end - page).min(PAGE);
            // SAFETY: a page of the range.
            unsafe { self.store_in_page(page, part) };
            at = page + PAGE;
        }
    }

    /// # Safety
    /// The page is mapped for writing, and accessed as raw memory only.
    unsafe fn store_in_page(&self, page: usize, part: Range<usize>) {
        let random = self.random_bytes(page);
        // SAFETY: as promised; volatile, for the page may be filled, or not.
        let fill = |range| unsafe { self.write(page, random, range) };
        fill(part.clone());
        // A byte that the store has not written tells whether the page was filled.
        let mark = match part {
            Range { end, .. } if end < PAGE => PAGE - 1,
            Range { start, .. } if start > 0 => 0,
            _ => return,
        };
        // SAFETY: as promised.
        let is_filled = unsafe { (page as *const u8).add(mark).read_volatile() } != 0;
        if random.is_some() && !is_filled {
            fill(0..PAGE);
        }
    }

    /// Writes what a part of the page holds.
    ///
    /// # Safety
    /// The page is mapped for writing, and accessed as raw memory only.
    unsafe fn write(&self, page: usize, random: Option<usize>, part: Range<usize>) {
        let at = |offset: usize| (page as *mut u8).wrapping_add(offset);
        let (border, byte) = random.map_or((PAGE, 0), |bytes| (PAGE - bytes, FILL));
        let border = border.clamp(part.start, part.end);
        // SAFETY: both ranges lie in the page, and the second in the table.
        unsafe {
            std::ptr::write_bytes(at(part.start), byte, border - part.start);
            std::ptr::copy_nonoverlapping(self.random.as_ptr().add(border), at(border), part.end - border);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: usize = 64;

    /// Aligned pages of zeros.
    fn pages() -> (Vec<u8>, *mut u8) {
        let mut memory = vec![0u8; (PAGES + 1) * PAGE];
        let start = memory.as_mut_ptr();
        let start = start.wrapping_add(start.align_offset(PAGE));
        (memory, start)
    }

    fn page(start: *mut u8, number: usize) -> Vec<u8> {
        // SAFETY: within the test's memory.
        unsafe { std::slice::from_raw_parts(start.add(number * PAGE), PAGE) }.to_vec()
    }

    /// Bytes behind the first run of equal ones.
    fn random_bytes(page: &[u8]) -> usize {
        PAGE - page.iter().take_while(|byte| **byte == page[0]).count()
    }

    #[test]
    fn pages_are_as_random_as_their_sizes_say() {
        let fill = PageFill::new(Contents { mean_bytes: 1000, same_filled_percent: 0 });
        let (_memory, start) = pages();
        // SAFETY: within the test's memory.
        unsafe { fill.store(start, PAGES * PAGE) };
        for number in 0..PAGES {
            let address = start as usize + number * PAGE;
            let Content::Bytes(bytes) = fill.contents.of((address / PAGE) as u32) else {
                panic!("none is of one word")
            };
            let page = page(start, number);
            // The first random bytes may be the one that stands before them.
            let expected = bytes as usize - 22;
            assert!((expected - 3..=expected).contains(&random_bytes(&page)), "{bytes}: {}", random_bytes(&page));
            assert!(page.iter().all(|byte| *byte != 0));
        }
    }

    #[test]
    fn the_first_store_to_any_part_of_a_page_fills_it_and_later_ones_change_nothing() {
        let fill = PageFill::new(Contents::default());
        let (_memory, start) = pages();
        // SAFETY: within the test's memory.
        unsafe {
            // A byte of each page, first, last or in the midst; then all of it.
            for (number, offset) in [(0, 0), (1, PAGE - 1), (2, 2000), (3, 4000)] {
                fill.store(start.add(number * PAGE + offset), 1);
            }
            let first: Vec<Vec<u8>> = (0..4).map(|number| page(start, number)).collect();
            assert!(first.iter().all(|page| page.iter().all(|byte| *byte != 0)));
            fill.store(start.add(100), 3 * PAGE);
            fill.store(start, 4 * PAGE);
            assert!((0..4).all(|number| page(start, number) == first[number]));
            assert_eq!(page(start, 4), vec![0; PAGE], "nobody stored to it");
        }
    }

    #[test]
    fn pages_of_one_word_are_zeros_and_those_that_do_not_compress_are_random() {
        let (_memory, start) = pages();
        let zeros = PageFill::new(Contents { mean_bytes: 1000, same_filled_percent: 100 });
        // SAFETY: within the test's memory.
        unsafe { zeros.store(start.add(5), 3 * PAGE) };
        assert!((0..4).all(|number| page(start, number) == vec![0; PAGE]));
        // From 4096 of 8192 on.
        let random = PageFill::new(Contents { mean_bytes: 8192, same_filled_percent: 0 });
        // SAFETY: within the test's memory.
        unsafe { random.store(start, PAGE) };
        assert_eq!(page(start, 0), random.random);
    }
}
