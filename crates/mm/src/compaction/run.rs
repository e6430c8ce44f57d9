//! One compaction of one zone, in steps.
//!
//! - **Rule**: until finished: isolate up to 32 pages of one pageblock, move them to free pages from the other end of
//!   the zone, and flush this CPU's page lists once the migrate scanner has left the aligned block of the wanted order,
//!   so that the freed pages merge. A failure in asynchronous direct compaction makes it leave that block at once. A
//!   run that restarts after the longest deferral clears the skip hints first. Since 5.1 a run that comes to the block
//!   that it took pages from last takes the rest of it at once, since 6.3 also if a page of it could not be moved: the
//!   block is marked then, and the scanner does not come back. A run ends as soon as its task has captured a block.
//!   While the places of asynchronous and synchronous runs are the same and nothing is found, they stay so.
//! - **Source**: `compact_zone()` (mm/compaction.c, 4.20, 6.1 and 6.12).
//! - **Since/until**: [`SpoiltBlock`], [`PageblockRescan`], [`PageCapture`], [`CompactionSearch`].
//! - **Abstracted**: when its CPU will be wanted, and fatal signals, are told by the caller between steps (contended.rs). The flush drains the CPU's lists of all zones.
//! - **Omitted**: `lru_add_drain()`: what waits in a pagevec is on its list here (reclaim/pagevec.rs).

use rules::{CompactionSearch, PageCapture, PageblockRescan, ProactiveCompaction, SkipReset, SpoiltBlock};
use units::{Nanos, NodeId, PAGEBLOCK_ORDER, Pfn, ZoneId};

use super::control::{CompactControl, Compactor, MigrateMode};
use super::fast_migrate::FastSearch;
use super::isolate_migrate::{Cluster, Isolated};
use super::migrate::Migrated;
use super::scanner::{Scanners, block_start};
use super::targets::Targets;
use super::{CompactResult, CompactionEvent};
use crate::stat::VmEvent;
use crate::{Env, MigrateType, Mm};

/// What a step came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactStep {
    /// There is more to do.
    More,
    /// The lock or the writeback of this page must end first.
    Wait(Pfn),
    /// Too many pages are isolated: sleep that long.
    Throttle(Nanos),
    /// Ended; call [`CompactRun::finish`].
    Done(CompactResult),
}

/// A compaction of one zone under way. Free pages are kept off the lists until [`CompactRun::finish`] is called, which
/// must not be forgotten, also when the run is abandoned.
#[derive(Debug)]
#[must_use = "finish() gives back what is isolated"]
pub struct CompactRun {
    pub(super) zone: ZoneId,
    pub(super) node: NodeId,
    pub(super) control: CompactControl,
    pub(super) migratetype: MigrateType,
    pub(super) scanners: Scanners,
    /// The zone has holes: blocks are checked for being one.
    pub(super) has_holes: bool,
    /// Isolated pages; empty between steps.
    pub(super) cluster: Cluster,
    /// Pages to move in this round: how many targets are worth looking for.
    pub(super) to_migrate: usize,
    /// Free pages held as targets.
    pub(super) targets: Targets,
    /// Searches of the free lists.
    pub(super) fast: FastSearch,
    /// Lowest page isolated since this CPU's lists were flushed; since 5.1 where the scan that isolated last began, since
    /// 6.3 its pageblock.
    pub(super) last_migrated: Option<Pfn>,
    /// The pageblock at hand is taken as a whole (`finish_pageblock`, `rescan` until 6.2).
    pub(super) whole_block: bool,
    /// Its rest is to be taken before anything else.
    rescans_now: bool,
    /// The places of both kinds of runs are kept the same as long as nothing is found.
    keeps_places_same: bool,
    /// The page last waited for.
    pub(super) waited: Option<Pfn>,
    pub(super) finishing_block: bool,
    pub(super) contended: bool,
    /// Its task was killed.
    pub(super) killed: bool,
    /// CPU time, as charged, from which on its CPU is wanted by others and it gives up, in ns.
    pub(super) wanted_at: Option<u64>,
    /// It has given up for that.
    pub(super) cpu_wanted: bool,
    pub(super) migrate_scanned: u64,
    pub(super) free_scanned: u64,
    result: Option<CompactResult>,
}

impl CompactRun {
    /// Starts compacting a zone; `Err` with `Success` or `Skipped` if there is no point.
    pub fn start(mm: &mut Mm, _env: &Env, zone: ZoneId, control: CompactControl) -> Result<CompactRun, CompactResult> {
        if let Some(order) = control.order {
            match mm.compaction_suitable(zone, order, control.alloc_flags, control.highest) {
                CompactResult::Continue => {}
                CompactResult::NotSuitableZone => return Err(CompactResult::Skipped),
                other => return Err(other),
            }
            if control.who != Compactor::Kswapd && mm.zones[zone.index()].compact.restarting(order) {
                mm.restart_compaction(zone);
            }
        } else {
            mm.everything_is_suitable(zone);
        }
        let sync = control.mode != MigrateMode::Async;
        let state = &mut mm.zones[zone.index()];
        let scanners = Scanners::begin(state, control.whole_zone, sync, &mm.rules);
        let (node, has_holes) = (state.node, state.present < state.spanned);
        let searches = mm.rules.compaction_search == CompactionSearch::FreeLists;
        let keeps_places_same = searches && !sync && state.compact.migrate_pfn[0] == state.compact.migrate_pfn[1];
        let (migrate_pfn, free_pfn) = (scanners.migrate, scanners.free);
        mm.trace.emit_compaction(CompactionEvent::Begin { zone, migrate_pfn, free_pfn, sync });
        Ok(CompactRun {
            zone,
            node,
            control,
            migratetype: mm.gfp_migratetype(control.gfp),
            scanners,
            has_holes,
            cluster: Cluster::new(),
            to_migrate: 0,
            targets: Targets::default(),
            fast: FastSearch::new(control.order),
            last_migrated: None,
            whole_block: false,
            rescans_now: false,
            keeps_places_same,
            waited: None,
            finishing_block: false,
            contended: false,
            killed: false,
            wanted_at: None,
            cpu_wanted: false,
            migrate_scanned: 0,
            free_scanned: 0,
            result: None,
        })
    }

    /// Zone that is compacted.
    pub fn zone(&self) -> ZoneId {
        self.zone
    }

    /// Scans up to the end of one suitable pageblock and moves at most one cluster of 32 pages.
    pub fn step(&mut self, mm: &mut Mm, env: &Env) -> CompactStep {
        if let Some(result) = self.result {
            return CompactStep::Done(result);
        }
        if !std::mem::take(&mut self.rescans_now) {
            let verdict = self.compact_finished(mm);
            if verdict != CompactResult::Continue {
                return self.end(verdict);
            }
            self.whole_block = self.comes_back(mm);
        }
        let began = self.scanners.migrate;
        match self.isolate_migratepages(mm, env) {
            Isolated::Wait(pfn) => return CompactStep::Wait(pfn),
            Isolated::Throttle(time) => return CompactStep::Throttle(time),
            Isolated::Abort => {
                self.putback_cluster(mm, env);
                return self.end(CompactResult::Contended);
            }
            Isolated::None => self.keep_places_same(mm),
            Isolated::Some => {
                self.note_migrated(mm, began);
                match self.migrate_cluster(mm, env) {
                    Migrated::All => {}
                    Migrated::NoTarget if !self.scanners.met() => return self.end(CompactResult::Contended),
                    Migrated::NoTarget | Migrated::SomeFailed => self.after_failure(mm),
                }
                if self.rescans_now {
                    return CompactStep::More;
                }
                if mm.rules.page_capture == PageCapture::BeforeFlush && self.has_captured(mm) {
                    return self.end(CompactResult::Success);
                }
            }
        }
        self.flush_left_block(mm, env);
        if mm.rules.page_capture == PageCapture::AfterFlush && self.has_captured(mm) {
            return self.end(CompactResult::Success);
        }
        CompactStep::More
    }

    /// Whether the scanner is in the pageblock that it took pages from last.
    fn comes_back(&self, mm: &Mm) -> bool {
        // A place that is not known is frame 0 to the kernel.
        let last = self.last_migrated.unwrap_or(Pfn(0));
        mm.rules.pageblock_rescan != PageblockRescan::Never && block_start(last) == block_start(self.scanners.migrate)
    }

    fn keep_places_same(&self, mm: &mut Mm) {
        if self.keeps_places_same {
            let places = &mut mm.zones[self.zone.index()].compact.migrate_pfn;
            places[1] = places[0];
        }
    }

    /// Pages were taken in a scan that began at `began`.
    fn note_migrated(&mut self, mm: &Mm, began: Pfn) {
        self.keeps_places_same = false;
        match mm.rules.pageblock_rescan {
            PageblockRescan::Never => {}
            PageblockRescan::Revisited => self.last_migrated = Some(began),
            PageblockRescan::Failed => {
                let block = block_start(Pfn(self.scanners.migrate.0 - 1));
                self.last_migrated = Some(block.max(self.scanners.start));
            }
        }
    }

    fn after_failure(&mut self, mm: &Mm) {
        if mm.rules.pageblock_rescan != PageblockRescan::Failed {
            return self.leave_spoilt_block(mm);
        }
        let within = self.scanners.migrate != block_start(self.scanners.migrate);
        let light = self.control.mode < MigrateMode::Sync;
        if within && light && !self.control.ignore_skip_hint && !self.whole_block {
            (self.whole_block, self.rescans_now) = (true, true);
            // Even flushed, the pageblock will not be free.
            if self.control.order == Some(PAGEBLOCK_ORDER) {
                self.last_migrated = None;
            }
        }
    }

    /// Whether what is scanned counts as kcompactd's.
    fn counts_for_daemon(&self, mm: &Mm) -> bool {
        match self.control.who {
            Compactor::Daemon => true,
            Compactor::Proactive => mm.rules.proactive_compaction == ProactiveCompaction::ScoreCounted,
            Compactor::Direct | Compactor::Kswapd | Compactor::Admin => false,
        }
    }

    fn has_captured(&self, mm: &Mm) -> bool {
        mm.zones[self.zone.index()].capture.is_some_and(|capture| capture.page.is_some())
    }

    /// Whether an aligned block is left at the first page that stays.
    pub(super) fn leaves_spoilt_blocks(&self, mm: &Mm) -> bool {
        self.control.is_direct_async() && mm.rules.spoilt_block == SpoiltBlock::Leave
    }

    /// Whether blocks without result are marked; who ignored the hints did not set them either until 4.14.
    pub(super) fn sets_skip_hints(&self, mm: &Mm) -> bool {
        !self.control.ignore_skip_hint || mm.rules.skip_reset != SkipReset::All
    }

    /// A page of an aligned block stays, so asynchronous direct compaction leaves the block.
    fn leave_spoilt_block(&mut self, mm: &Mm) {
        if let (true, Some(order)) = (self.leaves_spoilt_blocks(mm), self.control.order) {
            let last = Pfn(self.scanners.migrate.0 - 1);
            self.scanners.migrate = last.align_down(order).offset(order.pages());
            self.last_migrated = None;
        }
    }

    /// Once the migrate scanner has left the aligned block that pages were moved from, they should merge.
    fn flush_left_block(&mut self, mm: &mut Mm, env: &Env) {
        let (Some(order), Some(from)) = (self.control.order, self.last_migrated) else { return };
        if order.0 > 0 && from < self.scanners.migrate.align_down(order) {
            mm.drain_pcp(env.cpu);
            self.last_migrated = None;
        }
    }

    fn end(&mut self, result: CompactResult) -> CompactStep {
        self.result = Some(result);
        CompactStep::Done(result)
    }

    /// Gives back what is isolated, remembers where to go on, counts. A run that has not ended counts as contended.
    pub fn finish(mut self, mm: &mut Mm, env: &Env) -> CompactResult {
        let result = self.result.unwrap_or(CompactResult::Contended);
        self.putback_cluster(mm, env);
        self.release_targets(mm, env);
        mm.stat.count(VmEvent::CompactMigrateScanned, self.migrate_scanned);
        mm.stat.count(VmEvent::CompactFreeScanned, self.free_scanned);
        if self.counts_for_daemon(mm) {
            mm.stat.count(VmEvent::CompactDaemonMigrateScanned, self.migrate_scanned);
            mm.stat.count(VmEvent::CompactDaemonFreeScanned, self.free_scanned);
        }
        mm.trace.emit_compaction(CompactionEvent::End {
            zone: self.zone,
            migrate_pfn: self.scanners.migrate,
            free_pfn: self.scanners.free,
            sync: self.control.mode != MigrateMode::Async,
            status: result,
        });
        result
    }
}
