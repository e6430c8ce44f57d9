//! What file systems and allocators take from the kernel's cryptography.

use serde::{Deserialize, Serialize};

rule!(
    /// How CRC32c is computed on x86, whose instruction has a driver of its own (`CONFIG_CRYPTO_CRC32C_INTEL`).
    Crc32c {
        /// By the instruction from the start: Ubuntu builds the driver in.
        BuiltIn,
        /// By tables until the driver's module is loaded, which udev sees to: Debian.
        Module,
    }
);
rule!(
    /// What a random number takes before the generator has been seeded.
    UnseededRandom {
        /// A sixteenth of a block of ChaCha, as ever: until 5.17.
        Batched,
        /// The entropy that there is, hashed anew for each number: since 5.18 (`crng_make_state()`), and in 5.10 since 5.10.119.
        Extracted,
    }
);
rule!(
    /// Where `prandom_u32()` has its numbers, which are those of XFS's log tickets and of inodes' generations.
    Prandom {
        /// A generator of its own, which is not secure.
        Own,
        /// `get_random_u32()`: since d4150779e60f (5.19).
        Random,
    }
);
