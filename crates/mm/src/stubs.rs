//! Placeholders for modules that are being written; each section goes away with its module.
#![allow(missing_docs, unused_variables, clippy::unimplemented)]
use crate::pagecache::Slot;
use crate::slab::{CacheId, Obj, Slabs};
use crate::vfs::{Extent, Need, Scanned, ShrinkerId};
use crate::zone::{AllocFlags, PageBlocks, Wmark, Zone};
use crate::*;
use units::*;

// ---- zone
impl Zone {
    pub fn all(layout: &MemoryLayout) -> Vec<Zone> {
        unimplemented!()
    }
}
impl Node {
    pub fn all(layout: &MemoryLayout) -> Vec<Node> {
        unimplemented!()
    }
}
impl PageBlocks {
    pub fn new(layout: &MemoryLayout) -> PageBlocks {
        unimplemented!()
    }
    pub fn zone_of(&self, pfn: Pfn) -> ZoneId {
        unimplemented!()
    }
    pub fn migratetype(&self, pfn: Pfn) -> MigrateType {
        unimplemented!()
    }
    pub fn set_migratetype(&mut self, pfn: Pfn, t: MigrateType) {
        unimplemented!()
    }
    pub fn skip(&self, pfn: Pfn) -> bool {
        unimplemented!()
    }
    pub fn set_skip(&mut self, pfn: Pfn, skip: bool) {
        unimplemented!()
    }
}
impl Mm {
    pub fn free_all_at_boot(&mut self, layout: &MemoryLayout) {
        unimplemented!()
    }
    pub fn setup_watermarks(&mut self) {
        unimplemented!()
    }
    pub fn alloc_pages(&mut self, env: &Env, req: AllocRequest) -> Option<Pfn> {
        unimplemented!()
    }
    pub fn get_page_from_freelist(&mut self, env: &Env, req: AllocRequest, flags: AllocFlags) -> Option<Pfn> {
        unimplemented!()
    }
    pub fn gfp_to_alloc_flags(&self, env: &Env, req: AllocRequest) -> AllocFlags {
        unimplemented!()
    }
    pub fn wakeup_kswapd(&mut self, zone: ZoneId, gfp: Gfp, order: Order, highest: ZoneKind) {
        unimplemented!()
    }
    pub fn wake_all_kswapds(&mut self, req: AllocRequest) {
        unimplemented!()
    }
    pub fn zone_watermark_ok(
        &self,
        zone: ZoneId,
        order: Order,
        mark: u64,
        highest: ZoneKind,
        flags: AllocFlags,
    ) -> bool {
        unimplemented!()
    }
    pub fn wmark(&self, zone: ZoneId, mark: Wmark) -> u64 {
        unimplemented!()
    }
    pub fn free_pages(&mut self, env: &Env, pfn: Pfn, order: Order) {
        unimplemented!()
    }
    pub fn drain_pcp_all(&mut self) {
        unimplemented!()
    }
    pub fn isolate_free_block(&mut self, pfn: Pfn) -> Option<Order> {
        unimplemented!()
    }
    pub fn free_counts(&self, zone: ZoneId) -> [[u64; MigrateType::COUNT]; 11] {
        unimplemented!()
    }
}
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
    pub fn activate_page(&mut self, pfn: Pfn) {
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
impl Slabs {
    pub fn new(nr_cpus: usize, nr_nodes: usize) -> Slabs {
        unimplemented!()
    }
}
impl Mm {
    pub fn slab_alloc(&mut self, env: &Env, cache: CacheId, gfp: Gfp) -> Result<Obj, AllocRequest> {
        unimplemented!()
    }
    pub fn slab_add_page(&mut self, env: &Env, cache: CacheId, pfn: Pfn) {
        unimplemented!()
    }
    pub fn slab_free(&mut self, env: &Env, cache: CacheId, obj: Obj) {
        unimplemented!()
    }
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
