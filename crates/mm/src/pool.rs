//! Blocks of a few words each, out of chunks.
//!
//! For what belongs to small things in millions and grows with them: the slots of a file's pages, its extents. A chunk
//! has room for 64 blocks of one size, and goes back to the host when none of them is in use: such things grow in step (all
//! files of a writer have 4 pages, then 8), so that chunks of the smaller size become empty one after the other. What is
//! larger than the largest size has a chunk of its own.
//!
//! What is given back here and there leaves chunks half empty. Whoever knows all blocks can have those of the emptiest chunks
//! moved into what is free in the others, from [`Pool::begin_to_settle`] on, once [`Pool::is_loose`] says that it is worth it.

use units::table;

/// Words that a block may have.
pub(crate) const SIZES: [usize; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24, 32, 48, 64];
/// Stands where blocks have their size: a chunk of its own.
const OWN: u32 = SIZES.len() as u32;
/// Bits of a block's number below its size.
const PLACE_BITS: u32 = 27;
/// Blocks of a chunk, and the log2 of that.
const BLOCKS: usize = 64;
const BLOCKS_SHIFT: u32 = BLOCKS.trailing_zeros();
/// Ends a list of chunks.
const NONE: u32 = u32::MAX;
/// Stands in the place of the neighbour of a chunk that is on no list, because its blocks are to move elsewhere.
const LEAVING: u32 = NONE - 1;
/// Words that may always be free, 256 KiB: more than a chunk of each size.
const FREE_WORDS: usize = 1 << 16;

/// A block: which of [`SIZES`] it has in the upper five bits, its place below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block(u32);

impl Block {
    /// No block.
    pub(crate) const NONE: Block = Block(u32::MAX);

    fn new(size: u32, chunk: u32, at: u32) -> Block {
        assert!(chunk >> (PLACE_BITS - BLOCKS_SHIFT) == 0, "a pool holds 134 million blocks");
        Block(size << PLACE_BITS | chunk << BLOCKS_SHIFT | at)
    }

    /// From what [`Block::raw`] gave.
    #[inline]
    pub(crate) fn from_raw(raw: u32) -> Block {
        Block(raw)
    }

    /// As a number, of which the upper five bits are never all set but for [`Block::NONE`].
    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// Whether this names a block.
    #[inline]
    pub(crate) fn is_some(self) -> bool {
        self != Block::NONE
    }

    /// Which of [`SIZES`] it has, or one behind the last for a chunk of its own.
    #[inline]
    pub(crate) fn size(self) -> u32 {
        self.0 >> PLACE_BITS
    }

    #[inline]
    fn chunk(self) -> u32 {
        (self.0 & ((1 << PLACE_BITS) - 1)) >> BLOCKS_SHIFT
    }

    /// Number of the block in its chunk.
    #[inline]
    fn at(self) -> usize {
        self.0 as usize % BLOCKS
    }
}

/// Room for blocks of one size; 32 bytes beside its words.
#[derive(Debug, Default)]
struct Chunk {
    words: Box<[u32]>,
    /// Blocks that are free, a bit each.
    free: u64,
    /// Neighbours on the list of its size, while a block is free; of a chunk without words, the next one.
    prev: u32,
    next: u32,
}

/// All blocks.
#[derive(Debug)]
pub(crate) struct Pool {
    chunks: Vec<Chunk>,
    /// First chunk of each size that has a free block.
    partial: [u32; SIZES.len()],
    /// First chunk without words.
    unused: u32,
    /// Words of all chunks, and of these the words of free blocks.
    words: usize,
    free_words: usize,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { chunks: Vec::new(), partial: [NONE; SIZES.len()], unused: NONE, words: 0, free_words: 0 }
    }
}

impl Pool {
    /// A block of at least `words` words, all 0.
    pub(crate) fn alloc(&mut self, words: usize) -> Block {
        let size = SIZES.partition_point(|size| *size < words) as u32;
        if size == OWN {
            // An eighth to a quarter more than needed at most, so that what grows is seldom copied.
            let words = words.next_multiple_of(words.next_power_of_two() / 8);
            return Block::new(OWN, self.add_chunk(words, 0), 0);
        }
        let chunk = match self.partial[size as usize] {
            NONE => {
                let words = SIZES[size as usize] * BLOCKS;
                let chunk = self.add_chunk(words, u64::MAX);
                self.free_words += words;
                self.link(size, chunk);
                chunk
            }
            chunk => chunk,
        };
        let free = &mut self.chunks[chunk as usize].free;
        let at = free.trailing_zeros();
        *free &= *free - 1;
        if *free == 0 {
            self.unlink(size, chunk);
        }
        self.free_words -= SIZES[size as usize];
        let block = Block::new(size, chunk, at);
        self.words_mut(block).fill(0);
        block
    }

    /// Gives a block back.
    pub(crate) fn free(&mut self, block: Block) {
        let (size, number) = (block.size(), block.chunk());
        if size == OWN {
            return self.drop_chunk(number);
        }
        let chunk = &mut self.chunks[number as usize];
        debug_assert!(chunk.free >> block.at() & 1 == 0, "{block:?} is free already");
        let listed = chunk.free != 0 && chunk.prev != LEAVING;
        chunk.free |= 1 << block.at();
        self.free_words += SIZES[size as usize];
        if chunk.free == u64::MAX {
            if listed {
                self.unlink(size, number);
            }
            self.free_words -= SIZES[size as usize] * BLOCKS;
            self.drop_chunk(number);
        } else if !listed && chunk.prev != LEAVING {
            self.link(size, number);
        }
    }

    /// A block of at least `words` words that begins with what this one holds; this one is gone.
    pub(crate) fn grow(&mut self, block: Block, words: usize) -> Block {
        let larger = self.alloc(words);
        let (from, to) = (self.range(block), self.range(larger));
        if block.chunk() == larger.chunk() {
            let words = &mut self.chunks[block.chunk() as usize].words;
            words.copy_within(from, to.start);
        } else {
            let chunks = [block.chunk() as usize, larger.chunk() as usize];
            let [old, new] = self.chunks.get_disjoint_mut(chunks).expect("two chunks");
            new.words[to.start..][..from.len()].copy_from_slice(&old.words[from]);
        }
        self.free(block);
        larger
    }

    /// Whether more than a sixteenth of the words are free: moving blocks gives most of them back.
    #[inline]
    pub(crate) fn is_loose(&self) -> bool {
        self.free_words > FREE_WORDS.max(self.words / 16)
    }

    /// Picks the chunks that are to be emptied: of each size as many as are free altogether, the emptiest ones. All blocks must
    /// be given to [`Pool::settle`] now.
    pub(crate) fn begin_to_settle(&mut self) {
        for size in 0..OWN {
            let mut chunks = Vec::new();
            let mut at = self.partial[size as usize];
            while at != NONE {
                let Chunk { free, next, .. } = self.chunks[at as usize];
                chunks.push((free.count_zeros(), at));
                at = next;
            }
            let free: usize = chunks.iter().map(|(used, _)| BLOCKS - *used as usize).sum();
            chunks.sort_unstable();
            for (_, number) in &chunks[..free / BLOCKS] {
                self.unlink(size, *number);
                self.chunks[*number as usize].prev = LEAVING;
            }
        }
    }

    /// Moves a block if its chunk is to be emptied; where it is now.
    #[inline]
    pub(crate) fn settle(&mut self, block: Block) -> Block {
        if block.size() != OWN && self.chunks[block.chunk() as usize].prev == LEAVING {
            return self.grow(block, self.len(block));
        }
        block
    }

    /// Words of a block.
    #[inline]
    pub(crate) fn len(&self, block: Block) -> usize {
        match block.size() {
            OWN => self.chunks[block.chunk() as usize].words.len(),
            size => SIZES[size as usize],
        }
    }

    /// What a block holds.
    #[inline]
    pub(crate) fn words(&self, block: Block) -> &[u32] {
        &self.chunks[block.chunk() as usize].words[self.range(block)]
    }

    /// What all blocks of a block's chunk hold, and its number among them: for who knows the size.
    #[inline]
    pub(crate) fn chunk_words(&self, block: Block) -> (&[u32], usize) {
        (&self.chunks[block.chunk() as usize].words, block.at())
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn chunk_words_mut(&mut self, block: Block) -> (&mut [u32], usize) {
        (&mut self.chunks[block.chunk() as usize].words, block.at())
    }

    /// What a block holds, to be changed.
    #[inline]
    pub(crate) fn words_mut(&mut self, block: Block) -> &mut [u32] {
        let range = self.range(block);
        &mut self.chunks[block.chunk() as usize].words[range]
    }

    /// Words of all blocks.
    #[cfg(test)]
    pub(crate) fn used_words(&self) -> usize {
        self.words - self.free_words
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.words * size_of::<u32>() + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// The words of its chunk that a block has.
    #[inline]
    fn range(&self, block: Block) -> std::ops::Range<usize> {
        let len = self.len(block);
        let start = block.at() * len;
        start..start + len
    }

    fn add_chunk(&mut self, words: usize, free: u64) -> u32 {
        self.words += words;
        let chunk = Chunk { words: vec![0; words].into_boxed_slice(), free, prev: NONE, next: NONE };
        match self.unused {
            NONE => {
                table::push(&mut self.chunks, chunk);
                self.chunks.len() as u32 - 1
            }
            number => {
                self.unused = std::mem::replace(&mut self.chunks[number as usize], chunk).next;
                number
            }
        }
    }

    /// Gives the words of a chunk back that is on no list.
    fn drop_chunk(&mut self, number: u32) {
        let next = std::mem::replace(&mut self.unused, number);
        let gone = std::mem::replace(&mut self.chunks[number as usize], Chunk { next, ..Chunk::default() });
        self.words -= gone.words.len();
    }

    fn link(&mut self, size: u32, number: u32) {
        let next = std::mem::replace(&mut self.partial[size as usize], number);
        (self.chunks[number as usize].prev, self.chunks[number as usize].next) = (NONE, next);
        if next != NONE {
            self.chunks[next as usize].prev = number;
        }
    }

    fn unlink(&mut self, size: u32, number: u32) {
        let Chunk { prev, next, .. } = self.chunks[number as usize];
        match prev {
            NONE => self.partial[size as usize] = next,
            prev => self.chunks[prev as usize].next = next,
        }
        if next != NONE {
            self.chunks[next as usize].prev = prev;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_chunk_takes_32_bytes_beside_its_words() {
        assert_eq!(size_of::<Chunk>(), 32);
    }

    #[test]
    fn things_that_grow_in_step_leave_nothing_behind() {
        let mut pool = Pool::default();
        let mut blocks: Vec<Block> = (0..1024).map(|_| pool.alloc(4)).collect();
        for words in [8, 12, 16] {
            blocks.iter_mut().for_each(|block| *block = pool.grow(*block, words));
        }
        assert_eq!(pool.words, 1024 * 16);
        assert!(pool.chunks.len() <= 1024 / BLOCKS + 2, "places of chunks are used again: {}", pool.chunks.len());
    }

    #[test]
    fn what_is_large_has_at_most_a_quarter_to_spare() {
        let mut pool = Pool::default();
        for words in [65, 100, 128, 129, 1025, 5000] {
            let block = pool.alloc(words);
            assert!(pool.len(block) >= words && pool.len(block) * 4 <= words * 5, "{} for {words}", pool.len(block));
        }
    }

    #[test]
    fn a_pool_is_loose_from_a_sixteenth_on_but_not_for_the_last_256_kib() {
        let mut pool = Pool::default();
        let blocks: Vec<Block> = (0..64 * 2000).map(|_| pool.alloc(16)).collect();
        // One of 16 is free, and one block more: 131,072 words are 8192 blocks of 16.
        blocks[1..].iter().step_by(16).for_each(|block| pool.free(*block));
        assert!(!pool.is_loose());
        pool.free(blocks[0]);
        assert!(pool.is_loose());
        let mut pool = Pool::default();
        let blocks: Vec<Block> = (0..64 * 64).map(|_| pool.alloc(16)).collect();
        blocks.into_iter().filter(|block| block.at() != 0).for_each(|block| pool.free(block));
        assert!(!pool.is_loose(), "64,512 words are free of 65,536");
    }

    proptest! {
        #[test]
        fn what_settles_keeps_its_words_and_leaves_less_than_a_chunk_of_each_size(
            sizes in proptest::collection::vec(0usize..4, 1..800), gone in proptest::collection::vec(any::<bool>(), 800),
        ) {
            let mut pool = Pool::default();
            let mut held = Vec::new();
            let blocks: Vec<Block> = sizes.iter().map(|size| pool.alloc([1, 4, 64, 100][*size])).collect();
            for (n, (block, gone)) in blocks.into_iter().zip(gone).enumerate() {
                if gone {
                    pool.free(block);
                } else {
                    pool.words_mut(block).fill(n as u32);
                    held.push((block, n as u32));
                }
            }
            pool.begin_to_settle();
            for (block, n) in &mut held {
                *block = pool.settle(*block);
                prop_assert!(pool.words(*block).iter().all(|word| word == n));
            }
            prop_assert!(pool.chunks.iter().all(|chunk| chunk.prev != LEAVING || chunk.words.is_empty()));
            let used: usize = held.iter().map(|(block, _)| pool.len(*block)).sum();
            prop_assert_eq!(pool.used_words(), used);
            prop_assert!(pool.free_words < 64 * (1 + 4 + 64));
            for (block, n) in held {
                prop_assert!(pool.words(block).iter().all(|word| *word == n));
                pool.free(block);
            }
            prop_assert_eq!((pool.words, pool.free_words), (0, 0));
        }

        #[test]
        fn blocks_keep_what_is_written_and_take_nothing_when_all_are_free(
            ops in proptest::collection::vec((0usize..3, 1usize..200, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut pool = Pool::default();
            let mut held: Vec<(Block, Vec<u32>)> = Vec::new();
            for (n, (op, words, which)) in ops.into_iter().enumerate() {
                if op == 0 || held.is_empty() {
                    let block = pool.alloc(words);
                    prop_assert!(pool.len(block) >= words && pool.len(block) <= words * 3 / 2);
                    prop_assert!(pool.words(block).iter().all(|word| *word == 0));
                    pool.words_mut(block).fill(n as u32);
                    held.push((block, vec![n as u32; pool.len(block)]));
                } else {
                    let (block, mut content) = held.swap_remove(which.index(held.len()));
                    if op == 1 {
                        pool.free(block);
                    } else {
                        let block = pool.grow(block, content.len() + words);
                        content.resize(pool.len(block), 0);
                        held.push((block, content));
                    }
                }
                for (block, content) in &held {
                    prop_assert_eq!(pool.words(*block), &content[..]);
                }
            }
            held.into_iter().for_each(|(block, _)| pool.free(block));
            prop_assert_eq!(pool.words, 0);
        }
    }
}
