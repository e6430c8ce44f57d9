//! Placeholders for modules that are being written; each section goes away with its module.
#![allow(missing_docs, unused_variables, clippy::unimplemented)]
use crate::pagecache::Slot;
use crate::swap::SwapEntry;
use crate::vfs::{Extent, Need, Scanned, ShrinkerId};
use crate::*;
use units::*;

// ---- reclaim
impl Mm {
    pub fn lru_add(&mut self, env: &Env, pfn: Pfn) {
        unimplemented!()
    }
    pub fn lru_del(&mut self, pfn: Pfn) {
        unimplemented!()
    }
    pub fn lru_isolate(&mut self, pfn: Pfn) -> bool {
        unimplemented!()
    }
    pub fn lru_putback(&mut self, env: &Env, pfn: Pfn) {
        unimplemented!()
    }
    pub fn mark_page_accessed(&mut self, env: &Env, pfn: Pfn) {
        unimplemented!()
    }
    pub fn rotate_reclaimable(&mut self, pfn: Pfn) {
        unimplemented!()
    }
    pub fn workingset_eviction(&mut self, pfn: Pfn) -> u32 {
        unimplemented!()
    }
    pub fn workingset_refault(&mut self, env: &Env, pfn: Pfn, shadow: u32) {
        unimplemented!()
    }
}
// ---- vfs, slab
impl Mm {
    pub fn shrinker_count(&self, id: ShrinkerId, node: NodeId) -> u64 {
        unimplemented!()
    }
    pub fn shrinker_scan(&mut self, env: &Env, id: ShrinkerId, node: NodeId, nr: u64, gfp: Gfp) -> Scanned {
        unimplemented!()
    }
    /// Where a page of a file lies on its device; None while its allocation is delayed.
    pub fn map_block(&self, file: FileId, index: u32) -> Option<Extent> {
        unimplemented!()
    }
    /// Allocates blocks for `pages` pages from `index` (delayed allocation, at writeback).
    pub fn allocate_blocks(&mut self, file: FileId, index: u32, pages: u32) -> Extent {
        unimplemented!()
    }
    pub fn inode_size_pages(&self, file: FileId) -> u32 {
        unimplemented!()
    }
    pub fn set_inode_size_pages(&mut self, file: FileId, pages: u32) {
        unimplemented!()
    }
    /// The inode got its first dirty page / has none any more: it may not be evicted while dirty.
    pub fn inode_dirty(&mut self, file: FileId, dirty: bool) {
        unimplemented!()
    }
    pub fn device_of(&self, file: FileId) -> u16 {
        unimplemented!()
    }
}
// ---- pagecache, writeback
impl Mm {
    pub fn pagecache_get(&self, file: FileId, index: u32) -> Slot {
        unimplemented!()
    }
    /// Takes a clean unmapped page out of its file and leaves a shadow (reclaim) or nothing (truncation).
    pub fn pagecache_remove(&mut self, env: &Env, pfn: Pfn, shadow: Option<u32>) {
        unimplemented!()
    }
    pub fn pagecache_replace(&mut self, old: Pfn, new: Pfn) {
        unimplemented!()
    }
    pub fn nr_cached(&self, file: FileId) -> u32 {
        unimplemented!()
    }
    pub fn truncate_pages(&mut self, env: &Env, file: FileId, from: u32) {
        unimplemented!()
    }
    pub fn invalidate_clean_pages(&mut self, env: &Env, file: FileId) -> u64 {
        unimplemented!()
    }
    /// writepage for reclaim: starts writeback of one dirty file page (and of its dirty neighbours where the file system clusters).
    pub fn pageout_file(&mut self, env: &Env, pfn: Pfn) -> bool {
        unimplemented!()
    }
    pub fn shadow_nodes_count(&self, node: NodeId) -> u64 {
        unimplemented!()
    }
    pub fn shadow_nodes_scan(&mut self, env: &Env, node: NodeId, nr: u64) -> Scanned {
        unimplemented!()
    }
    pub fn pagecache_need_example(&self) -> Option<Need> {
        None
    }
}
// ---- anon, swap, rmap
impl Mm {
    /// References through page tables since last asked (clears them).
    pub fn page_referenced(&mut self, pfn: Pfn) -> u32 {
        unimplemented!()
    }
    /// Gives an anonymous page a swap slot (swap cache); false if swap is full. A huge page must be split first.
    pub fn add_to_swap(&mut self, env: &Env, pfn: Pfn) -> bool {
        unimplemented!()
    }
    /// Removes every mapping; an anonymous page must have a slot by then. Marks the page DIRTY if a pte was dirty.
    pub fn try_to_unmap(&mut self, env: &Env, pfn: Pfn) -> bool {
        unimplemented!()
    }
    /// Starts writing a dirty page of the swap cache; false if it cannot.
    pub fn pageout_anon(&mut self, env: &Env, pfn: Pfn) -> bool {
        unimplemented!()
    }
    /// Drops a clean unmapped page from the swap cache, keeping the slot for its page table entry.
    pub fn swapcache_remove(&mut self, pfn: Pfn, shadow: u32) {
        unimplemented!()
    }
    pub fn split_huge_page(&mut self, env: &Env, pfn: Pfn) -> bool {
        unimplemented!()
    }
    /// Points the owner's page table entry at the new frame.
    pub fn migrate_anon(&mut self, old: Pfn, new: Pfn) {
        unimplemented!()
    }
    pub fn swap_free_pages(&self) -> u64 {
        unimplemented!()
    }
    pub fn swap_entry_of(&self, pfn: Pfn) -> Option<SwapEntry> {
        unimplemented!()
    }
}
