//! Tables of what some things have, here and there.
//!
//! Where one of ten frames has a value, and no one knows which, a chunk of [`Sparse`](crate::sparse::Sparse) is there for
//! all. Here every 64 numbers have a bit each that says which of them differ from the default, and only those have room.

/// Numbers of a group.
const GROUP: u32 = u64::BITS;

/// Values that a group has room for at least beside those that it has, as it grows.
const SPARE: usize = 2;

#[derive(Clone, Debug, Default)]
struct Group<T> {
    /// Numbers with a value, a bit each.
    present: u64,
    /// Their values, ascending.
    values: Vec<T>,
}

impl<T> Group<T> {
    /// Where a number's value is, or belongs.
    #[inline]
    fn place(&self, number: u32) -> usize {
        (self.present & ((1 << number) - 1)).count_ones() as usize
    }

    #[inline]
    fn has(&self, number: u32) -> bool {
        self.present >> number & 1 == 1
    }
}

/// A value for each number, the default one for many.
#[derive(Debug)]
pub(crate) struct Scattered<T> {
    groups: Vec<Group<T>>,
    /// Values that all groups have room for.
    room: usize,
}

impl<T> Default for Scattered<T> {
    fn default() -> Scattered<T> {
        Scattered { groups: Vec::new(), room: 0 }
    }
}

impl<T: Copy + PartialEq + Default> Scattered<T> {
    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, at: u32) -> T {
        match self.groups.get((at / GROUP) as usize) {
            Some(group) if group.has(at % GROUP) => group.values[group.place(at % GROUP)],
            _ => T::default(),
        }
    }

    /// Sets the value of a number, and gives back what it was.
    pub(crate) fn set(&mut self, at: u32, value: T) -> T {
        let (group, number, used) = ((at / GROUP) as usize, at % GROUP, value != T::default());
        if group >= self.groups.len() {
            if !used {
                return value;
            }
            units::table::grow(&mut self.groups, group + 1, Group::default());
        }
        let group = &mut self.groups[group];
        let place = group.place(number);
        match (group.has(number), used) {
            (false, false) => value,
            (true, true) => std::mem::replace(&mut group.values[place], value),
            (false, true) => {
                let before = group.values.capacity();
                if group.values.len() == before {
                    group.values.reserve_exact(SPARE.max(before / 4).min(GROUP as usize - before));
                }
                group.values.insert(place, value);
                group.present |= 1 << number;
                self.room += group.values.capacity() - before;
                T::default()
            }
            (true, false) => {
                let old = group.values.remove(place);
                group.present &= !(1 << number);
                let (room, used) = (group.values.capacity(), group.values.len());
                if used == 0 || used + used / 2 + SPARE < room {
                    group.values.shrink_to(used + used / 4);
                    self.room -= room - group.values.capacity();
                }
                old
            }
        }
    }

    /// Sets the value of a number to the default, and gives back what it was.
    #[inline]
    pub(crate) fn take(&mut self, at: u32) -> T {
        match self.groups.get((at / GROUP) as usize) {
            Some(group) if group.has(at % GROUP) => self.set(at, T::default()),
            _ => T::default(),
        }
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group<T>>() + self.room * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_kept_and_groups_without_any_have_no_room(
            ops in proptest::collection::vec((0u32..300, 0u16..3), 1..300),
        ) {
            let (mut table, mut model) = (Scattered::default(), BTreeMap::new());
            for (at, value) in ops {
                let old = if value == 0 { model.remove(&at) } else { model.insert(at, value) };
                prop_assert_eq!(table.set(at, value), old.unwrap_or(0));
                for at in 0..320 {
                    prop_assert_eq!(table.get(at), model.get(&at).copied().unwrap_or(0));
                }
                let room: usize = table.groups.iter().map(|group| group.values.capacity()).sum();
                prop_assert_eq!(table.room, room);
            }
            for at in 0..320 {
                prop_assert_eq!(table.take(at), model.remove(&at).unwrap_or(0));
            }
            prop_assert_eq!(table.room, 0);
        }
    }
}
