//! The page cache.

use units::Pfn;

/// What the page cache knows of a page of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// Nothing.
    Empty,
    /// It is cached.
    Page(Pfn),
    /// It was evicted; when, as `workingset_eviction` packed it.
    Shadow(u32),
}

/// Page cache of all files.
#[derive(Debug, Default)]
pub struct PageCache {}
