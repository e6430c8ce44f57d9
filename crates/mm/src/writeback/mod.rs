//! Dirty memory: limits, throttling of writers, and the flushers' work.

/// Dirty state of the machine.
#[derive(Debug, Default)]
pub struct Writeback {}
