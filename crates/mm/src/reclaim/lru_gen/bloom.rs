//! Bloom filters of page tables that are worth a walk.
//!
//! Rule: two filters of 2^15 bits with two hash functions each. A walk for a generation reads one and fills the other for
//! the next generation; a filter that was never used lets everything through.
//! Source: `get_item_key()`, `test_bloom_filter()`, `update_bloom_filter()`, `reset_bloom_filter()` (mm/vmscan.c),
//! `hash_64_generic()` (include/linux/hash.h); 6.12.
//! Abstracted: a filter can always be allocated.

/// log2 of the bits of a filter.
const BLOOM_FILTER_SHIFT: u32 = 15;
const WORDS: usize = 1 << (BLOOM_FILTER_SHIFT - 6);
/// `GOLDEN_RATIO_64`.
const GOLDEN_RATIO_64: u64 = 0x61C8_8646_80B5_83EB;

/// Both filters.
#[derive(Clone, Debug, Default)]
pub(super) struct BloomFilters {
    filters: [Option<Box<[u64; WORDS]>>; 2],
}

/// The two bits of an entry, by its address.
fn bits(entry: u64) -> [usize; 2] {
    let hash = entry.wrapping_mul(GOLDEN_RATIO_64) >> (64 - 2 * BLOOM_FILTER_SHIFT);
    [(hash & ((1 << BLOOM_FILTER_SHIFT) - 1)) as usize, (hash >> BLOOM_FILTER_SHIFT) as usize]
}

impl BloomFilters {
    /// Whether an entry may have been put in for a generation.
    pub(super) fn test(&self, seq: u64, entry: u64) -> bool {
        let filter = &self.filters[(seq % 2) as usize];
        filter.as_ref().is_none_or(|words| bits(entry).iter().all(|bit| words[bit / 64] >> (bit % 64) & 1 != 0))
    }

    /// Puts an entry in for a generation, if the filter is in use.
    pub(super) fn add(&mut self, seq: u64, entry: u64) {
        if let Some(words) = &mut self.filters[(seq % 2) as usize] {
            bits(entry).iter().for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
        }
    }

    /// Begins to fill the filter for a generation.
    pub(super) fn reset(&mut self, seq: u64) {
        self.filters[(seq % 2) as usize] = Some(Box::new([0; WORDS]));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    use super::*;

    #[test]
    fn a_filter_in_use_keeps_out_most_of_what_was_not_put_in() {
        let mut filters = BloomFilters::default();
        assert!(filters.test(7, 4096), "never used");
        filters.add(7, 4096);
        filters.reset(7);
        assert!(!filters.test(7, 4096), "what was put in before is not in it");
        // The source gives a rate of 1/5 at 10,000 entries whose hashes are independent: here those of splitmix64.
        let scattered = |n: u64| SplitMix64::seed_from_u64(n).next_u64();
        (0..10_000).for_each(|n| filters.add(7, scattered(n)));
        let passed = (10_000..20_000).filter(|n| filters.test(7, scattered(*n))).count();
        assert!((1800..2400).contains(&passed), "{passed} of 10000");
        assert!(filters.test(8, 0), "the other one was never used");
    }

    proptest! {
        #[test]
        fn what_was_put_in_passes(entries in prop::collection::vec(any::<u64>(), 1..200)) {
            let mut filters = BloomFilters::default();
            filters.reset(3);
            entries.iter().for_each(|entry| filters.add(3, *entry));
            prop_assert!(entries.iter().all(|entry| filters.test(3, *entry)));
        }
    }
}
