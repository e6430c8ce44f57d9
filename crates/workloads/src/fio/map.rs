//! Which blocks of a file a random job has served (`axmap`).
//!
//! Rule: a block that was drawn again gives way to the lowest one left of its 64, if one behind it is left among them;
//! else to the lowest one left of its 4096; else to the lowest one left of the file. Bits behind the end of the file count
//! as left for the first question, and for no other. So in a file of up to 63 blocks it is always the lowest one left.
//! Source: `axmap_next_free()`, `axmap_find_first_free()`, lib/axmap.c, fio 2.99.
//! Since/until: fio 3.9 takes the next block behind instead.
//! Abstracted: groups of 64 and 4096 for the tree's levels; files of more than 4096 blocks have more of them.

use smallvec::SmallVec;

/// Blocks of a word, and of a word of words.
const WORD: usize = 64;

/// The blocks of one file.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    /// A bit for each block that was served.
    words: SmallVec<[u64; 1]>,
    blocks: u32,
    left: u32,
}

impl RandomMap {
    /// No block was served.
    pub(super) fn new(blocks: u32) -> RandomMap {
        RandomMap { words: SmallVec::from_elem(0, (blocks as usize).div_ceil(WORD)), blocks, left: blocks }
    }

    /// Blocks not served.
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    /// Serves the block that was drawn, or the one that it gives way to; none if all were served.
    pub(super) fn serve(&mut self, drawn: u32) -> Option<u32> {
        let block = if self.is_served(drawn) { self.next_free(drawn)? } else { drawn };
        self.words[block as usize / WORD] |= 1 << (block as usize % WORD);
        self.left -= 1;
        Some(block)
    }

    fn is_served(&self, block: u32) -> bool {
        self.words[block as usize / WORD] >> (block as usize % WORD) & 1 == 1
    }

    fn next_free(&self, served: u32) -> Option<u32> {
        let word = served as usize / WORD;
        let behind = u64::MAX.checked_shl(served % WORD as u32 + 1).unwrap_or(0);
        let near = (!self.words[word] & behind != 0).then(|| self.lowest(word..word + 1)).flatten();
        let group = word / WORD * WORD;
        near.or_else(|| self.lowest(group..self.words.len().min(group + WORD)))
            .or_else(|| self.lowest(0..self.words.len()))
    }

    /// The lowest block left in some words.
    fn lowest(&self, words: std::ops::Range<usize>) -> Option<u32> {
        let first = words.start;
        let at = self.words[words].iter().position(|word| *word != u64::MAX)? + first;
        let block = (at * WORD) as u32 + self.words[at].trailing_ones();
        (block < self.blocks).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_served(blocks: u32, served: impl IntoIterator<Item = u32>) -> RandomMap {
        let mut map = RandomMap::new(blocks);
        for block in served {
            assert_eq!(map.serve(block), Some(block));
        }
        map
    }

    #[test]
    fn in_a_small_file_the_lowest_block_left_takes_the_place() {
        let mut map = with_served(16, [5, 9]);
        assert_eq!(map.serve(5), Some(0));
        assert_eq!(map.serve(9), Some(1));
        assert_eq!(map.serve(1), Some(2));
        assert_eq!(map.serve(15), Some(15));
        assert_eq!(map.serve(15), Some(3), "no block is behind the last, and the bits there do not count twice");
    }

    #[test]
    fn a_full_word_leads_to_the_lowest_of_its_4096() {
        let mut map = with_served(5000, 64..128);
        assert_eq!(map.serve(100), Some(0), "none of 64..128 is left");
        let mut map = with_served(5000, 100..128);
        assert_eq!(map.serve(100), Some(0), "none behind 100 in its word, though 64 is left");
        let mut map = with_served(5000, 100..127);
        assert_eq!(map.serve(100), Some(64), "127 is behind it: the lowest of the word");
        let mut map = with_served(5000, 0..4096);
        assert_eq!(map.serve(7), Some(4096));
    }

    proptest! {
        #[test]
        fn each_block_is_served_once(blocks in 1..300_u32, draws in prop::collection::vec(any::<u32>(), 300)) {
            let mut map = RandomMap::new(blocks);
            let mut served = vec![false; blocks as usize];
            for draw in draws.iter().take(blocks as usize) {
                let block = map.serve(draw % blocks).expect("one is left");
                prop_assert!(!std::mem::replace(&mut served[block as usize], true));
            }
            prop_assert!(map.left() == 0 && map.serve(0).is_none());
        }
    }
}
