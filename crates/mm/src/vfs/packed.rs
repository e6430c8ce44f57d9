//! Short lists of extents, packed.
//!
//! Of each entry, how far its end lies behind that of the entry before it, doubled, and one more for a hole; of an
//! extent then how far its first block lies from that of the extent before it, with the sign in the lowest bit. Both are numbers in
//! LEB128. Files that are written in rounds have their extents near each other, and an entry takes 4 or 5 bytes.

use smallvec::SmallVec;

use super::NONE;
use super::extents::Entry;

/// Words that a packed list takes at most.
pub(super) const PACKED_WORDS: usize = 8;
const BYTES: usize = PACKED_WORDS * 4;

/// The entries of a packed list.
pub(super) type Packed = SmallVec<[Entry; 8]>;

/// Writes numbers into a packed list, as long as there is room.
struct Writer {
    bytes: [u8; BYTES],
    used: usize,
}

impl Writer {
    fn put(&mut self, mut number: u64) -> Option<()> {
        loop {
            let last = number < 0x80;
            *self.bytes.get_mut(self.used)? = number as u8 & 0x7f | u8::from(!last) << 7;
            self.used += 1;
            if last {
                return Some(());
            }
            number >>= 7;
        }
    }
}

/// Reads a number; none behind the last one, whose place is empty.
fn take(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    for byte in bytes {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (number != 0).then_some(number)
}

/// The words of a list, and how many of them are used; none if they do not suffice.
pub(super) fn pack(entries: &[Entry]) -> Option<([u32; PACKED_WORDS], usize)> {
    let mut to = Writer { bytes: [0; BYTES], used: 0 };
    let (mut before, mut near) = (0, 0);
    for &[block, end] in entries {
        let hole = block == NONE;
        to.put(u64::from(end - before) << 1 | u64::from(hole))?;
        before = end;
        if !hole {
            // One more, so that it is no 0.
            to.put((u64::from(block.abs_diff(near)) << 1 | u64::from(block < near)) + 1)?;
            near = block;
        }
    }
    let (words, _) = to.bytes.as_chunks();
    let mut packed = [0; PACKED_WORDS];
    packed.iter_mut().zip(words).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    Some((packed, to.used.div_ceil(4)))
}

/// The entries of a packed list.
#[inline]
pub(super) fn unpack(words: &[u32]) -> Packed {
    let mut bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let (mut end, mut near) = (0, 0);
    let mut entries = Packed::new();
    while let Some(number) = take(&mut bytes) {
        end += (number >> 1) as u32;
        if number & 1 == 1 {
            entries.push([NONE, end]);
            continue;
        }
        let number = take(&mut bytes).expect("an extent has a block") - 1;
        let far = (number >> 1) as u32;
        near = if number & 1 == 1 { near - far } else { near + far };
        entries.push([near, end]);
    }
    entries
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(
            drawn in proptest::collection::vec((any::<bool>(), any::<u32>(), 0u32..31, 1u32..1000), 0..12),
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
                prop_assert_eq!(unpack(&words[..used]).to_vec(), entries);
            }
        }
    }

    #[test]
    fn five_extents_of_a_small_file_take_24_bytes() {
        // 2 pages each: 1 byte. The first block, doubled, has 27 bits: 4 bytes. Each of the others is 1000 to 8000 blocks off: 2
        // bytes; 5 + 4 * 3 = 17 bytes are 5 words. 64 MiB farther apart it is 16,384 blocks: 3 bytes and 21, 6 words.
        let near: Vec<Entry> = (0..5).map(|n| [50_000_000 + n * 8000, 2 * (n + 2)]).collect();
        assert_eq!(pack(&near).map(|(_, used)| used), Some(5));
        let far: Vec<Entry> = (0..5).map(|n| [50_000_000 + n * 16_384, 2 * (n + 2)]).collect();
        assert_eq!(pack(&far).map(|(_, used)| used), Some(6));
    }

    #[test]
    fn a_list_that_is_too_long_is_not_packed() {
        // 5 + 9 * 3 = 32 bytes; the 11th entry has no room.
        let entries: Vec<Entry> = (0..11).map(|n| [50_000_000 + n * 8000, 2 * (n + 2)]).collect();
        assert_eq!(pack(&entries[..10]).map(|(_, used)| used), Some(8));
        assert_eq!(pack(&entries), None);
    }
}
