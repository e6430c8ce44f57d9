//! Large tables that grow by a thirty-second instead of doubling.
//!
//! A table that doubles is half empty at worst; one that grows by a thirty-second, a thirty-third. Its elements are moved 32
//! times instead of once on their way to the final size, but an allocator moves large blocks by remapping their pages.

/// Bytes from which on a table counts as large.
const LARGE: usize = 64 << 10;
/// Part of itself that a large table grows by.
const PART: usize = 32;

/// Gives the memory of a table and of its list of free places back, if the table is large and all its places are free.
#[inline]
pub fn give_back_unused<T>(table: &mut Vec<T>, free: &mut Vec<u32>) {
    if free.len() == table.len() && size_of_val(table.as_slice()) >= LARGE {
        (*table, *free) = (Vec::new(), Vec::new());
    }
}

/// Sees to it that there is room for `more` elements.
#[inline]
fn make_room<T>(table: &mut Vec<T>, more: usize) {
    if table.capacity() - table.len() < more && size_of_val(table.as_slice()) >= LARGE {
        table.reserve_exact(more.max(table.len() / PART));
    }
}

/// [`Vec::push`].
#[inline]
pub fn push<T>(table: &mut Vec<T>, value: T) {
    make_room(table, 1);
    table.push(value);
}

/// [`Vec::resize`] to a length that is not smaller.
#[inline]
pub fn grow<T: Clone>(table: &mut Vec<T>, len: usize, value: T) {
    make_room(table, len - table.len());
    table.resize(len, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_table_is_at_most_a_thirty_third_empty() {
        let mut table: Vec<u32> = Vec::new();
        for n in 0..100_000 {
            push(&mut table, n);
            assert!(table.len() * 4 < 2 * LARGE || table.capacity() * PART <= table.len() * (PART + 1) + PART);
        }
        assert!(table.iter().copied().eq(0..100_000));
        grow(&mut table, 200_000, 7);
        assert!((table.len(), table[199_999]) == (200_000, 7) && table.capacity() == 200_000);
    }

    #[test]
    fn a_large_table_without_anything_in_it_takes_nothing() {
        for (len, used, left) in [(LARGE, 0, 0), (LARGE, 1, LARGE), (LARGE - 1, 0, LARGE - 1)] {
            let (mut table, mut free): (Vec<u8>, Vec<u32>) = (vec![0; len], (used..len as u32).collect());
            give_back_unused(&mut table, &mut free);
            assert_eq!((table.len(), table.capacity() > 0, free.capacity() > 0), (left, left > 0, left > 0));
        }
    }

    #[test]
    fn large_is_a_matter_of_bytes() {
        let mut table: Vec<[u8; 2048]> = Vec::new();
        for _ in 0..65 {
            push(&mut table, [0; 2048]);
        }
        assert_eq!(table.capacity(), 66, "from 64 KiB on, which is 32 of them, by a 32nd: 1, and 2 at 64");
    }
}
