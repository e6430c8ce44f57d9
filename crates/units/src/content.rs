//! What pages hold, as far as compressing them goes.
//!
//! Rule: a share of the pages is filled with one word; of the others each compresses to a size of its own, the same whenever it is
//! written.
//! Source: the ratio of 2 that Documentation/admin-guide/blockdev/zram.rst expects (6.12); 10 to 20 % of the pages that go to zswap
//! are of one word (patch series that introduced and that removed its handling of them, 2017 and 2024). Programs of the model have
//! no contents, so that a machine file says what it wants them to be; without it none is of one word.
//! Abstracted: sizes are spread evenly from half to one and a half of the mean, a guess; which page has which is drawn from
//! its place in its process. Programs on a real kernel write pages that compress so (sys-linux/src/contents.rs), whose places are
//! others than those on the twin: the sizes are spread alike, and that is all.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::PAGE_SIZE;

/// What the anonymous pages of a machine hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Contents {
    /// Mean size of a compressed page, in bytes.
    pub mean_bytes: u32,
    /// Share of the pages that are filled with one word, in percent.
    pub same_filled_percent: u32,
}

impl Default for Contents {
    fn default() -> Contents {
        Contents { mean_bytes: PAGE_SIZE as u32 / 2, same_filled_percent: 0 }
    }
}

/// What one page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// One word, over and over.
    SameFilled,
    /// It compresses to so many bytes; a page of them if it does not compress.
    Bytes(u32),
}

impl Contents {
    /// What the page at this place of its process holds.
    pub fn of(&self, vpn: u32) -> Content {
        let draw = SplitMix64::seed_from_u64(u64::from(vpn)).next_u64();
        if (draw % 100) < u64::from(self.same_filled_percent) {
            return Content::SameFilled;
        }
        let spread = (u64::from(self.mean_bytes) * (draw >> 32)) >> 32;
        Content::Bytes((u64::from(self.mean_bytes / 2) + spread).clamp(1, PAGE_SIZE) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares_are_those_asked_for() {
        let contents = Contents { mean_bytes: 1000, same_filled_percent: 20 };
        let (mut same, mut bytes, mut least, mut most) = (0, 0, u32::MAX, 0);
        const PAGES: u32 = 100_000;
        for vpn in 0..PAGES {
            match contents.of(vpn) {
                Content::SameFilled => same += 1,
                Content::Bytes(size) => {
                    bytes += u64::from(size);
                    (least, most) = (least.min(size), most.max(size));
                }
            }
        }
        // 20 % of them, with a standard deviation of sqrt(0.2 x 0.8 / 100 000) = 0.13 %.
        assert!((19_500..20_500).contains(&same), "{same}");
        let mean = bytes as f64 / f64::from(PAGES - same);
        assert!((990.0..1010.0).contains(&mean), "{mean}");
        assert!(least >= 500 && most <= 1500, "{least} to {most}");
    }

    #[test]
    fn what_does_not_compress_takes_a_page() {
        let contents = Contents { mean_bytes: 4096, same_filled_percent: 0 };
        let sizes: Vec<Content> = (0..100).map(|vpn| contents.of(vpn)).collect();
        assert!(sizes.contains(&Content::Bytes(4096)), "half of them would be larger");
        assert!(sizes.iter().all(|content| matches!(content, Content::Bytes(2048..=4096))));
    }
}
