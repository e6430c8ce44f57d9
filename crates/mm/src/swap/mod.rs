//! Swap devices and the swap cache.

/// A slot on a swap device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SwapEntry(pub u32);

/// All swap devices.
#[derive(Debug, Default)]
pub struct Swap {}
