//! Anonymous memory: address spaces, page tables, faults, huge pages.

/// All address spaces.
#[derive(Debug, Default)]
pub struct Spaces {}
