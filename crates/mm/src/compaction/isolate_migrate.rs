//! The migrate scanner: takes movable pages off the LRU, from the start of the zone upwards.
//!
//! - **Rule**: pageblock by pageblock, at most 32 pages at a time (`COMPACT_CLUSTER_MAX`). Blocks with a skip hint are
//!   passed over; asynchronous direct compaction scans only blocks of its own migratetype. Free blocks are skipped by
//!   their order, huge pages and other compound pages whole; what is not on the LRU stays. Without `__GFP_FS` only
//!   anonymous pages outside the swap cache are taken; pages that somebody holds are not. Asynchronous direct
//!   compaction wants whole aligned blocks of its order: the first page that stays makes it put back what it took
//!   there and go on behind that block.
//!   Since 5.1 the free lists may show a better block (fast_migrate.rs), and a block is marked when the first page is
//!   taken from it, so that nobody else comes to it; a block that is to be finished is taken as a whole.
//! - **Source**: `isolate_migratepages()`, `isolate_migratepages_block()`, `suitable_migration_source()`,
//!   `too_many_isolated()` (mm/compaction.c), `__isolate_lru_page()` (mm/vmscan.c), 4.20.
//! - **Since/until**: [`AsyncSource`], [`CompoundSkip`], [`LightIsolation`], [`LightLock`], [`rules::DeviceMigration`], [`SpoiltBlock`](rules::SpoiltBlock),
//!   [`CompactionSearch`], [`PageblockRescan`], [`CompactionScanned`], [`CompactionIsolated`].
//! - **Abstracted**: the LRU lock and its contention, so that no two instances race for a block either. What migration would wait for (writeback in full synchronous
//!   mode, the lock of a page that kcompactd wants) is waited for before the page is taken, not after. The dirty pages of
//!   every file system's files can be moved (`->migratepage`), as those of xfs and ext4 can. A pageblock of a zone with
//!   holes whose first and last frames are reserved is taken for a hole. Who finds too many pages isolated waits 100 ms, where until 5.15 the end of
//!   a device's congestion may wake him before.
//! - **Omitted**: movable pages off the LRU (balloon, zsmalloc), `compact_unevictable_allowed=0`.

use rules::{
    AsyncSource, CompactionIsolated, CompactionScanned, CompactionSearch, CompoundSkip, LargeMigration, LightIsolation,
    LightLock, PageblockRescan,
};
use smallvec::SmallVec;
use units::{Gfp, Nanos, Order, PAGEBLOCK_ORDER, Pfn};

use super::control::{Compactor, MigrateMode};
use super::events::{CompactionEvent, Scanner};
use super::run::CompactRun;
use super::scanner::{block_end, block_start};
use super::skip::skip_persists;
use crate::stat::{NodeStat, VmEvent};
use crate::{Env, Frame, Kind, MigrateType, Mm};

/// Pages isolated at a time (`COMPACT_CLUSTER_MAX`).
pub(super) const CLUSTER_MAX: usize = 32;
/// `congestion_wait(BLK_RW_ASYNC, HZ/10)`.
const TOO_MANY_WAIT: Nanos = Nanos::millis(100);

/// Pages taken off the LRU, in the order of their frames.
pub(super) type Cluster = SmallVec<[Pfn; CLUSTER_MAX]>;

/// What a search for pages to migrate came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Isolated {
    /// Pages are in the cluster.
    Some,
    /// None in this block; go on.
    None,
    /// Give up.
    Abort,
    /// This page's lock or writeback must end first.
    Wait(Pfn),
    /// Too much is isolated; come back later.
    Throttle(Nanos),
}

/// One pass over a part of a pageblock.
struct BlockScan {
    /// Next frame.
    at: Pfn,
    /// One past the last.
    end: Pfn,
    /// Frames looked at.
    looked: u64,
    /// Frames that count as scanned.
    scanned: u64,
    /// Pages in the cluster.
    taken: u64,
    /// Where the aligned block of the wanted order ends, if one page that stays spoils it.
    spoils_until: Option<Pfn>,
    /// Must be waited for before the scan can go on.
    wait: Option<Pfn>,
    /// First page taken, even if it was put back.
    first_taken: Option<Pfn>,
    /// For which frames the LRU lock was taken last.
    locked: Option<Pfn>,
}

/// What a frame is to the migrate scanner.
enum Found {
    Take,
    Free(Order),
    Stays(Order),
    Busy,
}

impl CompactRun {
    /// Isolates pages from the first suitable pageblock at or above the migrate scanner (`isolate_migratepages()`).
    pub(super) fn isolate_migratepages(&mut self, mm: &mut Mm, env: &Env) -> Isolated {
        match mm.rules.compaction_search {
            CompactionSearch::Linear => self.isolate_linearly(mm, env),
            CompactionSearch::FreeLists => self.isolate_by_free_lists(mm, env),
        }
    }

    fn isolate_by_free_lists(&mut self, mm: &mut Mm, env: &Env) -> Isolated {
        let mut low = self.fast_find_migrateblock(mm);
        // What the free lists show is not to be skipped.
        let mut shown = low != self.scanners.migrate && self.fast.fails == 0;
        let mut end = block_end(low);
        let mut passed = 0;
        let mut outcome = Isolated::None;
        while end <= self.scanners.free {
            let block = block_start(low);
            if self.may_begin(mm, low, shown) && self.is_in_zone(mm, block) {
                if self.is_suitable_source(mm, block) {
                    let (_, block_end) = self.scanners.clamp_block(block);
                    outcome = self.isolate_migratepages_block(mm, env, &mut low, block_end);
                    self.scanners.migrate = low;
                    break;
                }
                mm.zones[self.zone.index()].advance_cached_migrate_behind(end, self.is_sync());
            }
            passed += 1;
            shown = false;
            low = end;
            self.scanners.migrate = low;
            end = block_end(end);
        }
        mm.charge(passed * mm.costs.compact_scan);
        outcome
    }

    /// Whether a block may be scanned from `low` on: hints count at its beginning only.
    fn may_begin(&self, mm: &Mm, low: Pfn, shown: bool) -> bool {
        !self.begins_block(low) || shown || self.control.ignore_skip_hint || !mm.blocks.skip(low)
    }

    fn isolate_linearly(&mut self, mm: &mut Mm, env: &Env) -> Isolated {
        let mut low = self.scanners.migrate;
        let mut end = block_end(low);
        let limit = self.scanners.migrate_limit();
        let mut passed = 0;
        let mut outcome = Isolated::None;
        while end <= limit {
            if self.is_source(mm, block_start(low)) {
                // Only without the other scanner in its way does it come to the zone's last, incomplete block.
                let (_, block_end) = self.scanners.clamp_block(block_start(low));
                outcome = self.isolate_migratepages_block(mm, env, &mut low, block_end);
                break;
            }
            passed += 1;
            low = end;
            end = block_end(end);
        }
        mm.charge(passed * mm.costs.compact_scan);
        if !matches!(outcome, Isolated::Abort | Isolated::Throttle(_)) {
            self.scanners.advance_migrate(low, end > limit);
        }
        outcome
    }

    /// Whether a pageblock is scanned for pages to migrate.
    #[inline]
    fn is_source(&self, mm: &Mm, block: Pfn) -> bool {
        if !self.control.ignore_skip_hint && mm.blocks.skip(block) {
            return false;
        }
        self.has_source_type(mm, block) && self.is_in_zone(mm, block)
    }

    /// Whether a pageblock is of a type that this compaction takes pages from.
    #[inline]
    fn has_source_type(&self, mm: &Mm, block: Pfn) -> bool {
        let block_type = mm.blocks.migratetype(block);
        match mm.rules.async_source {
            AsyncSource::Movable => self.is_sync() || block_type == MigrateType::Movable,
            AsyncSource::RequestType => !self.control.is_direct_async() || block_type == self.migratetype,
        }
    }

    /// The same, and it is no huge page (`suitable_migration_source()`).
    fn is_suitable_source(&self, mm: &Mm, block: Pfn) -> bool {
        self.has_source_type(mm, block) && !skip_persists(&mm.frames, block.max(self.scanners.start))
    }

    #[inline]
    fn is_in_zone(&self, mm: &Mm, block: Pfn) -> bool {
        mm.blocks.zone_of(block) == self.zone && !self.is_hole(mm, block)
    }

    pub(super) fn is_sync(&self) -> bool {
        self.control.mode != MigrateMode::Async
    }

    /// Whether no frame of a pageblock exists.
    #[inline]
    pub(super) fn is_hole(&self, mm: &Mm, block: Pfn) -> bool {
        let reserved = |pfn: Pfn| mm.frames[pfn].kind() == Kind::Reserved;
        let (first, end) = self.scanners.clamp_block(block);
        self.has_holes && reserved(first) && reserved(Pfn(end.0 - 1))
    }

    /// Isolates up to a cluster from `low` to the end of its pageblock (`isolate_migratepages_block()`).
    fn isolate_migratepages_block(&mut self, mm: &mut Mm, env: &Env, low: &mut Pfn, end: Pfn) -> Isolated {
        if self.too_many_isolated(mm) {
            return if self.is_sync() { Isolated::Throttle(TOO_MANY_WAIT) } else { Isolated::Abort };
        }
        let first = *low;
        if self.finds_mark(mm, first) {
            self.scanned_block(mm, (first, end), (1, 0));
            *low = end;
            mm.zones[self.zone.index()].advance_cached_migrate_behind(end, self.is_sync());
            return Isolated::None;
        }
        let spoils_until = match self.control.order {
            Some(order) if self.leaves_spoilt_blocks(mm) => Some(aligned_end(first, order)),
            _ => None,
        };
        let mut scan = BlockScan {
            at: first,
            end,
            looked: 0,
            scanned: 0,
            taken: 0,
            spoils_until,
            wait: None,
            first_taken: None,
            locked: None,
        };
        self.scan_block(mm, env, &mut scan);
        let isolated = scan.taken;
        *low = scan.at.min(end);
        self.mark_source(mm, first, &scan);
        self.scanned_block(mm, (first, *low), (scan.scanned, scan.taken));
        mm.charge(self.scan_ns(mm, &scan));
        mm.stat.count(VmEvent::CompactIsolated, isolated);
        if self.gives_up(mm) {
            return Isolated::Abort;
        }
        match scan.wait {
            Some(pfn) if isolated == 0 => {
                self.waited = Some(pfn);
                Isolated::Wait(pfn)
            }
            _ if isolated > 0 => Isolated::Some,
            _ => Isolated::None,
        }
    }

    /// Counts and tells what was looked at and what was taken of a block, from its first frame to the one that comes next.
    fn scanned_block(&mut self, mm: &mut Mm, (start, end): (Pfn, Pfn), (nr_scanned, nr_taken): (u64, u64)) {
        self.migrate_scanned += nr_scanned;
        let scanner = Scanner::Migrate;
        mm.trace.emit_compaction(CompactionEvent::Isolate { scanner, start, end, nr_scanned, nr_taken });
    }

    /// Marks a block that was scanned from `first` on, if the rule says so, and lets later runs begin behind it.
    fn mark_source(&self, mm: &mut Mm, first: Pfn, scan: &BlockScan) {
        let (to_end, isolated) = (scan.at >= scan.end, !self.cluster.is_empty());
        if mm.rules.compaction_search == CompactionSearch::Linear {
            if to_end && !isolated && self.sets_skip_hints(mm) {
                mm.mark_migrate_skip(self.zone, first, self.is_sync());
            }
            return;
        }
        let begins = self.begins_block(first);
        let ends = to_end && (!isolated || self.whole_block);
        let marks = match (scan.first_taken, mm.rules.pageblock_rescan) {
            (None, _) => begins && ends,
            (Some(_), PageblockRescan::Failed) => begins && !self.control.ignore_skip_hint,
            // Only if it was the block's first page.
            (Some(taken), _) => taken == block_start(taken) && !self.control.ignore_skip_hint,
        };
        if marks {
            mm.blocks.set_skip(first, true);
        }
        if ends {
            mm.zones[self.zone.index()].advance_cached_migrate_behind(scan.end, self.is_sync());
        }
    }

    pub(super) fn begins_block(&self, pfn: Pfn) -> bool {
        pfn == block_start(pfn) || pfn == self.scanners.start
    }

    /// Whether a block is marked already, as one that the free lists showed is until 6.2.
    fn finds_mark(&self, mm: &Mm, first: Pfn) -> bool {
        let searches = mm.rules.compaction_search == CompactionSearch::FreeLists;
        searches && self.begins_block(first) && !self.control.ignore_skip_hint && mm.blocks.skip(first)
    }

    /// CPU time that a scan has taken and not charged, in ns.
    fn scan_ns(&self, mm: &Mm, scan: &BlockScan) -> u64 {
        scan.looked * mm.costs.compact_scan + self.cluster.len() as u64 * mm.costs.compact_isolate
    }

    fn scan_block(&mut self, mm: &mut Mm, env: &Env, scan: &mut BlockScan) {
        let counts_passed = mm.rules.compaction_scanned == CompactionScanned::WithPassed;
        while scan.at < scan.end {
            if self.gives_up_at(mm, scan.at, self.scan_ns(mm, scan)) {
                return;
            }
            if let Some(until) = scan.spoils_until
                && scan.at >= until
            {
                // A whole aligned block without a page that stays.
                if !self.cluster.is_empty() {
                    return;
                }
                scan.spoils_until = Some(aligned_end(scan.at, self.order()));
            }
            scan.looked += 1;
            scan.scanned += 1;
            let found = self.look_at(mm, scan.at);
            if let (true, Found::Free(order) | Found::Stays(order)) = (counts_passed, &found) {
                scan.scanned += u64::from(order.pages()) - 1;
            }
            match found {
                Found::Free(order) => scan.at = scan.at.offset(order.pages()),
                Found::Take if !self.lock_lru(mm, scan.at, &mut scan.locked) => return,
                Found::Take => {
                    let taken = mm.lru_isolate(scan.at);
                    debug_assert!(taken, "{:?} was on the LRU", scan.at);
                    let pages = mm.frames[scan.at].nr_pages();
                    scan.scanned += u64::from(pages) - 1;
                    scan.taken += u64::from(pages);
                    self.cluster.push(scan.at);
                    scan.first_taken.get_or_insert(scan.at);
                    if mm.rules.compaction_search == CompactionSearch::Linear {
                        self.last_migrated.get_or_insert(scan.at);
                    }
                    scan.at = scan.at.offset(pages);
                    if scan.taken >= CLUSTER_MAX as u64 && !self.whole_block && !self.contended {
                        return;
                    }
                }
                Found::Busy if self.waited != Some(scan.at) => {
                    (scan.looked, scan.scanned) = (scan.looked - 1, scan.scanned - 1);
                    scan.wait = Some(scan.at);
                    return;
                }
                Found::Busy => self.page_stays(mm, env, scan, 1),
                Found::Stays(order) => self.page_stays(mm, env, scan, order.pages()),
            }
        }
    }

    /// A page stays: where whole blocks are wanted, what was taken from this one is put back and the rest passed over.
    fn page_stays(&mut self, mm: &mut Mm, env: &Env, scan: &mut BlockScan, pages: u32) {
        scan.at = scan.at.offset(pages);
        let Some(until) = scan.spoils_until else { return };
        if !self.cluster.is_empty() {
            self.putback_cluster(mm, env);
            scan.taken = 0;
            if mm.rules.compaction_search == CompactionSearch::Linear {
                self.last_migrated = None;
            }
        }
        if scan.at <= until {
            scan.at = until;
            scan.spoils_until = Some(until.offset(self.order().pages()));
        }
    }

    #[inline]
    fn look_at(&self, mm: &Mm, pfn: Pfn) -> Found {
        let frame = &mm.frames[pfn];
        match frame.kind() {
            Kind::Buddy => Found::Free(frame.order()),
            Kind::Anon | Kind::File if self.moves_order(mm, frame.order()) => self.look_at_lru(mm, frame),
            _ => Found::Stays(stepped_over(frame, mm.rules.compound_skip, true)),
        }
    }

    /// Whether folios of an order are moved: smaller ones than are wanted, and than a pageblock (`skip_isolation_on_order()`).
    fn moves_order(&self, mm: &Mm, order: Order) -> bool {
        let wanted = self.control.order.unwrap_or(PAGEBLOCK_ORDER).min(PAGEBLOCK_ORDER);
        order == Order(0) || mm.rules.large_migration == LargeMigration::BelowOrder && order < wanted
    }

    #[inline]
    fn look_at_lru(&self, mm: &Mm, frame: &Frame) -> Found {
        const STAYS: Found = Found::Stays(Order(0));
        let mapping = frame.kind() == Kind::File || frame.has(Frame::SWAPCACHE);
        if !frame.has(Frame::LRU) || (!mapping && frame.has(Frame::PINNED)) {
            return STAYS;
        }
        if mapping && !self.control.gfp.contains(Gfp::FS) {
            return STAYS;
        }
        let must_be_written = mm.must_be_written_to_move(frame);
        if !frame.has_any(Frame::WRITEBACK | Frame::LOCKED) && !must_be_written {
            return Found::Take;
        }
        let takes_writeback = match mm.rules.light_isolation {
            LightIsolation::UnderWriteback => self.control.mode != MigrateMode::Async,
            LightIsolation::NotUnderWriteback => self.control.mode == MigrateMode::Sync,
        };
        let blocks = frame.has(Frame::WRITEBACK) || frame.has(Frame::DIRTY | Frame::LOCKED) || must_be_written;
        if !takes_writeback && blocks {
            return STAYS;
        }
        if !frame.has_any(Frame::WRITEBACK | Frame::LOCKED) {
            return Found::Take;
        }
        // Direct compaction takes a locked page and fails to move it; since 6.5 kcompactd does so too if it is being read.
        let leaves_reads = mm.rules.light_lock == LightLock::LeavesReads && self.control.mode == MigrateMode::SyncLight;
        if self.control.who == Compactor::Direct || leaves_reads && frame.has(Frame::LOCKED) {
            Found::Take
        } else {
            Found::Busy
        }
    }

    /// Puts the isolated pages back on the LRU (`putback_movable_pages()`).
    pub(super) fn putback_cluster(&mut self, mm: &mut Mm, env: &Env) {
        while let Some(pfn) = self.cluster.pop() {
            mm.lru_putback(env, pfn);
        }
    }

    fn order(&self) -> Order {
        self.control.order.unwrap_or(Order(0))
    }

    /// Whether too many of the node's LRU pages are isolated (`too_many_isolated()`).
    fn too_many_isolated(&self, mm: &Mm) -> bool {
        let sum = |items: &[NodeStat]| items.iter().map(|item| mm.stat.node(self.node, *item)).sum::<u64>();
        let isolated = sum(&[NodeStat::IsolatedAnon, NodeStat::IsolatedFile]);
        if isolated == 0 {
            return false;
        }
        let (inactive, active) = (
            sum(&[NodeStat::InactiveFile, NodeStat::InactiveAnon]),
            sum(&[NodeStat::ActiveFile, NodeStat::ActiveAnon]),
        );
        let sixteenth = mm.rules.compaction_isolated == CompactionIsolated::Sixteenth;
        let shift = if sixteenth && self.control.gfp.contains(Gfp::FS) { 3 } else { 0 };
        isolated > ((inactive >> shift) + (active >> shift)) / 2
    }
}

/// Order of what a scanner passes over with a frame that is neither free nor a single page of an LRU list: kernel memory
/// is no compound page unless it is a slab.
#[inline]
pub(super) fn stepped_over(frame: &Frame, rule: CompoundSkip, migrate_scanner: bool) -> Order {
    let compound = match frame.kind() {
        Kind::Anon | Kind::File => rule == CompoundSkip::Compound || migrate_scanner,
        Kind::Slab | Kind::Hugetlb => rule == CompoundSkip::Compound,
        _ => false,
    };
    if compound { frame.order() } else { Order(0) }
}

/// One past the block of `order` that a frame lies in.
#[inline]
fn aligned_end(pfn: Pfn, order: Order) -> Pfn {
    pfn.align_down(order).offset(order.pages())
}
