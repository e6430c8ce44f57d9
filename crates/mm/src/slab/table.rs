//! The slabs of a cache, by number.
//!
//! Numbers stand in the objects of a slab. They are given out again, the last one first; a chunk of 64 goes back to the
//! host when none of its numbers is in use: caches grow to many times what they have most of the time.

use super::Slab;
use units::table;

/// Slabs of a chunk.
const CHUNK: usize = u64::BITS as usize;

/// Slots of a slab, a bit each: few, because most slabs have few objects.
pub(super) type Word = u16;
/// Slots of a word.
pub(super) const WORD: u32 = Word::BITS;

/// Slabs whose numbers follow each other.
#[derive(Debug)]
struct Chunk {
    /// None while no number is in use.
    slabs: Box<[Slab]>,
    /// Free slots of the slabs.
    free: Box<[Word]>,
    /// Numbers that are in use, a bit each.
    used: u64,
    /// Slabs of the least order, a bit each.
    least: u64,
}

/// All slabs of a cache.
#[derive(Debug)]
pub(super) struct Table {
    /// Objects of a slab, and of one of the least order.
    objects: u32,
    least_objects: u32,
    /// Words of the bitmap of a slab.
    words: usize,
    chunks: Vec<Chunk>,
    /// Numbers that were given back, the last one last; all from `next` on were never used.
    unused: Vec<u32>,
    next: u32,
    /// Chunks with a number in use.
    present: usize,
}

/// Place of a slab: its chunk, and which of it.
#[inline]
fn place(number: u32) -> (usize, usize) {
    (number as usize / CHUNK, number as usize % CHUNK)
}

impl Table {
    /// No slab yet; a slab has so many objects, and so many if it is of the least order.
    pub(super) fn new(objects: u32, least_objects: u32) -> Table {
        let words = objects.div_ceil(WORD) as usize;
        Table { objects, least_objects, words, chunks: Vec::new(), unused: Vec::new(), next: 0, present: 0 }
    }

    /// Gives a slab a number; all its slots are free.
    pub(super) fn add(&mut self, slab: Slab, least: bool) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        let (at, place) = place(number);
        if at == self.chunks.len() {
            table::push(&mut self.chunks, Chunk { slabs: Box::default(), free: Box::default(), used: 0, least: 0 });
        }
        let chunk = &mut self.chunks[at];
        if chunk.used == 0 {
            self.present += 1;
            chunk.slabs = vec![slab; CHUNK].into_boxed_slice();
            chunk.free = vec![0; CHUNK * self.words].into_boxed_slice();
        }
        chunk.used |= 1 << place;
        chunk.least = chunk.least & !(1 << place) | u64::from(least) << place;
        chunk.slabs[place] = slab;
        let objects = if least { self.least_objects } else { self.objects };
        for (n, word) in chunk.free[place * self.words..][..self.words].iter_mut().enumerate() {
            let slots = objects.saturating_sub(n as u32 * WORD).min(WORD);
            *word = if slots == WORD { Word::MAX } else { (1 << slots) - 1 };
        }
        number
    }

    /// Objects that a slab has room for.
    #[inline]
    pub(super) fn objects(&self, number: u32) -> u32 {
        let (at, place) = place(number);
        if self.chunks[at].least >> place & 1 == 1 { self.least_objects } else { self.objects }
    }

    /// How many of them are not in use.
    #[inline]
    pub(super) fn free_objects(&self, number: u32) -> u32 {
        self.objects(number) - u32::from(self[number].inuse)
    }

    /// Takes the number of a slab back.
    pub(super) fn remove(&mut self, number: u32) {
        table::push(&mut self.unused, number);
        let (at, place) = place(number);
        let chunk = &mut self.chunks[at];
        debug_assert!(chunk.used >> place & 1 == 1, "slab {number} is gone already");
        chunk.used &= !(1 << place);
        if chunk.used == 0 {
            (chunk.slabs, chunk.free) = (Box::default(), Box::default());
            self.present -= 1;
        }
    }

    /// A slab and its free slots, to be changed.
    #[inline]
    fn with_slots(&mut self, number: u32) -> (&mut Slab, &mut [Word]) {
        let (at, number) = place(number);
        let chunk = &mut self.chunks[at];
        (&mut chunk.slabs[number], &mut chunk.free[number * self.words..][..self.words])
    }

    /// Takes the lowest free slot of a slab; none if it is full.
    #[inline]
    pub(super) fn take_slot(&mut self, number: u32) -> Option<u32> {
        let (slab, free) = self.with_slots(number);
        let word = free.iter().position(|word| *word != 0)?;
        slab.inuse += 1;
        Some(word as u32 * WORD + take_lowest(&mut free[word]))
    }

    /// Gives a slot of a slab back; the slab as it is then.
    #[inline]
    pub(super) fn give_slot(&mut self, number: u32, slot: u32) -> Slab {
        let (slab, free) = self.with_slots(number);
        let word = &mut free[(slot / WORD) as usize];
        debug_assert!(
            slab.inuse > 0 && *word >> (slot % WORD) & 1 == 0,
            "slot {slot} of slab {number} is free already"
        );
        *word |= 1 << (slot % WORD);
        slab.inuse -= 1;
        *slab
    }

    /// Free slots of a slab.
    pub(super) fn slots(&self, number: u32) -> &[Word] {
        let (at, number) = place(number);
        &self.chunks[at].free[number * self.words..][..self.words]
    }

    /// Whether a slot of a slab is free.
    pub(super) fn is_free(&self, number: u32, slot: u32) -> bool {
        self.slots(number)[(slot / WORD) as usize] >> (slot % WORD) & 1 == 1
    }

    /// All slabs with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slab)> {
        self.chunks.iter().enumerate().flat_map(|(at, chunk)| {
            let used = (0..CHUNK).filter(|number| chunk.used >> number & 1 == 1);
            used.map(move |number| ((at * CHUNK + number) as u32, &chunk.slabs[number]))
        })
    }

    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        let chunk = CHUNK * (size_of::<Slab>() + self.words * size_of::<Word>());
        self.present * chunk + self.chunks.capacity() * size_of::<Chunk>() + self.unused.capacity() * size_of::<u32>()
    }
}

/// Clears the lowest set bit, and says which.
#[inline]
fn take_lowest(word: &mut Word) -> u32 {
    debug_assert!(*word != 0);
    let bit = word.trailing_zeros();
    *word &= *word - 1;
    bit
}

impl std::ops::Index<u32> for Table {
    type Output = Slab;
    #[inline]
    fn index(&self, number: u32) -> &Slab {
        let (at, number) = place(number);
        &self.chunks[at].slabs[number]
    }
}

impl std::ops::IndexMut<u32> for Table {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Slab {
        let (at, number) = place(number);
        &mut self.chunks[at].slabs[number]
    }
}

#[cfg(test)]
mod tests {
    use units::{NodeId, Pfn};

    use super::super::{NONE, Place};
    use super::*;

    fn slab(pfn: u32) -> Slab {
        let (prev, next) = (NONE, NONE);
        Slab { pfn: Pfn(pfn), prev, next, inuse: 0, node: NodeId(0), place: Place::Cpu }
    }

    #[test]
    fn a_slab_takes_16_bytes() {
        assert_eq!(size_of::<Slab>(), 16);
    }

    #[test]
    fn numbers_are_used_again_and_empty_chunks_take_no_memory() {
        let mut table = Table::new(WORD + 1, 3);
        assert!((0..130).map(|pfn| table.add(slab(pfn), pfn == 70)).eq(0..130));
        assert_eq!(
            [69, 70].map(|number| (table.objects(number), table.free_objects(number))),
            [(WORD + 1, WORD + 1), (3, 3)]
        );
        assert_eq!([69, 70].map(|number| table.slots(number)), [&[Word::MAX, 1][..], &[0b111, 0]]);
        assert_eq!([(); 4].map(|()| table.take_slot(70)), [Some(0), Some(1), Some(2), None]);
        assert_eq!((table.give_slot(70, 1).inuse, table.free_objects(70)), (2, 1));
        assert_eq!((table[70].pfn, table.slots(70)), (Pfn(70), &[0b10, 0][..]));
        let full = table.host_bytes();
        (64..128).for_each(|number| table.remove(number));
        assert_eq!(full - table.host_bytes(), 64 * (16 + 2 * 2) - 64 * 4, "a number that is unused takes 4 bytes");
        assert!(table.iter().map(|(number, slab)| (number, slab.pfn.0)).eq((0..64).chain(128..130).map(|n| (n, n))));
        table.remove(3);
        assert_eq!([7, 8, 9].map(|pfn| table.add(slab(pfn), false)), [3, 127, 126]);
        assert_eq!(table.slots(126), [Word::MAX, 1]);
    }
}
