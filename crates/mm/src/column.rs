//! Columns of numbers that are near their neighbours.
//!
//! What things that were made one after the other have alike, or one more than the thing before (a file's directory, its
//! inode's number, its length), takes few bits each: of every 64 numbers in a row there is the least, and of each how far it
//! lies above that, in 1, 2, 4, 8, 16 or 32 bits, whichever suffice for all of them; none if they are equal.
//! A number that does not fit has its 64 written anew, so that what is drawn at random is better off in a plain table; so has the last
//! of them, if fewer bits suffice by then: files have no inode number at first, and get theirs one after the other.

use crate::pool::{Block, Pool, SIZES};
use units::table;

/// Numbers of a group.
pub const GROUP: u32 = 64;
const NUMBERS: usize = GROUP as usize;

/// Numbers that share a least one and a width; 8 bytes beside what lies above the least one.
#[derive(Clone, Copy, Debug)]
struct Group {
    least: u32,
    /// How far each lies above `least`: 64 times 2^n bits are 2^(n + 1) words. None if nothing does.
    above: Block,
}

/// A number for each number that was given one.
#[derive(Debug, Default)]
pub struct Column {
    groups: Vec<Group>,
    pool: Pool,
}

/// log2 of the bits of a number, by the size of the block that its group has: looked up, as each number that is read takes it.
const SHIFTS: [u32; 32] = {
    let mut shifts = [0; 32];
    let mut size = 1;
    while size < SIZES.len() {
        shifts[size] = SIZES[size].ilog2() - 1;
        size += 1;
    }
    shifts
};

/// log2 of the bits that hold a number above 0: 1, 2, 4, 8, 16 or 32 bits.
fn shift_for(number: u32) -> u32 {
    (u32::BITS - number.leading_zeros()).next_power_of_two().trailing_zeros()
}

/// The least and the greatest of numbers.
fn ends(numbers: &[u32; NUMBERS]) -> (u32, u32) {
    numbers.iter().fold((u32::MAX, 0), |(least, most), number| (least.min(*number), most.max(*number)))
}

/// Word, bit in it and mask of the `at`th of numbers of 2^`shift` bits.
#[inline]
fn place(at: usize, shift: u32) -> (usize, u32, u32) {
    let bit = (at as u32) << shift;
    ((bit / u32::BITS) as usize, bit % u32::BITS, u32::MAX >> (u32::BITS - (1 << shift)))
}

/// The `at`th of the numbers that lie so far above the least one as the words from `from` on say.
#[inline]
fn number(least: u32, above: &[u32], from: usize, at: usize, shift: u32) -> u32 {
    let (word, bit, mask) = place(at, shift);
    least.wrapping_add(above[from + word] >> bit & mask)
}

impl Column {
    /// The number of a number.
    #[inline]
    pub fn get(&self, at: u32) -> u32 {
        match self.groups.get(at as usize / NUMBERS) {
            Some(group) => self.in_group(*group, at as usize % NUMBERS),
            None => 0,
        }
    }

    #[inline]
    fn in_group(&self, Group { least, above }: Group, at: usize) -> u32 {
        if !above.is_some() {
            return least;
        }
        let shift = SHIFTS[above.size() as usize];
        let (words, block) = self.pool.chunk_words(above);
        number(least, words, block << (shift + 1), at, shift)
    }

    /// All numbers of a group.
    fn all(&self, Group { least, above }: Group) -> [u32; NUMBERS] {
        if !above.is_some() {
            return [least; NUMBERS];
        }
        let words = self.pool.words(above);
        std::array::from_fn(|at| number(least, words, 0, at, SHIFTS[above.size() as usize]))
    }

    /// Sets the number of a number.
    #[inline]
    pub fn set(&mut self, at: u32, value: u32) {
        let (group, at) = (at as usize / NUMBERS, at as usize % NUMBERS);
        if group >= self.groups.len() {
            let new = Group { least: value, above: Block::NONE };
            return table::grow(&mut self.groups, group + 1, new);
        }
        let Group { least, above } = self.groups[group];
        if above.is_some() {
            let shift = SHIFTS[above.size() as usize];
            let (word, bit, mask) = place(at, shift);
            let distance = value.wrapping_sub(least);
            if distance <= mask {
                let (words, block) = self.pool.chunk_words_mut(above);
                let word = &mut words[(block << (shift + 1)) + word];
                *word = *word & !(mask << bit) | distance << bit;
                if at == NUMBERS - 1 {
                    self.narrow(group, shift);
                }
                return;
            }
        } else if value == least {
            return;
        }
        self.write_anew(group, at, value);
    }

    /// Gives all of the 64 numbers around one the same number: they take nothing then.
    pub(crate) fn fill(&mut self, at: u32, value: u32) {
        let group = at as usize / NUMBERS;
        let new = Group { least: value, above: Block::NONE };
        if group >= self.groups.len() {
            return table::grow(&mut self.groups, group + 1, new);
        }
        let old = std::mem::replace(&mut self.groups[group], new);
        if old.above.is_some() {
            self.pool.free(old.above);
        }
    }

    /// Writes a group with another number in it, which does not fit.
    #[cold]
    fn write_anew(&mut self, group: usize, at: usize, value: u32) {
        let mut numbers = self.all(self.groups[group]);
        numbers[at] = value;
        self.write_all(group, &numbers);
    }

    /// Writes a group of numbers of 2^`shift` bits anew if fewer suffice.
    fn narrow(&mut self, group: usize, shift: u32) {
        let numbers = self.all(self.groups[group]);
        let (least, most) = ends(&numbers);
        if least == most || shift_for(most - least) < shift {
            self.write_all(group, &numbers);
        }
    }

    fn write_all(&mut self, group: usize, numbers: &[u32; NUMBERS]) {
        let old = self.groups[group];
        let (least, most) = ends(numbers);
        if old.above.is_some() {
            self.pool.free(old.above);
        }
        self.groups[group] = Group { least, above: Block::NONE };
        if least < most {
            let shift = shift_for(most - least);
            let above = self.pool.alloc(2 << shift);
            let words = self.pool.words_mut(above);
            for (n, number) in numbers.iter().enumerate() {
                let (word, bit, _) = place(n, shift);
                words[word] |= (number - least) << bit;
            }
            self.groups[group].above = above;
        }
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group>() + self.pool.host_bytes()
    }
}

/// A list of numbers that are near their neighbours.
#[derive(Debug, Default)]
pub struct NearList {
    numbers: Column,
    len: u32,
}

impl NearList {
    /// How many there are.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `at`th, from 0, if there are so many.
    #[inline]
    pub fn get(&self, at: u32) -> Option<u32> {
        (at < self.len).then(|| self.numbers.get(at))
    }

    /// Adds a number at the end.
    pub fn push(&mut self, number: u32) {
        self.numbers.set(self.len, number);
        self.len += 1;
    }

    /// Has another number be the `at`th.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn set(&mut self, at: u32, number: u32) {
        assert!(at < self.len, "only what there is is replaced");
        self.numbers.set(at, number);
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|at| self.numbers.get(at))
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        self.numbers.host_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bits_of_a_number_are_a_power_of_two() {
        let bits = |number| 1u32 << shift_for(number);
        assert_eq!(
            [1, 2, 3, 4, 15, 16, 255, 256, 65_535, 65_536, u32::MAX].map(bits),
            [1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32]
        );
    }

    #[test]
    fn what_is_alike_takes_8_bytes_for_64() {
        let mut column = Column::default();
        (0..6400).for_each(|at| column.set(at, 7));
        assert_eq!(column.pool.host_bytes(), 0);
        assert!((0..6400).all(|at| column.get(at) == 7));
    }

    #[test]
    fn a_group_that_is_filled_takes_nothing() {
        let mut column = Column::default();
        (0..200).for_each(|at| column.set(at, at * at));
        (0..4).for_each(|group| column.fill(64 * group + 63 - group, group));
        assert!((0..200).all(|at| column.get(at) == at / 64) && column.pool.host_bytes() <= 4 * 32);
        column.fill(1000, 7);
        assert_eq!([960, 1023].map(|at| column.get(at)), [7, 7]);
    }

    #[test]
    fn numbers_in_a_row_take_a_byte_each() {
        let mut column = Column::default();
        (0..64 * 64).for_each(|at| column.set(at, 1_000_000 + at));
        assert!((0..64 * 64).all(|at| column.get(at) == 1_000_000 + at));
        // 63 above the least are 6 bits, which are 8: 16 words a group, and a chunk of 64 groups has 32 bytes beside.
        let chunks = column.pool.host_bytes() - 64 * 64;
        assert!(chunks <= 32 * 8, "{chunks} bytes beside, of chunks of smaller widths that are gone");
    }

    #[test]
    fn numbers_that_take_the_place_of_others_take_what_they_need_themselves() {
        let mut column = Column::default();
        (0..64 * 64).for_each(|at| column.set(at, u32::MAX));
        let alike = column.host_bytes();
        (0..64 * 64).for_each(|at| column.set(at, 1_000_000 + at));
        let in_a_row = column.host_bytes() - alike;
        (0..64 * 64).for_each(|at| column.set(at, at / 64));
        assert!((0..64 * 64).all(|at| column.get(at) == at / 64));
        // A byte each, and a list of chunks that is never shorter.
        let chunks = column.host_bytes() - alike;
        assert!((64 * 64..64 * 70).contains(&in_a_row) && chunks == in_a_row - 64 * 64, "{in_a_row}, {chunks}");
    }

    proptest! {
        #[test]
        fn a_list_keeps_its_order(ops in proptest::collection::vec((0u32..100, any::<u32>()), 1..300)) {
            let (mut list, mut model) = (NearList::default(), Vec::new());
            for (at, number) in ops {
                match model.get_mut(at as usize) {
                    Some(place) => {
                        *place = number;
                        list.set(at, number);
                    }
                    None => {
                        model.push(number);
                        list.push(number);
                    }
                }
                prop_assert!(list.iter().eq(model.iter().copied()) && list.len() as usize == model.len());
                prop_assert_eq!(list.get(at), model.get(at as usize).copied());
            }
        }

        #[test]
        fn numbers_are_kept(
            ops in proptest::collection::vec((0u32..200, 0u32..32, any::<u32>()), 1..300),
        ) {
            let (mut column, mut model) = (Column::default(), BTreeMap::new());
            for (at, shift, value) in ops {
                let value = value >> shift;
                column.set(at, value);
                model.insert(at, value);
                for (at, value) in &model {
                    prop_assert_eq!(column.get(*at), *value);
                }
            }
        }
    }
}
