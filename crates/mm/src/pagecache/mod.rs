//! The page cache: which pages of which files are in memory.
//!
//! Rule: a file has a tree of its pages ([`tree`]); where an evicted page was, a shadow remembers when. The nodes of
//! the tree are slab objects and take memory like any other.
//! Source: mm/filemap.c, lib/xarray.c, mm/workingset.c (4.20, and 6.12 where a rule says so).
//! Several pages of a file may be one block of memory, a large folio ([`folio`]).
//! Abstracted: the page lock is only seen during reads.
//! Omitted: mapped files, direct I/O, cleancache, DAX.

mod buffers;
mod directory;
mod dirty;
mod folio;
mod folio_io;
#[cfg(test)]
mod folio_tests;
mod insert;
mod io;
mod leaf;
mod mapped;
#[cfg(test)]
mod mapped_tests;
#[cfg(test)]
mod model;
mod packed;
mod read;
mod readahead;
mod readahead_limit;
#[cfg(test)]
pub(crate) mod rig;
mod root;
mod shadow;
mod shadow_list;
mod slots;
mod tree;
mod truncate;
mod validate;
mod write;

#[cfg(test)]
mod tests;

pub use read::ReadStop;
pub use readahead::{LastRead, Readahead, RestingWindow};
pub use write::{PageWrite, WriteStop};

use units::{FileId, Pfn};

use crate::Mm;
use crate::scattered::Scattered;
use crate::slab::Obj;

pub(crate) use folio::FolioPlace;
pub(crate) use folio_io::{Direction, FolioIoEnd};
pub(crate) use leaf::{NODE_SHIFT, NODE_SLOTS};
pub(crate) use mapped::FaultStop;
pub(crate) use shadow::freeable;
pub(crate) use tree::Trees;

/// What the page cache knows of a page of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// Nothing.
    Empty,
    /// It is cached; the first frame of the folio that holds it.
    Page(Pfn),
    /// It was evicted; when, as `workingset_eviction` packed it.
    Shadow(u32),
}

/// Page cache of all files.
#[derive(Debug, Default)]
pub struct PageCache {
    /// A tree for each file.
    pub(crate) trees: Trees,
    /// I/O on large folios, and on what was truncated; that is freed as it ends.
    folio_ios: folio_io::FolioIos,
    /// Which spaces map which files.
    maps: Vec<mapped::FileMap>,
    /// Buffer heads of pages, by frame.
    buffers: Scattered<Obj>,
}

impl Mm {
    /// What the page cache knows of page `index` of a file.
    #[inline]
    pub fn pagecache_get(&self, file: FileId, index: u32) -> Slot {
        slots::unpack(self.pagecache.trees.get(file.0, index))
    }

    /// Pages cached of a file.
    pub fn nr_cached(&self, file: FileId) -> u32 {
        self.pagecache.trees.nr_pages(file.0)
    }

    /// Nodes of all trees: objects of the cache `radix_tree_node` in use by the page cache.
    pub fn nr_tree_nodes(&self) -> u64 {
        self.pagecache.trees.nodes()
    }

    /// Host bytes that the page cache's own structures take.
    pub fn pagecache_host_bytes(&self) -> usize {
        self.pagecache.trees.host_bytes() + self.pagecache.buffers.host_bytes() + self.pagecache.folio_ios.host_bytes()
    }
}
