//! Blocks of 4, 8, 16 and more words out of one table, given out by the buddy rule.
//!
//! For what belongs to small things in millions and grows with them: the slots of a file's pages, its extents. Such things
//! grow in step (all files of a writer have 4 pages, then 8), and what one leaves behind merges into what the next one
//! needs.

use crate::table;

/// Words of the smallest block.
const UNIT: usize = 4;
/// Orders that a block may have.
const ORDERS: usize = 27;
/// Ends a list of free blocks.
const NONE: u32 = u32::MAX;

/// A block of `4 << order` words: its order in the upper five bits, its place in units below.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block(u32);

impl Block {
    /// No block.
    pub(crate) const NONE: Block = Block(u32::MAX);

    fn new(unit: u32, order: u32) -> Block {
        assert!(unit < 1 << ORDERS, "a pool holds 2 GiB");
        Block(order << ORDERS | unit)
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

    /// Words of it.
    #[inline]
    pub(crate) fn len(self) -> usize {
        UNIT << self.order()
    }

    #[inline]
    fn order(self) -> u32 {
        self.0 >> ORDERS
    }

    #[inline]
    fn unit(self) -> u32 {
        self.0 & ((1 << ORDERS) - 1)
    }

    #[inline]
    fn start(self) -> usize {
        self.unit() as usize * UNIT
    }
}

/// The table. A free block holds its neighbours on the list of its order, and its order.
#[derive(Debug)]
pub(crate) struct Pool {
    words: Vec<u32>,
    /// A bit for each unit: a free block starts there.
    free: Vec<u64>,
    /// First free block of each order.
    lists: [u32; ORDERS],
    /// Orders that have a free block.
    present: u32,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { words: Vec::new(), free: Vec::new(), lists: [NONE; ORDERS], present: 0 }
    }
}

impl Pool {
    /// A block of at least `words` words, all 0.
    pub(crate) fn alloc(&mut self, words: usize) -> Block {
        let order = words.div_ceil(UNIT).next_power_of_two().trailing_zeros();
        while self.present >> order == 0 {
            self.extend(order);
        }
        let found = order + (self.present >> order).trailing_zeros();
        let unit = self.lists[found as usize];
        self.unlink(unit, found);
        for half in (order..found).rev() {
            self.link(unit + (1 << half), half);
        }
        let block = Block::new(unit, order);
        self.words_mut(block).fill(0);
        block
    }

    /// Gives a block back.
    pub(crate) fn free(&mut self, block: Block) {
        debug_assert!(!self.is_free(block.unit()), "{block:?} is free already");
        self.put(block.unit(), block.order());
    }

    /// A block of at least `words` words that begins with what this one holds; this one is gone.
    pub(crate) fn grow(&mut self, block: Block, words: usize) -> Block {
        let larger = self.alloc(words);
        let (from, to) = (block.start(), larger.start());
        self.words.copy_within(from..from + block.len(), to);
        self.free(block);
        larger
    }

    /// What a block holds.
    #[inline]
    pub(crate) fn words(&self, block: Block) -> &[u32] {
        &self.words[block.start()..][..block.len()]
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn words_mut(&mut self, block: Block) -> &mut [u32] {
        &mut self.words[block.start()..][..block.len()]
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.words.capacity() * 4 + self.free.capacity() * 8
    }

    fn is_free(&self, unit: u32) -> bool {
        self.free.get(unit as usize / 64).is_some_and(|bits| bits >> (unit % 64) & 1 == 1)
    }

    /// Makes the table larger by as much as lets a block of this order end there, or half of that.
    fn extend(&mut self, order: u32) {
        let units = (self.words.len() / UNIT) as u32;
        let order = order.min(units.trailing_zeros());
        let end = units as usize + (1 << order);
        table::grow(&mut self.words, end * UNIT, 0);
        table::grow(&mut self.free, end.div_ceil(64), 0);
        self.put(units, order);
    }

    /// Puts a free block on its list after merging it with the free ones beside it.
    fn put(&mut self, mut unit: u32, mut order: u32) {
        while (order as usize) < ORDERS - 1 {
            let buddy = unit ^ (1 << order);
            if !self.is_free(buddy) || self.words[buddy as usize * UNIT + 2] != order {
                break;
            }
            self.unlink(buddy, order);
            unit = unit.min(buddy);
            order += 1;
        }
        self.link(unit, order);
    }

    fn link(&mut self, unit: u32, order: u32) {
        let next = std::mem::replace(&mut self.lists[order as usize], unit);
        self.words[unit as usize * UNIT..][..3].copy_from_slice(&[next, NONE, order]);
        if next != NONE {
            self.words[next as usize * UNIT + 1] = unit;
        }
        self.free[unit as usize / 64] |= 1 << (unit % 64);
        self.present |= 1 << order;
    }

    fn unlink(&mut self, unit: u32, order: u32) {
        let at = unit as usize * UNIT;
        let (next, prev) = (self.words[at], self.words[at + 1]);
        match prev {
            NONE => self.lists[order as usize] = next,
            prev => self.words[prev as usize * UNIT] = next,
        }
        if next != NONE {
            self.words[next as usize * UNIT + 1] = prev;
        }
        self.free[unit as usize / 64] &= !(1 << (unit % 64));
        if self.lists[order as usize] == NONE {
            self.present &= !(1 << order);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn things_that_grow_in_step_leave_nothing_behind() {
        let mut pool = Pool::default();
        let mut blocks: Vec<Block> = (0..1024).map(|_| pool.alloc(4)).collect();
        for words in [8, 16] {
            blocks.iter_mut().for_each(|block| *block = pool.grow(*block, words));
        }
        // 16 words each; the last to grow leaves the first block of the step before.
        assert!(pool.words.len() <= 1024 * 16 + 32, "{} words", pool.words.len());
    }

    proptest! {
        #[test]
        fn blocks_keep_what_is_written_and_merge_when_all_are_free(
            ops in proptest::collection::vec((0usize..3, 1usize..200, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut pool = Pool::default();
            let mut held: Vec<(Block, Vec<u32>)> = Vec::new();
            for (n, (op, words, which)) in ops.into_iter().enumerate() {
                if op == 0 || held.is_empty() {
                    let block = pool.alloc(words);
                    prop_assert!(block.len() >= words && block.len() < (2 * words).max(8));
                    prop_assert!(pool.words(block).iter().all(|word| *word == 0));
                    pool.words_mut(block).fill(n as u32);
                    held.push((block, vec![n as u32; block.len()]));
                } else {
                    let (block, mut content) = held.swap_remove(which.index(held.len()));
                    if op == 1 {
                        pool.free(block);
                    } else {
                        let block = pool.grow(block, content.len() + words);
                        content.resize(block.len(), 0);
                        held.push((block, content));
                    }
                }
                for (block, content) in &held {
                    prop_assert_eq!(pool.words(*block), &content[..]);
                }
            }
            held.into_iter().for_each(|(block, _)| pool.free(block));
            let units = (pool.words.len() / UNIT) as u32;
            // Merged as far as it goes: a free block for each bit of the table's length.
            prop_assert_eq!(pool.present, units);
        }
    }
}
