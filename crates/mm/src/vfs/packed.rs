//! Short lists of extents, packed.
//!
//! Of each entry, how far its end lies behind that of the entry before it, doubled, and one more for a hole; of an
//! extent then how far its first block lies from where it would if it lay as far from the extent before it as that from its own,
//! signed. Both are numbers of variable length (LEB128, zigzag). Files that are written in rounds have their extents near each other
//! and a round apart, and an entry takes 2 to 4 bytes.

use smallvec::SmallVec;
use zerocopy::IntoBytes;

use super::NONE;
use super::extents::Entry;

/// Words that a packed list takes at most: one of more than ten entries is faster to search as it is.
pub(super) const PACKED_WORDS: usize = 6;

/// The entries of a packed list.
pub(super) type Packed = SmallVec<[Entry; 8]>;

/// Where the extents of a list lead.
#[derive(Default)]
struct Course {
    /// First block of the last extent, if there is one.
    last: Option<u32>,
    /// How far it lies from the one before it.
    stride: i64,
}

impl Course {
    /// Where the next extent would lie.
    #[inline]
    fn next(&self) -> i64 {
        i64::from(self.last.unwrap_or(0)) + self.stride
    }

    /// The next extent lies there.
    #[inline]
    fn go_on(&mut self, block: u32) {
        self.stride = self.last.map_or(0, |last| i64::from(block) - i64::from(last));
        self.last = Some(block);
    }
}

/// Writes a number where a packed list has room left, if that suffices.
fn put(mut number: u64, room: &mut std::slice::IterMut<u8>) -> Option<()> {
    while number > 0x7F {
        *room.next()? = number as u8 | 0x80;
        number >>= 7;
    }
    *room.next()? = number as u8;
    Some(())
}

/// Reads a number of a packed list; 0 behind the last one.
#[inline]
fn take(bytes: &mut std::slice::Iter<u8>) -> u64 {
    let (mut number, mut shift) = (0, 0);
    for byte in bytes {
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    number
}

/// A signed number as one that is small if it is near 0.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[inline]
fn signed(zigzag: u64) -> i64 {
    (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)
}

/// The words of a list, and how many of them are used; none if they do not suffice.
pub(super) fn pack(entries: &[Entry]) -> Option<([u32; PACKED_WORDS], usize)> {
    let mut words = [0; PACKED_WORDS];
    let mut room = words.as_mut_bytes().iter_mut();
    let (mut before, mut course) = (0, Course::default());
    for &[block, end] in entries {
        let hole = block == NONE;
        put(u64::from(end - before) << 1 | u64::from(hole), &mut room)?;
        before = end;
        if !hole {
            put(zigzag(i64::from(block) - course.next()), &mut room)?;
            course.go_on(block);
        }
    }
    let left = room.len();
    Some((words, PACKED_WORDS - left / size_of::<u32>()))
}

/// How many extents a packed list has: it is asked whenever blocks are allocated, and where they lie does not matter.
#[inline]
pub(super) fn count(words: &[u32]) -> usize {
    let mut bytes = words.as_bytes().iter();
    let mut extents = 0;
    while let Some(number) = Some(take(&mut bytes)).filter(|number| *number != 0) {
        if number & 1 == 0 {
            // Its first block ends with the first byte whose upper bit is not set.
            bytes.find(|byte| **byte & 0x80 == 0);
            extents += 1;
        }
    }
    extents
}

/// The entries of a packed list, one after the other.
#[inline]
pub(super) fn unpack(words: &[u32]) -> impl Iterator<Item = Entry> {
    let mut bytes = words.as_bytes().iter();
    let (mut end, mut course) = (0, Course::default());
    std::iter::from_fn(move || {
        // An entry covers pages, so that a 0 is behind the last one.
        let number = Some(take(&mut bytes)).filter(|number| *number != 0)?;
        end += (number >> 1) as u32;
        let mut block = NONE;
        if number & 1 == 0 {
            block = (course.next() + signed(take(&mut bytes))) as u32;
            course.go_on(block);
        }
        Some([block, end])
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            drawn in proptest::collection::vec((any::<bool>(), any::<u32>(), 0u32..31, 1u32..1000), 0..16),
        ) {
            let mut end = 0;
            let entries: Vec<Entry> = drawn
                .into_iter()
                .map(|(hole, block, shift, pages)| {
                    end += pages;
                    [if hole { NONE } else { (block >> shift).min(NONE - 1) }, end]
                })
                .collect();
            if let Some((words, used)) = pack(&entries) {
                prop_assert_eq!(count(&words[..used]), entries.iter().filter(|[block, _]| *block != NONE).count());
                prop_assert_eq!(unpack(&words[..used]).collect::<Vec<_>>(), entries);
            }
        }
    }

    #[test]
    fn five_extents_of_a_small_file_take_16_bytes() {
        // 2 pages each: 1 byte. The first block, doubled, has 27 bits: 4 bytes. The second is 16,384 blocks off, 64 MiB: 3 bytes. The
        // others are as far apart, but for 8 blocks: 1 byte. 5 + 4 + 3 * 2 = 15 bytes are 4 words.
        let even: Vec<Entry> = (0..5).map(|n| [50_000_000 + n * 16_384 + n % 2 * 8, 2 * (n + 2)]).collect();
        assert_eq!(pack(&even).map(|(_, used)| used), Some(4));
        // 1000 blocks off: 2 bytes; 5 + 4 + 3 * 3 = 18 bytes are 5 words.
        let uneven: Vec<Entry> = (0..5).map(|n| [50_000_000 + n * 16_384 + n % 2 * 500, 2 * (n + 2)]).collect();
        assert_eq!(pack(&uneven).map(|(_, used)| used), Some(5));
    }

    #[test]
    fn a_list_that_is_too_long_is_not_packed() {
        // 5 + 3 bytes for the first two, 2 for each of the others: 10 entries take 24 bytes, and the 11th has no room.
        let entries: Vec<Entry> = (0..11).map(|n| [50_000_000 + n * 8000, 2 * (n + 2)]).collect();
        assert_eq!(pack(&entries[..10]).map(|(_, used)| used), Some(6));
        assert_eq!(pack(&entries), None);
    }
}
