//! Tables of numbers that some things have, near those of their neighbours.
//!
//! The objects of files that were made one after the other lie in the same slabs, or in slabs of the same time. Of every 64
//! things a bit each says which of them have a number; there is the least of these, and of each how far it lies above that, in
//! 1 to 4 bytes, as many as suffice for all of them. Unlike in a [`Column`](crate::column::Column) things without a number
//! take no room, and do not make that of others larger.

use units::table;
use zerocopy::IntoBytes;

use crate::pool::{Block, Pool};
use crate::slab::Obj;

/// Things of a group.
const GROUP: u32 = u64::BITS;
/// Numbers that a group has room for at least when it gives room back.
const SPARE: usize = 2;

/// Things with a number; 20 bytes beside the numbers, as which it is packed: 24 else.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Group {
    /// Which have one, a bit each.
    present: u64,
    least: u32,
    /// How far each lies above the least, ascending by thing.
    above: Block,
    /// Bytes of each number above the least: 1 to 4; 0 if there is none.
    width: u8,
}

/// Bytes that hold a distance.
fn width_of(distance: u32) -> u8 {
    match distance {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFF_FFFF => 3,
        _ => 4,
    }
}

/// The number of so many bytes in a place.
#[inline]
fn read(bytes: &[u8], place: usize, width: u8) -> u32 {
    let at = place * usize::from(width);
    match width {
        1 => u32::from(bytes[at]),
        2 => u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
        3 => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0]),
        _ => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]),
    }
}

fn write(bytes: &mut [u8], place: usize, width: u8, number: u32) {
    let width = usize::from(width);
    bytes[place * width..][..width].copy_from_slice(&number.to_le_bytes()[..width]);
}

/// Words that so many bytes take.
fn words_for(bytes: usize) -> usize {
    bytes.div_ceil(size_of::<u32>())
}

impl Group {
    const EMPTY: Group = Group { present: 0, least: 0, above: Block::NONE, width: 0 };

    #[inline]
    fn has(&self, thing: u32) -> bool {
        self.present >> thing & 1 == 1
    }

    /// Where the number of a thing is, or belongs.
    #[inline]
    fn place(&self, thing: u32) -> usize {
        (self.present & ((1 << thing) - 1)).count_ones() as usize
    }

    fn len(&self) -> usize {
        self.present.count_ones() as usize
    }

    /// Bytes that so many of its numbers take.
    fn bytes(&self, numbers: usize) -> usize {
        numbers * usize::from(self.width)
    }

    /// Whether a number lies so little above the least one that it has room.
    fn fits(&self, number: u32) -> bool {
        number >= self.least && width_of(number - self.least) <= self.width
    }

    #[inline]
    fn at(&self, pool: &Pool, place: usize) -> u32 {
        self.least + read(pool.words(self.above).as_bytes(), place, self.width)
    }

    fn numbers<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = u32> + use<'a> {
        let group = *self;
        (0..group.len()).map(move |place| group.at(pool, place))
    }

    /// Writes all numbers anew, those that it has now, in the order of the things.
    fn write_all(&mut self, pool: &mut Pool, numbers: &[u32]) {
        if self.above.is_some() {
            pool.free(self.above);
        }
        let least = numbers.iter().copied().min().unwrap_or(0);
        let most = numbers.iter().copied().max().unwrap_or(0);
        (self.least, self.width) = (least, width_of(most - least));
        self.above = pool.alloc(words_for(self.bytes(numbers.len())));
        let bytes = pool.words_mut(self.above).as_mut_bytes();
        numbers.iter().enumerate().for_each(|(place, number)| write(bytes, place, self.width, number - least));
    }

    /// Gives a thing that has none a number.
    fn insert(&mut self, pool: &mut Pool, thing: u32, number: u32) {
        let (place, len) = (self.place(thing), self.len());
        if self.fits(number) {
            let (from, end) = (self.bytes(place), self.bytes(len));
            let words = words_for(self.bytes(len + 1));
            if pool.len(self.above) < words {
                self.above = pool.grow(self.above, words);
            }
            let bytes = pool.words_mut(self.above).as_mut_bytes();
            bytes.copy_within(from..end, from + usize::from(self.width));
            write(bytes, place, self.width, number - self.least);
        } else {
            let mut numbers: Vec<u32> = self.numbers(pool).collect();
            numbers.insert(place, number);
            self.write_all(pool, &numbers);
        }
        self.present |= 1 << thing;
    }

    /// Gives a thing that has a number another one.
    fn replace(&mut self, pool: &mut Pool, thing: u32, number: u32) {
        let place = self.place(thing);
        if self.fits(number) {
            let bytes = pool.words_mut(self.above).as_mut_bytes();
            return write(bytes, place, self.width, number - self.least);
        }
        let mut numbers: Vec<u32> = self.numbers(pool).collect();
        numbers[place] = number;
        self.write_all(pool, &numbers);
    }

    /// Takes the number of a thing that has one.
    fn remove(&mut self, pool: &mut Pool, thing: u32) {
        let (from, end) = (self.bytes(self.place(thing) + 1), self.bytes(self.len()));
        let bytes = pool.words_mut(self.above).as_mut_bytes();
        bytes.copy_within(from..end, from - usize::from(self.width));
        self.present &= !(1 << thing);
        let used = self.len();
        if used == 0 {
            pool.free(self.above);
            *self = Group::EMPTY;
        } else if words_for(self.bytes(used + used / 2 + SPARE)) < pool.len(self.above) {
            let numbers: Vec<u32> = self.numbers(pool).collect();
            self.write_all(pool, &numbers);
        }
    }
}

/// A number for some of many things.
#[derive(Debug, Default)]
pub struct Near {
    groups: Vec<Group>,
    pool: Pool,
}

impl Near {
    /// The number of a thing.
    #[inline]
    pub fn get(&self, thing: u32) -> Option<u32> {
        let group = self.groups.get((thing / GROUP) as usize)?;
        let thing = thing % GROUP;
        group.has(thing).then(|| group.at(&self.pool, group.place(thing)))
    }

    /// Whether a thing has a number: cheaper than to find it.
    #[inline]
    pub fn has(&self, thing: u32) -> bool {
        self.groups.get((thing / GROUP) as usize).is_some_and(|group| group.has(thing % GROUP))
    }

    /// Gives a thing a number or takes it, and says which it had.
    pub fn set(&mut self, thing: u32, number: Option<u32>) -> Option<u32> {
        let (at, thing) = ((thing / GROUP) as usize, thing % GROUP);
        if at >= self.groups.len() {
            number?;
            table::grow(&mut self.groups, at + 1, Group::EMPTY);
        }
        let group = &mut self.groups[at];
        let old = group.has(thing).then(|| group.at(&self.pool, group.place(thing)));
        match (old, number) {
            (None, None) => {}
            (None, Some(number)) => group.insert(&mut self.pool, thing, number),
            (Some(_), Some(number)) => group.replace(&mut self.pool, thing, number),
            (Some(_), None) => group.remove(&mut self.pool, thing),
        }
        old
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group>() + self.pool.host_bytes()
    }
}

/// An object for some of many things.
#[derive(Debug, Default)]
pub(crate) struct NearObjs(Near);

impl NearObjs {
    /// Whether a thing has an object.
    #[inline]
    pub(crate) fn has(&self, thing: u32) -> bool {
        self.0.has(thing)
    }

    /// The object of a thing.
    #[inline]
    pub(crate) fn get(&self, thing: u32) -> Obj {
        self.0.get(thing).map_or(Obj::NONE, Obj)
    }

    /// Gives a thing an object, or none, and gives back the one that it had.
    pub(crate) fn set(&mut self, thing: u32, obj: Obj) -> Obj {
        self.0.set(thing, obj.is_some().then_some(obj.0)).map_or(Obj::NONE, Obj)
    }

    /// Takes the object of a thing.
    pub(crate) fn take(&mut self, thing: u32) -> Obj {
        self.set(thing, Obj::NONE)
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.0.host_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![5 => 1000u32..1100, 2 => 1000u32..70_000, 2 => 1000u32..1 << 23, 1 => any::<u32>()]
    }

    proptest! {
        #[test]
        fn numbers_are_kept_and_groups_without_any_have_no_room(
            ops in proptest::collection::vec((0u32..200, proptest::option::weighted(0.7, number())), 1..400),
        ) {
            let (mut table, mut model) = (Near::default(), BTreeMap::new());
            for (thing, number) in ops {
                let old = match number {
                    Some(number) => model.insert(thing, number),
                    None => model.remove(&thing),
                };
                prop_assert_eq!(table.set(thing, number), old);
                for thing in 0..220 {
                    prop_assert_eq!(table.get(thing), model.get(&thing).copied());
                    prop_assert_eq!(table.has(thing), model.contains_key(&thing));
                }
            }
            for thing in 0..220 {
                prop_assert_eq!(table.set(thing, None), model.remove(&thing));
            }
            prop_assert!(table.groups.iter().all(|group| !group.above.is_some()));
            prop_assert_eq!(table.pool.used_words(), 0);
        }
    }

    #[test]
    fn a_group_takes_20_bytes() {
        assert_eq!(size_of::<Group>(), 20);
    }

    #[test]
    fn neighbours_take_a_byte_each() {
        let mut table = Near::default();
        for thing in 0..64 {
            table.set(thing, Some((1 << 20) + thing * 3));
        }
        assert_eq!((table.groups[0].width, table.pool.used_words()), (1, 16));
        // 2^20 + 256 is too far from the least: two bytes for all.
        table.set(0, Some((1 << 20) + 300));
        assert_eq!((table.groups[0].width, table.pool.used_words()), (2, 32));
        assert_eq!((table.get(0), table.get(63)), (Some((1 << 20) + 300), Some((1 << 20) + 189)));
        // 2^16 above it takes three, 2^24 four.
        table.set(1, Some((1 << 20) + 6 + (1 << 16)));
        assert_eq!(
            (table.groups[0].width, table.pool.used_words(), table.get(1)),
            (3, 48, Some((1 << 20) + 6 + (1 << 16)))
        );
        table.set(1, Some((1 << 20) + 6 + (1 << 24)));
        assert_eq!((table.groups[0].width, table.pool.used_words(), table.get(63)), (4, 64, Some((1 << 20) + 189)));
        // It has room for half as many again, and two: 42 and 21 and 2 are more than 64 words, 41 and 20 and 2 are fewer; 31 and 15
        // and 2 are not fewer than 48.
        let mut words_with = |left: std::ops::Range<u32>| {
            left.rev().for_each(|thing| assert!(table.set(thing, None).is_some()));
            table.pool.used_words()
        };
        assert_eq!([words_with(42..64), words_with(41..42), words_with(31..41), words_with(30..31)], [64, 48, 48, 32]);
    }
}
