//! Named random streams.
//!
//! Each consumer of randomness has a stream of its own, named after what it decides (`"disk/latency"`). One
//! draw more in one of them shifts no other, so variants of a run are compared under common random numbers.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The source of all random streams of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streams {
    /// Seed of the experiment.
    pub seed: u64,
    /// Iteration within the experiment.
    pub run: u32,
}

impl Streams {
    /// The streams of iteration `run` under `seed`.
    pub fn new(seed: u64, run: u32) -> Streams {
        Streams { seed, run }
    }

    /// A stream from its start. The key is (seed, run, hash of the name) side by side: ChaCha mixes.
    pub fn rng(&self, name: &str) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..12].copy_from_slice(&self.run.to_le_bytes());
        key[16..].copy_from_slice(&fnv1a_128(name.as_bytes()).to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

/// FNV-1a, 128 bits: needs no quality beyond telling names apart, and is the same on every host and release.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    fn draws(mut rng: ChaCha8Rng) -> Vec<u64> {
        (0..8).map(|_| rng.random()).collect()
    }

    #[test]
    fn a_stream_depends_on_seed_run_and_name_and_on_nothing_else() {
        let streams = Streams::new(7, 1);
        let disk = draws(streams.rng("disk/latency"));
        let mut other = streams.rng("workload");
        let _: u64 = other.random();
        assert_eq!(disk, draws(streams.rng("disk/latency")));
        assert_ne!(disk, draws(streams.rng("disk/latencz")));
        assert_ne!(disk, draws(Streams::new(8, 1).rng("disk/latency")));
        assert_ne!(disk, draws(Streams::new(7, 2).rng("disk/latency")));
    }

    #[test]
    fn fnv1a_of_the_published_vectors() {
        // Empty input: the offset basis. "a": from the FNV reference test vectors.
        assert_eq!(fnv1a_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
