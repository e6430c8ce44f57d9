//! Blocks of a random job that some are chosen of more often than others.
//!
//! Rule: a rank is drawn, of which 0 is the most frequent: by Zipf's law, or so that `1 - power` of the I/O goes to the first `power` of
//! the blocks (80 % to 20 % of them with 0.2). Ranks are spread over the file by a multiplication, so that some blocks have several and some
//! none. Each file has its own spread. Any block comes at any time, as with `norandommap`.
//! Source: `zipf_next()`, `pareto_next()`, lib/zipf.c; `__hash_u64()`, hash.h; `init_rand_distribution()`, filesetup.c (3.33).
//! Abstracted: ranks of Zipf's law are drawn exactly, where fio takes an approximation of its tail; where a file's spread begins follows
//! from its number, not from its name.
//! Omitted: `normal`, `zoned` and where the distribution's centre lies.

use rand::Rng;
use rand_distr::{Distribution, Zipf};

/// `GOLDEN_RATIO_64`.
const GOLDEN_RATIO: u64 = 0x61C8_8646_80B5_83EB;

/// `random_distribution=`, where not all blocks are alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Skew {
    /// `zipf:THETA`: the block of rank `k` is chosen in proportion to `(k + 1) ^ -theta`.
    Zipf {
        /// Above 0.
        theta: f64,
    },
    /// `pareto:POWER`.
    Pareto {
        /// Between 0 and 1.
        power: f64,
    },
}

impl Skew {
    /// Reads what stands behind `random_distribution=`; none if it is not one of these, or out of range: fio does not take a theta of 1.
    pub(super) fn parse(text: &str) -> Option<Skew> {
        let (name, number) = text.split_once(':')?;
        let number: f64 = number.parse().ok()?;
        match name {
            "zipf" if number > 0.0 && number < 100.0 && number != 1.0 => Some(Skew::Zipf { theta: number }),
            "pareto" if number > 0.0 && number < 1.0 => Some(Skew::Pareto { power: number }),
            _ => None,
        }
    }

    /// A block of a file that has so many.
    pub(super) fn block(self, file: u32, blocks: u32, rng: &mut impl Rng) -> u32 {
        let offset = u64::from(file + 1).wrapping_mul(GOLDEN_RATIO.rotate_left(u32::BITS));
        let spread = u64::from(self.rank(blocks, rng)).wrapping_mul(GOLDEN_RATIO);
        (spread.wrapping_add(offset) % u64::from(blocks)) as u32
    }

    /// The rank of a block among so many.
    fn rank(self, blocks: u32, rng: &mut impl Rng) -> u32 {
        match self {
            Skew::Zipf { theta } => {
                let law = Zipf::new(f64::from(blocks), theta).expect("a file has a block, and theta is checked");
                law.sample(rng) as u32 - 1
            }
            Skew::Pareto { power } => {
                let exponent = power.ln() / (1.0 - power).ln();
                (f64::from(blocks - 1) * rng.random::<f64>().powf(exponent)) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const BLOCKS: u32 = 1000;
    const DRAWS: u32 = 100_000;

    /// Share of the draws whose rank is below `end`.
    fn share_below(skew: Skew, end: u32) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let below = (0..DRAWS).filter(|_| skew.rank(BLOCKS, &mut rng) < end).count();
        below as f64 / f64::from(DRAWS)
    }

    /// 5 standard deviations of a share of [`DRAWS`] draws, at most.
    const NEAR: f64 = 0.008;

    #[test]
    fn ranks_are_as_frequent_as_zipfs_law_says() {
        for theta in [0.6, 1.2, 2.0] {
            let weight = |rank: u32| f64::from(rank + 1).powf(-theta);
            let all: f64 = (0..BLOCKS).map(weight).sum();
            for end in [1, 2, 10, 500, BLOCKS] {
                let expected: f64 = (0..end).map(weight).sum::<f64>() / all;
                let found = share_below(Skew::Zipf { theta }, end);
                assert!((found - expected).abs() < NEAR, "{theta}, below {end}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn the_first_power_of_the_blocks_get_the_rest() {
        for power in [0.1, 0.2, 0.4] {
            let found = share_below(Skew::Pareto { power }, (power * f64::from(BLOCKS - 1)).ceil() as u32);
            assert!((found - (1.0 - power)).abs() < NEAR, "{power}: {found}");
        }
    }

    #[test]
    fn files_have_spreads_of_their_own_within_their_blocks() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut most_frequent = |file| {
            let mut counts = [0; BLOCKS as usize];
            for _ in 0..10_000 {
                counts[Skew::Zipf { theta: 1.5 }.block(file, BLOCKS, &mut rng) as usize] += 1;
            }
            (0..BLOCKS).max_by_key(|block| counts[*block as usize])
        };
        let first: Vec<_> = (0..4).map(&mut most_frequent).collect();
        assert!((1..4).all(|file| first[file] != first[0]), "{first:?}");
        assert!((0..100).all(|file| Skew::Pareto { power: 0.3 }.block(file, 1, &mut rng) == 0));
    }

    #[test]
    fn what_fio_refuses_is_refused() {
        assert_eq!(Skew::parse("zipf:1.2"), Some(Skew::Zipf { theta: 1.2 }));
        assert_eq!(Skew::parse("pareto:0.2"), Some(Skew::Pareto { power: 0.2 }));
        for bad in
            ["zipf", "zipf:1", "zipf:0", "zipf:-1", "zipf:nan", "zipf:1e300", "pareto:0", "pareto:1", "normal:10", ""]
        {
            assert_eq!(Skew::parse(bad), None, "{bad}");
        }
    }
}
