//! Tables of what most things do not have.
//!
//! What few of a million files have at a time, such as a place on a list, takes no room for the others: values lie in chunks,
//! and a chunk is there as long as one of its values differs from the default.

use std::collections::BTreeMap;

/// Values of a chunk.
const CHUNK: usize = 64;

#[derive(Debug)]
struct Chunk<T> {
    /// Values that differ from the default.
    in_use: u32,
    values: [T; CHUNK],
}

/// A value for each number, the default one for most.
#[derive(Debug)]
pub struct Sparse<T> {
    chunks: Vec<Option<Box<Chunk<T>>>>,
    present: usize,
}

impl<T> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse { chunks: Vec::new(), present: 0 }
    }
}

impl<T: Copy + PartialEq + Default> Sparse<T> {
    /// The value of a number.
    #[inline]
    pub fn get(&self, at: u32) -> T {
        let chunk = self.chunks.get(at as usize / CHUNK).and_then(Option::as_ref);
        chunk.map_or_else(T::default, |chunk| chunk.values[at as usize % CHUNK])
    }

    /// Sets the value of a number, and gives back what it was.
    pub fn set(&mut self, at: u32, value: T) -> T {
        let (place, number) = (at as usize / CHUNK, at as usize % CHUNK);
        let used = value != T::default();
        if place >= self.chunks.len() {
            if !used {
                return value;
            }
            self.chunks.resize_with(place + 1, || None);
        }
        let slot = &mut self.chunks[place];
        if slot.is_none() && !used {
            return value;
        }
        let chunk = slot.get_or_insert_with(|| {
            self.present += 1;
            Box::new(Chunk { in_use: 0, values: [T::default(); CHUNK] })
        });
        let old = std::mem::replace(&mut chunk.values[number], value);
        chunk.in_use = chunk.in_use + u32::from(used) - u32::from(old != T::default());
        if chunk.in_use == 0 {
            *slot = None;
            self.present -= 1;
        }
        old
    }

    /// The same, where it stands; none if it is the default and nothing is near.
    #[inline]
    pub(crate) fn get_ref(&self, at: u32) -> Option<&T> {
        let chunk = self.chunks.get(at as usize / CHUNK)?.as_ref()?;
        Some(&chunk.values[at as usize % CHUNK])
    }

    /// The value of a number, if it differs from the default; it must not become the default.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(at as usize / CHUNK)?.as_mut()?;
        Some(&mut chunk.values[at as usize % CHUNK]).filter(|value| **value != T::default())
    }

    /// Numbers with a value that differs from the default, ascending, and their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let chunks = self.chunks.iter().enumerate().filter_map(|(place, chunk)| Some((place, chunk.as_ref()?)));
        let all = chunks.flat_map(|(place, chunk)| {
            chunk.values.iter().enumerate().map(move |(number, value)| ((place * CHUNK + number) as u32, value))
        });
        all.filter(|(_, value)| **value != T::default())
    }

    /// Sets the value of a number to the default, and gives back what it was.
    pub fn take(&mut self, at: u32) -> T {
        self.set(at, T::default())
    }

    /// Host bytes.
    pub fn host_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Option<Box<Chunk<T>>>>() + self.present * size_of::<Chunk<T>>()
    }
}

/// A number for each number, 0 for most and below 255 for most others.
#[derive(Debug, Default)]
pub(crate) struct SparseSmall {
    /// The number, or 255 if it is among the large ones.
    small: Sparse<u8>,
    large: BTreeMap<u32, u32>,
}

impl SparseSmall {
    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, at: u32) -> u32 {
        match self.small.get(at) {
            u8::MAX => self.large[&at],
            small => small.into(),
        }
    }

    /// Sets the value of a number.
    pub(crate) fn set(&mut self, at: u32, value: u32) {
        let small = u8::try_from(value).unwrap_or(u8::MAX);
        let before = self.small.set(at, small);
        if small == u8::MAX {
            self.large.insert(at, value);
        } else if before == u8::MAX {
            self.large.remove(&at);
        }
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.small.host_bytes() + self.large.len() * size_of::<(u32, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn small_and_large_numbers_are_kept(ops in proptest::collection::vec((0u32..100, 250u32..260), 1..100)) {
            let (mut table, mut model) = (SparseSmall::default(), BTreeMap::new());
            for (at, value) in ops {
                let value = if value < 253 { 0 } else { value };
                table.set(at, value);
                model.insert(at, value);
                prop_assert!((0..100).all(|at| table.get(at) == model.get(&at).copied().unwrap_or(0)));
                prop_assert_eq!(table.large.len(), model.values().filter(|value| **value >= 255).count());
            }
        }

        #[test]
        fn values_are_kept_and_chunks_without_any_are_not(ops in proptest::collection::vec((0u32..300, 0u16..3), 1..200)) {
            let (mut table, mut model) = (Sparse::default(), BTreeMap::new());
            for (at, value) in ops {
                let old = if value == 0 { model.remove(&at) } else { model.insert(at, value) };
                prop_assert_eq!(table.set(at, value), old.unwrap_or(0));
                let chunks: BTreeSet<u32> = model.keys().map(|at| at / 64).collect();
                prop_assert_eq!(table.present, chunks.len());
                for at in 0..300 {
                    prop_assert_eq!(table.get(at), model.get(&at).copied().unwrap_or(0));
                }
            }
        }
    }
}
