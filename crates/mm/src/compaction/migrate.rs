//! Moving the isolated pages to the free pages.
//!
//! - **Rule**: page by page, or folio by folio, a free block is taken, the owner's page table entry or page-cache slot pointed at it, and
//!   the old page freed. A page under writeback fails at once; a locked or pinned one is tried ten times. When there
//!   is no free page left, the rest is not tried. What failed goes back to the LRU. Of a device's own pages those that
//!   are dirty may have to stay, and the others to give up their buffer heads ([`DeviceMigration`]).
//! - **Source**: `migrate_pages()`, `unmap_and_move()`, `__unmap_and_move()`, `fallback_migrate_page()` (mm/migrate.c, 4.20); `migrate_pages_batch()`,
//!   `compaction_alloc()` (6.12).
//! - **Since/until**: [`MigrateYoung`], [`DeviceMigration`], [`FailedMigrations`]; asynchronous mode tries three times since 6.3.
//! - **Abstracted**: nothing changes between the ten tries, which happen at one instant; only their cost is charged.
//!   Faults that meet a migration entry do not wait.
//!   Where no free block is as large as a folio, that is split, and its pages come after the others ([`LargeMigration`](rules::LargeMigration)).
//! - **Omitted**: huge pages are never isolated here; device-private memory; that full synchronous mode writes a device's dirty
//!   pages before 5.0.

use rules::{DeviceMigration, FailedMigrations, MigrateYoung};
use units::{FileId, Order, Pfn};

use super::CompactionEvent;
use super::run::CompactRun;
use crate::stat::VmEvent;
use crate::{Env, Frame, Kind, Mm};

/// Tries of a page that is locked or held.
const PASSES: u64 = 10;

/// What became of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Migrated {
    /// All were moved.
    All,
    /// Some stayed.
    SomeFailed,
    /// The free pages ran out (`-ENOMEM`).
    NoTarget,
}

/// Why a page cannot be moved.
enum Fails {
    /// `-EBUSY`.
    AtOnce,
    /// `-EAGAIN`.
    AfterRetries,
}

fn fails(mm: &Mm, pfn: Pfn) -> Option<Fails> {
    let frame = &mm.frames[pfn];
    if frame.has(Frame::LOCKED) {
        Some(Fails::AfterRetries)
    } else if frame.has(Frame::WRITEBACK) || mm.must_be_written_to_move(frame) {
        Some(Fails::AtOnce)
    } else {
        frame.has(Frame::PINNED).then_some(Fails::AfterRetries)
    }
}

impl CompactRun {
    /// Moves the cluster, highest frame first as the kernel's list has them (`migrate_pages()`).
    pub(super) fn migrate_cluster(&mut self, mm: &mut Mm, env: &Env) -> Migrated {
        let all: u64 = self.cluster.iter().map(|pfn| u64::from(mm.frames[*pfn].nr_pages())).sum();
        let (mut moved, mut failed, mut at_once) = (0, 0, 0);
        let mut no_target = false;
        self.to_migrate = all as usize;
        while let Some(&pfn) = self.cluster.last() {
            let (order, pages) = (mm.frames[pfn].order(), u64::from(mm.frames[pfn].nr_pages()));
            let Some(target) = self.take_target(mm, order) else {
                if order > Order(0) && mm.split_movable(pfn) {
                    self.cluster.pop();
                    self.cluster.insert_many(0, (0..order.pages()).map(|n| pfn.offset(n)));
                    continue;
                }
                failed += pages;
                no_target = true;
                break;
            };
            self.cluster.pop();
            if mm.frames[pfn].has(Frame::PINNED) {
                mm.release_buffer(env, pfn);
            }
            if let Some(why) = fails(mm, pfn) {
                let permanent = matches!(why, Fails::AtOnce);
                mm.charge(if permanent { 1 } else { PASSES } * mm.costs.migrate_fail);
                at_once += if permanent { pages } else { 0 };
                self.return_target(mm, target);
                mm.lru_putback(env, pfn);
                failed += pages;
            } else {
                move_page(mm, env, pfn, target);
                mm.charge(mm.costs.migrate_page + pages * mm.costs.copy_page);
                moved += pages;
            }
        }
        mm.trace.emit_compaction(CompactionEvent::Migratepages { nr_migrated: moved, nr_failed: all - moved });
        self.putback_cluster(mm, env);
        mm.stat.count(VmEvent::PgmigrateSuccess, moved);
        let counted = if mm.rules.failed_migrations == FailedMigrations::All { failed } else { at_once };
        mm.stat.count(VmEvent::PgmigrateFail, counted);
        match (no_target, failed) {
            (true, _) => Migrated::NoTarget,
            (false, 0) => Migrated::All,
            (false, _) => Migrated::SomeFailed,
        }
    }
}

impl Mm {
    /// Makes an isolated folio for which there is no free block single pages, if it can be split.
    fn split_movable(&mut self, pfn: Pfn) -> bool {
        self.frames[pfn].kind() == Kind::File && self.split_folio(pfn)
    }

    /// Whether a page is of a block device's own cache that migrates by the fallback.
    #[inline]
    fn loses_buffers_to_move(&self, frame: &Frame) -> bool {
        self.rules.device_migration == DeviceMigration::CleanWithoutBuffers
            && frame.kind() == Kind::File
            && self.bdev_gfp(FileId(self.pagecache.trees.home(frame.place).0)).is_some()
    }

    /// Whether a page cannot be moved before it is written.
    #[inline]
    pub(crate) fn must_be_written_to_move(&self, frame: &Frame) -> bool {
        frame.has(Frame::DIRTY) && self.loses_buffers_to_move(frame)
    }
}

/// Moves one isolated page and frees the old frame.
fn move_page(mm: &mut Mm, env: &Env, old: Pfn, new: Pfn) {
    debug_assert!(mm.zone_of(old) == mm.zone_of(new));
    let anon = mm.frames[old].kind() == Kind::Anon;
    if anon {
        mm.migrate_anon(old, new);
    } else {
        if mm.loses_buffers_to_move(&mm.frames[old]) {
            mm.free_buffers(env, old);
        }
        mm.pagecache_replace(old, new);
    }
    if mm.rules.migrate_young == MigrateYoung::Forgotten {
        mm.frames[new].clear(Frame::YOUNG);
    }
    mm.memcg_migrate(old, new);
    // The isolation that was counted for the old page is now the new one's.
    let order = mm.frames[new].order();
    mm.frames[old].set_kind(Kind::Held, order);
    mm.frames[new].set(Frame::ISOLATED);
    mm.lru_putback(env, new);
    mm.free_pages(env, old, order);
}
