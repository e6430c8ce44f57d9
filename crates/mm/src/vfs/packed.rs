//! Short lists of extents, packed.
//!
//! Of each entry, how far its end lies behind that of the entry before it, doubled, and one more for a hole; of an
//! extent then how far its first block lies from that of the extent before it, signed. Both are numbers of variable length
//! (LEB128, zigzag). Files that are written in rounds have their extents near each other, and an entry takes 4 or 5 bytes.

use integer_encoding::VarInt;
use smallvec::SmallVec;

use super::NONE;
use super::extents::Entry;

/// Words that a packed list takes at most.
pub(super) const PACKED_WORDS: usize = 8;
const BYTES: usize = PACKED_WORDS * 4;

/// The entries of a packed list.
pub(super) type Packed = SmallVec<[Entry; 8]>;

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
    let (mut before, mut near) = (0, 0);
    for &[block, end] in entries {
        let hole = block == NONE;
        put(u64::from(end - before) << 1 | u64::from(hole), &mut bytes, &mut used)?;
        before = end;
        if !hole {
            put(i64::from(block) - i64::from(near), &mut bytes, &mut used)?;
            near = block;
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
    let (mut at, mut end, mut near) = (0, 0, 0);
    std::iter::from_fn(move || {
        let mut bytes = &buffer[at..];
        // An entry covers pages, so that a 0 is behind the last one.
        let number = take::<u64>(&mut bytes).filter(|number| *number != 0)?;
        end += (number >> 1) as u32;
        let hole = number & 1 == 1;
        if !hole {
            near += take::<i64>(&mut bytes).expect("an extent has a block");
        }
        at = BYTES - bytes.len();
        Some([if hole { NONE } else { near as u32 }, end])
    })
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
                prop_assert_eq!(unpack(&words[..used]).collect::<Vec<_>>(), entries);
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
