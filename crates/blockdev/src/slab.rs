//! A table of reusable slots, so that a bio costs no allocation in the steady state.

use std::ops::{Index, IndexMut};

use units::table;

/// No slot; ends a list of slots.
pub(crate) const NIL: u32 = u32::MAX;

/// Values with stable small indices; freed slots are reused, last freed first.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(crate) fn new() -> Self {
        Slab { items: Vec::new(), free: Vec::new() }
    }

    /// Stores `value` and returns its slot.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(slot) = self.free.pop() {
            debug_assert!(self.items[slot as usize].is_none());
            self.items[slot as usize] = Some(value);
            return slot;
        }
        let slot = u32::try_from(self.items.len()).expect("fewer than 2^32 bios at once");
        assert!(slot != NIL);
        table::push(&mut self.items, Some(value));
        slot
    }

    /// Takes the value out of `slot`, which must be occupied.
    pub(crate) fn remove(&mut self, slot: u32) -> T {
        let value = self.items[slot as usize].take().expect("occupied slot");
        self.free.push(slot);
        table::give_back_unused(&mut self.items, &mut self.free);
        value
    }

    /// Host bytes.
    pub(crate) fn host_bytes(&self) -> usize {
        self.items.capacity() * size_of::<Option<T>>() + self.free.capacity() * size_of::<u32>()
    }

    /// Occupied slots.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, slot: u32) -> &T {
        self.items[slot as usize].as_ref().expect("occupied slot")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        self.items[slot as usize].as_mut().expect("occupied slot")
    }
}
