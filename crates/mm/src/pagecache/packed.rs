//! The slots of a leaf that has nothing but shadows, packed.
//!
//! The pages of a small file are evicted one after the other, so that its shadows lie near each other: a word says what the least
//! of them is, cut to a multiple of 64, and below it how many bits each slot has; then the slots follow, each by how far its shadow
//! lies above that, and one more, or 0 if it is empty. 16 shadows take 6 or 7 words instead of 16.

use smallvec::SmallVec;

use super::leaf::NODE_SLOTS;

/// Bits of a word.
const WORD: usize = u32::BITS as usize;
/// The bits of the first word that say how many bits a slot has.
const WIDTH: u32 = 63;

/// The words of a leaf.
pub(super) type Words = SmallVec<[u32; NODE_SLOTS as usize]>;

/// Packs slots, of which at least one is not empty.
pub(super) fn pack(slots: &[u32]) -> Words {
    let shadows = slots.iter().copied().filter(|raw| *raw != 0);
    let least = shadows.clone().min().expect("a leaf is freed with its last entry") & !WIDTH;
    let most = shadows.max().map_or(0, |most| most - least + 1);
    let width = u32::BITS - most.leading_zeros();
    let used = slots.iter().rposition(|raw| *raw != 0).map_or(0, |last| last + 1);
    let mut words: Words = SmallVec::from_elem(0, 1 + (used * width as usize).div_ceil(WORD));
    words[0] = least | width;
    for (slot, raw) in slots[..used].iter().enumerate().filter(|(_, raw)| **raw != 0) {
        set(&mut words, slot, raw - least + 1);
    }
    words
}

/// The slots; those that are left out at the end are empty.
pub(super) fn unpack(words: &[u32]) -> Words {
    let slots = ((words.len() - 1) * WORD / width(words)).min(NODE_SLOTS as usize);
    (0..slots).map(|slot| get(words, slot)).collect()
}

/// One slot.
pub(super) fn get(words: &[u32], slot: usize) -> u32 {
    let (at, shift) = place(words, slot);
    if (slot + 1) * width(words) > (words.len() - 1) * WORD {
        return 0;
    }
    let above = (pair(words, at) >> shift) & mask(words);
    if above == 0 { 0 } else { (words[0] & !WIDTH) + (above as u32 - 1) }
}

/// Empties a slot.
pub(super) fn clear(words: &mut [u32], slot: usize) {
    let (at, shift) = place(words, slot);
    let rest = pair(words, at) & !(mask(words) << shift);
    put_pair(words, at, rest);
}

/// Writes a slot that is empty.
fn set(words: &mut [u32], slot: usize, above: u32) {
    let (at, shift) = place(words, slot);
    let both = pair(words, at) | u64::from(above) << shift;
    put_pair(words, at, both);
}

/// Bits of a slot.
fn width(words: &[u32]) -> usize {
    (words[0] & WIDTH) as usize
}

fn mask(words: &[u32]) -> u64 {
    (1 << width(words)) - 1
}

/// The word in which a slot begins, and at which bit.
fn place(words: &[u32], slot: usize) -> (usize, usize) {
    let bit = slot * width(words);
    (1 + bit / WORD, bit % WORD)
}

/// A word and the one behind it, if there is one.
fn pair(words: &[u32], at: usize) -> u64 {
    let word = |at: usize| u64::from(words.get(at).copied().unwrap_or(0));
    word(at) | word(at + 1) << WORD
}

fn put_pair(words: &mut [u32], at: usize, both: u64) {
    words[at] = both as u32;
    if let Some(next) = words.get_mut(at + 1) {
        *next = (both >> WORD) as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::slots;
    use super::*;

    #[test]
    fn shadows_of_one_eviction_take_a_third() {
        // Four readers' pages are evicted in turn: every fourth clock, eight apart each.
        let slots: Vec<u32> = (0..16).map(|page| slots::shadow(1_000_000 + page * 32)).collect();
        // The last lies 480 above the first, and the first up to 63 above the base: 10 bits, 160 for all.
        assert_eq!(pack(&slots).len(), 1 + 5);
    }

    #[test]
    fn shadows_at_both_ends_of_time_fit() {
        let slots = [slots::shadow(0), 0, slots::shadow(0x7FFF_FFFF)];
        let words = pack(&slots);
        assert_eq!([0, 1, 2, 3, 63].map(|slot| get(&words, slot)), [slots[0], 0, slots[2], 0, 0]);
    }

    proptest! {
        /// A packed leaf, also in a block that is larger than it needs, is what was packed, slot by slot, whatever is taken out.
        #[test]
        fn a_packed_leaf_is_the_leaf(
            base in 0_u32..0x7FFF_0000, spread in 1_u32..0x1_0000, seeds in prop::collection::vec(0_u32..u32::MAX, 1..=64),
            spare in 0_usize..8, gone in prop::collection::vec(0_usize..64, 0..64),
        ) {
            let shadow = |seed: &u32| if seed.is_multiple_of(3) { 0 } else { slots::shadow(base + seed % spread) };
            let mut slots: Vec<u32> = seeds.iter().map(shadow).collect();
            slots[0] = slots::shadow(base);
            let mut words = pack(&slots);
            words.resize(words.len() + spare, 0);
            for slot in gone.into_iter().filter(|slot| *slot < seeds.len()) {
                if slots[slot] != 0 {
                    clear(&mut words, slot);
                    slots[slot] = 0;
                }
            }
            slots.resize(NODE_SLOTS as usize, 0);
            prop_assert_eq!((0..64).map(|slot| get(&words, slot)).collect::<Vec<_>>(), slots.clone());
            let mut unpacked = unpack(&words);
            unpacked.resize(NODE_SLOTS as usize, 0);
            prop_assert_eq!(unpacked.to_vec(), slots);
        }
    }
}
