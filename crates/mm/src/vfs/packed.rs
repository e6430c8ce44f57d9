//! Short lists of extents, packed.
//!
//! Of each entry, how far its end lies behind that of the entry before it, doubled, and one more for a hole; of an
//! extent then how far its first block lies from where it would if it lay as far from the extent before it as that from its own,
//! signed. Both are numbers of variable length (LEB128, zigzag). Files that are written in rounds have their extents near each other
//! and a round apart, and an entry takes 2 to 4 bytes.

use integer_encoding::VarInt;
use smallvec::SmallVec;

use super::NONE;
use super::extents::Entry;

/// Words that a packed list takes at most: one of more than ten entries is faster to search as it is.
pub(super) const PACKED_WORDS: usize = 6;
const BYTES: usize = PACKED_WORDS * 4;

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
    fn next(&self) -> i64 {
        i64::from(self.last.unwrap_or(0)) + self.stride
    }

    /// The next extent lies there.
    fn go_on(&mut self, block: u32) {
        self.stride = self.last.map_or(0, |last| i64::from(block) - i64::from(last));
        self.last = Some(block);
    }
}

/// Writes a number behind those that a packed list has, if there is room.
fn put(number: impl VarInt, bytes: &mut [u8; BYTES], used: &mut usize) -> Option<()> {
    let to = &mut bytes[*used..];
    (number.required_space() <= to.len()).then(|| *used += number.encode_var(to))
}

/// Reads a number of a packed list.
fn take<N: VarInt>(bytes: &mut &[u8]) -> Option<N> {
    let (number, used) = N::decode_var(bytes)?;
    *bytes = &bytes[used..];
    Some(number)
}

/// The words of a list, and how many of them are used; none if they do not suffice.
pub(super) fn pack(entries: &[Entry]) -> Option<([u32; PACKED_WORDS], usize)> {
    let (mut bytes, mut used) = ([0; BYTES], 0);
    let (mut before, mut course) = (0, Course::default());
    for &[block, end] in entries {
        let hole = block == NONE;
        put(u64::from(end - before) << 1 | u64::from(hole), &mut bytes, &mut used)?;
        before = end;
        if !hole {
            put(i64::from(block) - course.next(), &mut bytes, &mut used)?;
            course.go_on(block);
        }
    }
    let (words, _) = bytes.as_chunks();
    let mut packed = [0; PACKED_WORDS];
    packed.iter_mut().zip(words).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    Some((packed, used.div_ceil(4)))
}

/// The entries of a packed list, one after the other.
#[inline]
pub(super) fn unpack(words: &[u32]) -> impl Iterator<Item = Entry> {
    let mut buffer = [0; BYTES];
    let (places, _) = buffer.as_chunks_mut();
    places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
    let (mut at, mut end, mut course) = (0, 0, Course::default());
    std::iter::from_fn(move || {
        let mut bytes = &buffer[at..];
        // An entry covers pages, so that a 0 is behind the last one.
        let number = take::<u64>(&mut bytes).filter(|number| *number != 0)?;
        end += (number >> 1) as u32;
        let mut block = NONE;
        if number & 1 == 0 {
            block = (course.next() + take::<i64>(&mut bytes).expect("an extent has a block")) as u32;
            course.go_on(block);
        }
        at = BYTES - bytes.len();
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
