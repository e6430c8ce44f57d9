//! Placeholders for modules that are being written; each section goes away with its module.
#![allow(missing_docs, unused_variables, clippy::unimplemented)]
use crate::pagecache::Slot;
use crate::vfs::{Need, Scanned};
use crate::*;
use units::*;

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
