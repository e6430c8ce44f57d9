//! Permutation test for a difference of means: for counts and latencies far from normal.
//!
//! If the labels "baseline" and "variant" mean nothing, every split of the pooled samples is equally likely; p is the
//! share of splits whose means differ at least as much as the real one. All splits are tried where there are few,
//! else a fixed number drawn from a ChaCha stream of the given seed, with the real split counted among them
//! (Phipson and Smyth, 2010), so that p is never 0.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Up to this many splits all are tried; beyond it this many are drawn.
const SPLITS_MAX: u64 = 20_000;

/// Two-sided p for a difference of means; `None` if a group is empty or a sample is not finite.
pub fn permutation_test(first: &[f64], second: &[f64], seed: u64) -> Option<f64> {
    let pooled: Vec<f64> = first.iter().chain(second).copied().collect();
    if first.is_empty() || second.is_empty() || pooled.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let split = Split::new(&pooled, first.len());
    let observed = split.difference(first.iter().sum());
    let is_extreme = |sum: f64| split.difference(sum) >= observed - split.tolerance;
    match split_count(pooled.len() as u64, first.len() as u64) {
        Some(splits) => Some(count_all(&pooled, first.len(), is_extreme) as f64 / splits as f64),
        None => {
            let extreme = count_drawn(pooled, first.len(), seed, is_extreme);
            Some((extreme + 1) as f64 / (SPLITS_MAX + 1) as f64)
        }
    }
}

/// What is needed to turn the first group's sum into a difference of means.
struct Split {
    total: f64,
    n_first: f64,
    n_second: f64,
    tolerance: f64,
}

impl Split {
    fn new(pooled: &[f64], n_first: usize) -> Split {
        let magnitude = pooled.iter().fold(0.0f64, |max, x| max.max(x.abs()));
        Split {
            total: pooled.iter().sum(),
            n_first: n_first as f64,
            n_second: (pooled.len() - n_first) as f64,
            tolerance: magnitude * 1e-12,
        }
    }

    /// |difference of means| if the first group sums to `sum`.
    fn difference(&self, sum: f64) -> f64 {
        (sum / self.n_first - (self.total - sum) / self.n_second).abs()
    }
}

/// n over k, or `None` above [`SPLITS_MAX`].
fn split_count(n: u64, k: u64) -> Option<u64> {
    let mut count = 1u64;
    for i in 1..=k.min(n - k) {
        count = count * (n - k.min(n - k) + i) / i;
        if count > SPLITS_MAX {
            return None;
        }
    }
    Some(count)
}

/// Counts extreme splits among all, stepping through index combinations in lexicographic order.
fn count_all(pooled: &[f64], k: usize, is_extreme: impl Fn(f64) -> bool) -> u64 {
    let n = pooled.len();
    let mut chosen: Vec<usize> = (0..k).collect();
    let mut extreme = 0;
    loop {
        extreme += u64::from(is_extreme(chosen.iter().map(|&i| pooled[i]).sum()));
        let Some(step) = (0..k).rev().find(|&i| chosen[i] < n - k + i) else {
            return extreme;
        };
        chosen[step] += 1;
        for i in step + 1..k {
            chosen[i] = chosen[i - 1] + 1;
        }
    }
}

/// Counts extreme splits among [`SPLITS_MAX`] random ones.
fn count_drawn(mut pooled: Vec<f64>, k: usize, seed: u64, is_extreme: impl Fn(f64) -> bool) -> u64 {
    let mut stream = ChaCha8Rng::seed_from_u64(seed);
    let mut extreme = 0;
    for _ in 0..SPLITS_MAX {
        let (chosen, _) = pooled.partial_shuffle(&mut stream, k);
        extreme += u64::from(is_extreme(chosen.iter().sum()));
    }
    extreme
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_triples_by_hand() {
        // 6 over 3 = 20 splits; only {1,2,3} and {4,5,6} differ by 3: p = 2/20.
        assert_eq!(permutation_test(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0), Some(0.1));
    }

    #[test]
    fn interleaved_pairs_by_hand() {
        // Pool 1, 2, 3, 4; real split {1,4}|{2,3} differs by 0: every one of the 6 splits is as extreme.
        assert_eq!(permutation_test(&[1.0, 4.0], &[2.0, 3.0], 0), Some(1.0));
    }

    #[test]
    fn drawn_splits_are_reproducible_and_sensible() {
        let first: Vec<f64> = (0..30).map(f64::from).collect();
        let same: Vec<f64> = (0..30).map(|i| f64::from(i) + 0.5).collect();
        let other: Vec<f64> = (0..30).map(|i| f64::from(i) + 30.0).collect();
        let p = permutation_test(&first, &same, 7);
        assert_eq!(p, permutation_test(&first, &same, 7));
        assert!(p.unwrap() > 0.5);
        assert_eq!(permutation_test(&first, &other, 7), Some(1.0 / 20_001.0));
    }

    #[test]
    fn split_counts_by_hand() {
        assert_eq!(split_count(6, 3), Some(20));
        assert_eq!(split_count(10, 2), Some(45));
        assert_eq!(split_count(16, 8), Some(12_870));
        assert_eq!(split_count(20, 10), None);
    }

    #[test]
    fn bad_samples_are_none() {
        assert_eq!(permutation_test(&[], &[1.0], 0), None);
        assert_eq!(permutation_test(&[f64::NAN], &[1.0], 0), None);
    }
}
