//! Large tables that grow by an eighth instead of doubling.
//!
//! A table that doubles is half empty at worst; one that grows by an eighth, a ninth. The elements are moved eight times
//! instead of once on their way to the final size, but an allocator moves large blocks by remapping their pages.

/// Elements from which on a table counts as large.
const LARGE: usize = 4096;

/// Sees to it that there is room for `more` elements.
#[inline]
fn make_room<T>(table: &mut Vec<T>, more: usize) {
    if table.capacity() - table.len() < more && table.len() >= LARGE {
        table.reserve_exact(more.max(table.len() / 8));
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
    fn a_large_table_is_at_most_a_ninth_empty() {
        let mut table = Vec::new();
        for n in 0..100_000 {
            push(&mut table, n);
            assert!(table.len() < 2 * LARGE || table.capacity() * 8 <= table.len() * 9 + 8);
        }
        assert!(table.iter().copied().eq(0..100_000));
        grow(&mut table, 200_000, 7);
        assert!((table.len(), table[199_999]) == (200_000, 7) && table.capacity() == 200_000);
    }
}
