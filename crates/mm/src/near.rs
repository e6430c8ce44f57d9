//! Tables of numbers that some things have, near those of their neighbours.
//!
//! The objects of files that were made one after the other lie in the same slabs, or in slabs of the same time. Of every 64
//! things a bit each says which of them have a number; there is the least of these, and of each how far it lies above that, in
//! 1 to 4 bytes, as many as suffice for all of them. Unlike in a [`Column`](crate::column::Column) things without a number
//! take no room, and do not make that of others larger.

use crate::slab::Obj;
use units::table;

/// Things of a group.
const GROUP: u32 = u64::BITS;

/// Numbers that a group has room for at least beside those that it has, as it grows.
const SPARE: usize = 2;

/// Things with a number, and their numbers; 40 bytes beside what lies above the least one.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Which have one, a bit each.
    present: u64,
    least: u32,
    /// Bytes of each number above the least: 1 to 4; 0 if there is none.
    width: u8,
    /// How far each lies above the least, ascending by thing.
    above: Vec<u8>,
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

impl Group {
    fn has(&self, thing: u32) -> bool {
        self.present >> thing & 1 == 1
    }

    /// Where the number of a thing is, or belongs.
    #[inline]
    fn place(&self, thing: u32) -> usize {
        (self.present & ((1 << thing) - 1)).count_ones() as usize
    }

    #[inline]
    fn at(&self, place: usize) -> u32 {
        let above = match self.width {
            1 => u32::from(self.above[place]),
            2 => u32::from(u16::from_le_bytes([self.above[place * 2], self.above[place * 2 + 1]])),
            3 => {
                let bytes: &[u8; 3] = self.above[place * 3..].first_chunk().expect("each has three bytes");
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0])
            }
            _ => {
                let bytes = self.above[place * 4..].first_chunk().expect("each has four bytes");
                u32::from_le_bytes(*bytes)
            }
        };
        self.least + above
    }

    /// Whether a number lies so little above the least one that it has room.
    fn fits(&self, number: u32) -> bool {
        number >= self.least && width_of(number - self.least) <= self.width
    }

    fn write(&mut self, place: usize, number: u32) {
        let width = usize::from(self.width);
        let bytes = (number - self.least).to_le_bytes();
        self.above[place * width..][..width].copy_from_slice(&bytes[..width]);
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.present.count_ones() as usize).map(|place| self.at(place))
    }

    /// Writes all numbers anew, those that it has now, in the order of the things.
    fn write_all(&mut self, numbers: &[u32], spare: usize) {
        let least = numbers.iter().copied().min().unwrap_or(0);
        let most = numbers.iter().copied().max().unwrap_or(0);
        (self.least, self.width) = (least, width_of(most - least));
        self.above = Vec::with_capacity((numbers.len() + spare) * usize::from(self.width));
        self.above.resize(numbers.len() * usize::from(self.width), 0);
        for (place, number) in numbers.iter().enumerate() {
            self.write(place, *number);
        }
    }

    /// Room for so many further ones as it grows.
    fn spare(&self) -> usize {
        let there = self.present.count_ones() as usize;
        SPARE.max(there / 4).min(GROUP as usize - there)
    }

    /// Gives a thing that has none a number.
    fn insert(&mut self, thing: u32, number: u32) {
        let (place, spare) = (self.place(thing), self.spare());
        if self.fits(number) {
            let width = usize::from(self.width);
            let end = self.above.len();
            if self.above.capacity() < end + width {
                self.above.reserve_exact(spare * width);
            }
            self.above.resize(end + width, 0);
            self.above.copy_within(place * width..end, (place + 1) * width);
            self.write(place, number);
        } else {
            let mut numbers: Vec<u32> = self.numbers().collect();
            numbers.insert(place, number);
            self.write_all(&numbers, spare - 1);
        }
        self.present |= 1 << thing;
    }

    /// Gives a thing that has a number another one.
    fn replace(&mut self, thing: u32, number: u32) {
        let place = self.place(thing);
        if self.fits(number) {
            return self.write(place, number);
        }
        let mut numbers: Vec<u32> = self.numbers().collect();
        numbers[place] = number;
        self.write_all(&numbers, 0);
    }

    /// Takes the number of a thing that has one.
    fn remove(&mut self, thing: u32) {
        let (place, width) = (self.place(thing), usize::from(self.width));
        self.above.drain(place * width..(place + 1) * width);
        self.present &= !(1 << thing);
        let (used, room) = (self.present.count_ones() as usize, self.above.capacity() / width);
        if used == 0 {
            *self = Group::default();
        } else if used + used / 2 + SPARE < room {
            let numbers: Vec<u32> = self.numbers().collect();
            self.write_all(&numbers, used / 4);
        }
    }
}

/// A number for some of many things.
#[derive(Debug, Default)]
pub struct Near {
    groups: Vec<Group>,
    /// Bytes that all groups have room for.
    room: usize,
}

impl Near {
    /// The number of a thing.
    #[inline]
    pub fn get(&self, thing: u32) -> Option<u32> {
        let group = self.groups.get((thing / GROUP) as usize)?;
        let thing = thing % GROUP;
        group.has(thing).then(|| group.at(group.place(thing)))
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
            table::grow(&mut self.groups, at + 1, Group::default());
        }
        let group = &mut self.groups[at];
        let old = group.has(thing).then(|| group.at(group.place(thing)));
        let room = group.above.capacity();
        match (old, number) {
            (None, None) => {}
            (None, Some(number)) => group.insert(thing, number),
            (Some(_), Some(number)) => group.replace(thing, number),
            (Some(_), None) => group.remove(thing),
        }
        self.room = self.room - room + group.above.capacity();
        old
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group>() + self.room
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
                let room: usize = table.groups.iter().map(|group| group.above.capacity()).sum();
                prop_assert_eq!(table.room, room);
            }
            for thing in 0..220 {
                prop_assert_eq!(table.set(thing, None), model.remove(&thing));
            }
            prop_assert_eq!(table.room, 0);
        }
    }

    #[test]
    fn neighbours_take_a_byte_each() {
        let mut table = Near::default();
        for thing in 0..64 {
            table.set(thing, Some((1 << 20) + thing * 3));
        }
        assert_eq!((table.groups[0].width, table.groups[0].above.len(), table.room), (1, 64, 64));
        // 2^20 + 256 is too far from the least: two bytes for all.
        table.set(0, Some((1 << 20) + 300));
        assert_eq!((table.groups[0].width, table.room), (2, 128));
        assert_eq!((table.get(0), table.get(63)), (Some((1 << 20) + 300), Some((1 << 20) + 189)));
        // 2^16 above it takes three, 2^24 four.
        table.set(1, Some((1 << 20) + 6 + (1 << 16)));
        assert_eq!((table.groups[0].width, table.room, table.get(1)), (3, 192, Some((1 << 20) + 6 + (1 << 16))));
        table.set(1, Some((1 << 20) + 6 + (1 << 24)));
        assert_eq!((table.groups[0].width, table.room, table.get(63)), (4, 256, Some((1 << 20) + 189)));
    }
}
