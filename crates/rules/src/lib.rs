//! The decisions in which kernels differ, and the tunables a system exposes.
//!
//! A kernel profile picks one named rule for each decision; no model knows kernel versions. A new rule is one variant here, one file in `mm` that implements it, and its tests.

mod era;
mod rule;
mod tunable;

pub use era::Era;
pub use rule::*;
pub use tunable::{
    Compressor, LRU_GEN_ENABLED, LruGenCaps, SWITCH, Switch, THP_DEFRAG, THP_ENABLED, TUNABLES, ThpDefrag, ThpEnabled,
    Tunable, TunableError, Tunables, ZSWAP_COMPRESSOR,
};
