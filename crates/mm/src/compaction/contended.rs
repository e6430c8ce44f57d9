//! When asynchronous compaction gives up for others.
//!
//! - **Rule**: wherever a scanner comes to 32 frames anew it looks, until 5.0, whether its CPU is wanted, with which the run ends. It lets go of its lock there, that of
//!   the LRU lists or the zone's, and takes it again for the first of them that it wants. If another CPU holds it, the run ends, too: at once, or since 5.1 where the
//!   migrate scanner comes to the end of a pageblock that it takes as a whole, for which it waits for the lock. Moving pages gives the CPU away and goes on.
//!   Any other mode waits, gives way, and goes on everywhere.
//! - **Source**: `compact_trylock_irqsave()`, `compact_unlock_should_abort()`, `compact_should_abort()` (mm/compaction.c, 3.19 and 4.20), `compact_lock_irqsave()` (6.12),
//!   `cond_resched()` in `migrate_pages()` (mm/migrate.c).
//! - **Since/until**: [`AsyncAbort`].
//! - **Abstracted**: how often a lock is held is told by what others did in the last millisecond (contention.rs); when the CPU will be wanted, in CPU time from there,
//!   and whether the task was killed, by the caller between steps. To others a scanner holds its lock for as long as 32 frames take of which each is taken. To wait for a lock takes no time.
//! - **Omitted**: how long a search of the free lists holds the zone's lock (since 5.1), which it does not try but takes.

use rules::AsyncAbort;
use units::{Nanos, Pfn};

use super::control::MigrateMode;
use super::isolate_migrate::CLUSTER_MAX;
use super::run::CompactRun;
use crate::Mm;

/// Frames after which a scanner lets go of its lock (`SWAP_CLUSTER_MAX`).
const LOCKED_FRAMES: u32 = CLUSTER_MAX as u32;

impl CompactRun {
    /// Another task will be entitled to this CPU after so much CPU time (`need_resched()`).
    pub fn cpu_is_wanted_in(&mut self, mm: &Mm, time: Nanos) {
        let gives_up = mm.rules.async_abort == AsyncAbort::CpuWanted && self.is_async();
        self.wanted_at = gives_up.then(|| mm.cpu_ns().saturating_add(time.0));
    }

    /// The task was killed: it gives up.
    pub fn interrupt(&mut self) {
        (self.contended, self.killed) = (true, true);
    }

    /// Whether a scanner gives up where it is.
    pub(super) fn gives_up(&self, mm: &Mm) -> bool {
        self.contended && mm.rules.async_abort == AsyncAbort::CpuWanted
    }

    /// Whether a scanner that comes to a frame gives up there, having used so much CPU time that is not charged yet, in ns.
    #[inline]
    pub(super) fn gives_up_at(&mut self, mm: &Mm, pfn: Pfn, uncharged: u64) -> bool {
        if pfn.0.is_multiple_of(LOCKED_FRAMES) && self.wanted_at.is_some_and(|at| mm.cpu_ns() + uncharged >= at) {
            (self.contended, self.cpu_wanted) = (true, true);
        }
        self.gives_up(mm)
    }

    /// Takes the LRU lock for a frame unless it holds it; whether it has it. `locked` says for which frames it took it last.
    pub(super) fn lock_lru(&mut self, mm: &mut Mm, pfn: Pfn, locked: &mut Option<Pfn>) -> bool {
        if !relocks(pfn, locked) {
            return true;
        }
        let lru = mm.lruvec_of(pfn);
        self.contended |= self.is_async() && !mm.try_lru_lock(lru);
        mm.hold_lru_lock(lru, u64::from(LOCKED_FRAMES) * (mm.costs.compact_scan + mm.costs.compact_isolate));
        !self.gives_up(mm)
    }

    /// The same with the zone's lock.
    pub(super) fn lock_zone(&mut self, mm: &mut Mm, pfn: Pfn, locked: &mut Option<Pfn>) -> bool {
        if !relocks(pfn, locked) {
            return true;
        }
        let zone = self.zone();
        self.contended |= self.is_async() && !mm.try_zone_lock(zone);
        mm.hold_zone_lock(zone, u64::from(LOCKED_FRAMES) * mm.costs.compact_scan_free);
        !self.gives_up(mm)
    }

    fn is_async(&self) -> bool {
        self.control.mode == MigrateMode::Async
    }
}

/// Whether a lock is to be taken for a frame, as it was let go since it was taken last.
fn relocks(pfn: Pfn, locked: &mut Option<Pfn>) -> bool {
    let frames = Pfn(pfn.0 / LOCKED_FRAMES);
    locked.replace(frames) != Some(frames)
}
