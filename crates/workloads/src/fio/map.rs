//! Which blocks of a file a random job has served (`axmap`).
//!
//! Rule: a block that was drawn again gives way to the lowest one left of its 64, if one behind it is left among them;
//! else to the lowest one left of its 4096; else to the lowest one left of the file. Bits behind the end of the file count
//! as left for the first question, and for no other. So in a file of up to 63 blocks it is always the lowest one left.
//! Source: `axmap_next_free()`, `axmap_find_first_free()`, lib/axmap.c, fio 2.99.
//! Since/until: fio 3.9 takes the next block behind instead.
//! Abstracted: groups of 64 and 4096 for the tree's levels; files of more than 4096 blocks have more of them.

/// Blocks of a word, and of a word of words.
const WORD: usize = 64;

/// The blocks of all files of a job, which have equally many: a bit a block and little more, as the files may be a million.
#[derive(Clone, Debug)]
pub(super) struct RandomMaps {
    blocks: u32,
    /// Bits of a file: a power of two that is part of a word, or whole words.
    bits: usize,
    /// A bit for each block that was served.
    words: Vec<u64>,
    /// Blocks not served, of files of more than a word.
    left: Vec<u32>,
}

impl RandomMaps {
    /// No block of any file was served.
    pub(super) fn new(files: u32, blocks: u32) -> RandomMaps {
        let is_small = blocks as usize <= WORD;
        let bits =
            if is_small { blocks.next_power_of_two() as usize } else { (blocks as usize).next_multiple_of(WORD) };
        let words = vec![0; (files as usize * bits).div_ceil(WORD)];
        RandomMaps { blocks, bits, words, left: vec![blocks; if is_small { 0 } else { files as usize }] }
    }

    /// Blocks of a file that were not served.
    pub(super) fn left(&self, file: u32) -> u32 {
        if self.bits > WORD { self.left[file as usize] } else { self.blocks - self.small(file).count_ones() }
    }

    /// Serves the block of a file that was drawn, or the one that it gives way to; none if all were served.
    pub(super) fn serve(&mut self, file: u32, drawn: u32) -> Option<u32> {
        if self.bits > WORD {
            let first = file as usize * self.bits / WORD;
            let block = take(&mut self.words[first..first + self.bits / WORD], self.blocks, drawn)?;
            self.left[file as usize] -= 1;
            return Some(block);
        }
        let mut word = [self.small(file)];
        let block = take(&mut word, self.blocks, drawn)?;
        self.set_small(file, word[0]);
        Some(block)
    }

    /// No block of a file was served, once more.
    pub(super) fn start_over(&mut self, file: u32) {
        if self.bits > WORD {
            let first = file as usize * self.bits / WORD;
            self.words[first..first + self.bits / WORD].fill(0);
            self.left[file as usize] = self.blocks;
        } else {
            self.set_small(file, 0);
        }
    }

    /// Word, bit in it and mask of a file of one word or less.
    fn place(&self, file: u32) -> (usize, usize, u64) {
        let bit = file as usize * self.bits;
        (bit / WORD, bit % WORD, u64::MAX >> (WORD - self.bits))
    }

    fn small(&self, file: u32) -> u64 {
        let (word, bit, mask) = self.place(file);
        self.words[word] >> bit & mask
    }

    fn set_small(&mut self, file: u32, served: u64) {
        let (word, bit, mask) = self.place(file);
        self.words[word] = self.words[word] & !(mask << bit) | served << bit;
    }
}

/// Serves a block of a file, of which `words` say what was served.
fn take(words: &mut [u64], blocks: u32, drawn: u32) -> Option<u32> {
    let is_served = words[drawn as usize / WORD] >> (drawn as usize % WORD) & 1 == 1;
    let block = if is_served { next_free(words, blocks, drawn)? } else { drawn };
    words[block as usize / WORD] |= 1 << (block as usize % WORD);
    Some(block)
}

/// What a block that was served gives way to.
fn next_free(words: &[u64], blocks: u32, served: u32) -> Option<u32> {
    let word = served as usize / WORD;
    let behind = u64::MAX.checked_shl(served % WORD as u32 + 1).unwrap_or(0);
    let lowest = |range| lowest(words, range).filter(|block| *block < blocks);
    let near = (!words[word] & behind != 0).then(|| lowest(word..word + 1)).flatten();
    let group = word / WORD * WORD;
    near.or_else(|| lowest(group..words.len().min(group + WORD))).or_else(|| lowest(0..words.len()))
}

/// The lowest block left in some words; it may lie behind the end of the file.
fn lowest(words: &[u64], range: std::ops::Range<usize>) -> Option<u32> {
    let first = range.start;
    let at = words[range].iter().position(|word| *word != u64::MAX)? + first;
    Some((at * WORD) as u32 + words[at].trailing_ones())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The second of three files, whose neighbours stay as they are.
    struct Second(RandomMaps);

    impl Second {
        fn new(blocks: u32) -> Second {
            Second(RandomMaps::new(3, blocks))
        }

        fn serve(&mut self, drawn: u32) -> Option<u32> {
            let block = self.0.serve(1, drawn);
            assert_eq!([self.0.left(0), self.0.left(2)], [self.0.blocks; 2]);
            block
        }
    }

    fn with_served(blocks: u32, served: impl IntoIterator<Item = u32>) -> Second {
        let mut map = Second::new(blocks);
        for block in served {
            assert_eq!(map.serve(block), Some(block));
        }
        map
    }

    #[test]
    fn files_of_16_blocks_take_2_bytes_each() {
        assert_eq!(RandomMaps::new(1000, 16).words.len() * 8, 2000);
        assert_eq!(RandomMaps::new(1000, 16).left.len(), 0);
    }

    #[test]
    fn a_file_that_starts_over_has_all_its_blocks() {
        for blocks in [1, 7, 64, 65, 200] {
            let mut maps = RandomMaps::new(2, blocks);
            assert_eq!((maps.serve(0, 0), maps.serve(1, 0)), (Some(0), Some(0)));
            maps.start_over(1);
            assert_eq!((maps.left(0), maps.left(1), maps.serve(1, 0)), (blocks - 1, blocks, Some(0)));
        }
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
            let mut map = Second::new(blocks);
            let mut served = vec![false; blocks as usize];
            for draw in draws.iter().take(blocks as usize) {
                let block = map.serve(draw % blocks).expect("one is left");
                prop_assert!(!std::mem::replace(&mut served[block as usize], true));
            }
            prop_assert!(map.0.left(1) == 0 && map.serve(0).is_none());
        }
    }
}
