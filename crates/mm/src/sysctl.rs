//! Sysctls that a running system reads and writes.
//!
//! Rule: a write takes effect at once; what depends on it is computed again. `vm.min_free_kbytes` reads as what is in
//! force. `vm.drop_caches` frees clean page cache (1), slabs (2) or both (3).
//! Source: `min_free_kbytes_sysctl_handler()` (mm/page_alloc.c), `compaction_proactiveness_sysctl_handler()`
//! (mm/compaction.c), `drop_caches_sysctl_handler()` (fs/drop_caches.c), `dirty_ratio_handler()` (mm/page-writeback.c),
//! 3.19, 4.20 and 6.12.
//! Omitted: `vm.compact_memory` is a compaction of every zone and belongs to who runs it.

use rules::TunableError;
use units::FileId;

use crate::stat::VmEvent;
use crate::{Env, Mm};

/// Bit of `vm.drop_caches` for the page cache.
const DROP_PAGECACHE: u64 = 1;
/// Bit of `vm.drop_caches` for slabs.
const DROP_SLAB: u64 = 2;

/// The tunable that turns generations on and off.
const LRU_GEN: &str = "lru_gen.enabled";

impl Mm {
    /// Value of a tunable that is a number; none if there is no such tunable.
    pub fn sysctl(&self, name: &str) -> Option<u64> {
        if name == "vm.min_free_kbytes" {
            return Some(self.min_free_kib);
        }
        let tunable = rules::TUNABLES.iter().find(|t| t.name == name)?;
        (tunable.get)(&self.tunables).parse().ok()
    }

    /// Writes a tunable.
    ///
    /// # Errors
    /// There is no such tunable, or it does not take the value.
    pub fn set_sysctl(&mut self, name: &str, value: u64) -> Result<(), TunableError> {
        // The file of the multi-gen LRU shows a mask and takes any way to write one.
        let text = if name == LRU_GEN { format!("{value:#06x}") } else { value.to_string() };
        self.set_tunable(name, &text)
    }

    /// Writes a tunable as it would be typed.
    ///
    /// # Errors
    /// There is no such tunable, or it does not take the value.
    pub fn set_tunable(&mut self, name: &str, value: &str) -> Result<(), TunableError> {
        self.tunables.set(name, value)?;
        if matches!(name, "vm.min_free_kbytes" | "vm.watermark_scale_factor") {
            self.setup_watermarks();
        }
        if matches!(name, "vm.dirty_ratio" | "vm.dirty_bytes") {
            self.dirty_limits_set();
        }
        if name == LRU_GEN {
            self.lru_gen_change_state(self.tunables.lru_gen_enabled.core());
        }
        if name == "vm.compaction_proactiveness" {
            self.trigger_proactive_compaction();
        }
        Ok(())
    }

    /// Writes `vm.drop_caches`.
    pub fn drop_caches(&mut self, env: &Env, what: u64) {
        if what & DROP_PAGECACHE != 0 {
            for file in 0..self.pagecache.trees.nr_files() {
                self.invalidate_clean_pages(env, FileId(file));
            }
            self.stat.count(VmEvent::DropPagecache, 1);
        }
        if what & DROP_SLAB != 0 {
            self.drop_slab(env);
        }
    }
}
