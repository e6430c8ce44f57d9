//! Page cache that page tables map: shared mappings of files.
//!
//! Rule: a fault on a page that is not cached reads a window around it, unless the file is missed much more often
//! than it is hit; a fault on a cached page starts the next window at a mark. A read fault first maps what is ready of the
//! 16 pages around it. A mapping that is said to be read at random (`VM_RAND_READ`) reads the missing page alone. A store to a clean page makes it dirty, and faults again after the page was written. A mapping's
//! accessed bit counts as an access when the page is unmapped.
//! Source: `filemap_fault()`, `do_sync_mmap_readahead()`, `do_async_mmap_readahead()`, `filemap_map_pages()`
//! (mm/filemap.c), `do_fault_around()`, `do_shared_fault()`, `zap_present_folio_ptes()` (mm/memory.c); 6.12.
//! Since/until: [`FaultAroundHits`], [`rules::FaultAround`], [`rules::FaultGfp`].
//! Abstracted: a mapping has a readahead state of its own, which begins as that of the file descriptor, where Linux has one for both; all page
//! tables that map a page share one accessed bit.
//! Omitted: private mappings, other `MADV_*` of files, mtime of a store, `nr_mapped` of tmpfs.

use rules::FaultAroundHits;
use units::{FileId, Pfn, SpaceId};

use super::readahead::Window;
use super::{Readahead, Slot as CacheSlot};
use crate::anon::{Slot, VmaKind};
use crate::stat::NodeStat;
use crate::vfs::Need;
use crate::{Env, Frame, Kind, Mm};

/// Pages that a read fault maps at once (`fault_around_bytes`: 64 KiB).
pub(crate) const FAULT_AROUND_PAGES: u32 = 16;
/// Misses in a row, hits taken off, at which reading around ends (`MMAP_LOTSAMISS`).
const LOTS_OF_MISSES: u32 = 100;
/// Misses are counted up to here.
const MISSES_MAX: u32 = 10 * LOTS_OF_MISSES;

/// A file that a space maps (`i_mmap`).
#[derive(Clone, Debug)]
pub(crate) struct FileMap {
    file: FileId,
    space: SpaceId,
    /// Virtual page of the file's page 0.
    base: u32,
    ra: Readahead,
    /// Pages missed, less pages hit (`mmap_miss`).
    pub(super) misses: u32,
    /// It is read at random (`VM_RAND_READ`): nothing is read around or ahead.
    random: bool,
}

/// Why a page of a mapped file is not there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultStop {
    /// Something is missing; provide it and come again.
    Need(Need),
    /// The page is being read.
    Wait(Pfn),
    /// The page lies behind the end of the file.
    BeyondEnd,
}

impl Mm {
    /// Enters a mapping of a file, whose page 0 would be at `base` and which was opened so as `ra` says.
    pub(crate) fn file_map(&mut self, file: FileId, space: SpaceId, base: u32, ra: Readahead) {
        let map = FileMap { file, space, base, ra, misses: 0, random: false };
        self.pagecache.maps.push(map);
    }

    /// Says that what a space maps at a page is read at random (`MADV_RANDOM`), if that is a file.
    pub fn madvise_random(&mut self, space: SpaceId, vpn: u32) {
        let vma = self.spaces[space].vmas.iter().find(|vma| (vma.start..vma.end).contains(&vpn));
        if let Some(VmaKind::File { file, base }) = vma.map(|vma| vma.kind) {
            let at = self.map_at(space, file, base);
            self.pagecache.maps[at].random = true;
        }
    }

    /// Forgets the mappings of a space that no area of it has any more.
    pub(crate) fn file_unmap_unused(&mut self, space: SpaceId) {
        let vmas = &self.spaces[space].vmas;
        let used = |map: &FileMap| vmas.iter().any(|vma| vma.kind == VmaKind::File { file: map.file, base: map.base });
        self.pagecache.maps.retain(|map| map.space != space || used(map));
    }

    fn map_at(&self, space: SpaceId, file: FileId, base: u32) -> usize {
        let wanted = |map: &FileMap| (map.space, map.file, map.base) == (space, file, base);
        self.pagecache.maps.iter().position(wanted).expect("an area of a file is entered")
    }

    /// The cached, read page `index` of a mapped file (`filemap_fault()`). `hand` is as for [`Mm::read_page`].
    pub(crate) fn fault_file_page(
        &mut self,
        env: &Env,
        (space, file, base): (SpaceId, FileId, u32),
        index: u32,
        hand: &mut Option<Pfn>,
    ) -> Result<Pfn, FaultStop> {
        if index >= self.inode_size_pages(file) {
            return Err(FaultStop::BeyondEnd);
        }
        let at = self.map_at(space, file, base);
        let mut map = self.pagecache.maps[at].clone();
        let page = self.fault_with(env, &mut map, index, hand);
        self.pagecache.maps[at] = map;
        page
    }

    fn fault_with(
        &mut self,
        env: &Env,
        map: &mut FileMap,
        index: u32,
        hand: &mut Option<Pfn>,
    ) -> Result<Pfn, FaultStop> {
        loop {
            self.run_batch(env, map.file, &mut map.ra, hand).map_err(FaultStop::Need)?;
            self.charge(self.costs.cache_lookup);
            let CacheSlot::Page(pfn) = self.pagecache_get(map.file, index) else {
                self.fault_miss(env, map, index, hand).map_err(FaultStop::Need)?;
                continue;
            };
            if map.ra.tried != Some(index) {
                map.ra.tried = Some(index);
                map.misses = map.misses.saturating_sub(1);
                let pages = map.ra.window_pages();
                let follows = !map.random && self.frames[pfn].has(Frame::READAHEAD);
                if follows && self.read_mark(env, pfn, (index, pages), &mut map.ra) {
                    continue;
                }
            }
            if !self.frames[pfn].has(Frame::UPTODATE) {
                if !self.frames[pfn].has(Frame::LOCKED) {
                    self.read_again(env, pfn);
                }
                if self.frames[pfn].has(Frame::LOCKED) {
                    self.frames[pfn].set(Frame::WAITERS);
                    return Err(FaultStop::Wait(pfn));
                }
            }
            map.ra.tried = None;
            return Ok(pfn);
        }
    }

    /// A mapped page is missing: a window around it first, and the page alone if that did not bring it.
    fn fault_miss(&mut self, env: &Env, map: &mut FileMap, index: u32, hand: &mut Option<Pfn>) -> Result<(), Need> {
        if map.ra.tried == Some(index) {
            return self.read_alone(env, map.file, index, self.fault_gfp(map.file), hand);
        }
        map.ra.tried = Some(index);
        self.count_major_fault(env);
        if map.random {
            return Ok(());
        }
        map.misses = (map.misses + 1).min(MISSES_MAX);
        if map.misses <= LOTS_OF_MISSES {
            let window: Window = map.ra.around(self.window_rules(env), index);
            self.start_batch(map.file, &mut map.ra, window);
        }
        Ok(())
    }

    /// Whether a window of this mapping has pages that are still to be allocated.
    pub(crate) fn reads_ahead(&self, (space, file, base): (SpaceId, FileId, u32)) -> bool {
        self.pagecache.maps[self.map_at(space, file, base)].ra.batch.is_some()
    }

    /// Maps page `index` of a file at `vpn` and its neighbours that are ready, as far as `within` goes; says whether the
    /// page was one of them (`do_fault_around()`).
    pub(crate) fn fault_around(
        &mut self,
        (space, file, base): (SpaceId, FileId, u32),
        leaf: u32,
        vpn: u32,
        within: std::ops::Range<u32>,
    ) -> bool {
        let from = (vpn & !(FAULT_AROUND_PAGES - 1)).max(within.start);
        let to = (from + FAULT_AROUND_PAGES).min(within.end).min(base + self.inode_size_pages(file));
        let (mut hits, mut found) = (0, false);
        for at in from..to {
            let CacheSlot::Page(pfn) = self.pagecache_get(file, at - base) else { continue };
            let frame = &self.frames[pfn];
            if !frame.has(Frame::UPTODATE) || frame.has_any(Frame::LOCKED | Frame::READAHEAD) {
                continue;
            }
            let maps = self.spaces.leaves.get(leaf, at) == Slot::None;
            hits += u32::from(match self.rules.fault_around_hits {
                FaultAroundHits::Mapped => maps,
                FaultAroundHits::Met => true,
                FaultAroundHits::NotEvicted => !frame.has(Frame::WORKINGSET),
            });
            if maps {
                self.map_file_page(space, leaf, at, pfn);
                found |= at == vpn;
            }
        }
        let map = self.map_at(space, file, base);
        let map = &mut self.pagecache.maps[map];
        map.misses = map.misses.saturating_sub(hits);
        found
    }

    /// Enters a cached page in a page table of a space; the entry names the folio that holds it.
    pub(crate) fn map_file_page(&mut self, space: SpaceId, leaf: u32, vpn: u32, pfn: Pfn) {
        debug_assert!(self.frames[pfn].kind() == Kind::File);
        let first = self.mappings_of_page(pfn, self.index_at(pfn, (space, vpn))).is_empty();
        self.spaces.leaves.set(leaf, vpn, Slot::Page(pfn));
        self.frames[pfn].set(Frame::MAPPED | Frame::YOUNG);
        self.stat.node_add(self.node_of(pfn), NodeStat::FileMapped, i64::from(first));
        self.charge(self.costs.map_page);
    }

    /// A page table entry does not map a page of this folio any more.
    pub(crate) fn file_page_unmapped(&mut self, env: &Env, pfn: Pfn, entry: (SpaceId, u32)) {
        if self.frames[pfn].take(Frame::YOUNG) {
            self.mark_page_accessed(env, pfn);
        }
        if !self.mappings_of_page(pfn, self.index_at(pfn, entry)).is_empty() {
            return;
        }
        self.stat.node_add(self.node_of(pfn), NodeStat::FileMapped, -1);
        if self.mappings_of(pfn).is_empty() {
            self.frames[pfn].clear(Frame::MAPPED);
        }
    }

    /// Which page of its file an entry maps that names a folio.
    fn index_at(&self, pfn: Pfn, (space, vpn): (SpaceId, u32)) -> u32 {
        let ((file, first), pages) = (self.file_home(pfn), self.folio_indices(pfn));
        if pages.len() == 1 {
            return first;
        }
        let maps = self.pagecache.maps.iter().filter(|map| (map.space, map.file) == (space, file));
        let mut indices = maps.filter_map(|map| vpn.checked_sub(map.base)).filter(|index| pages.contains(index));
        indices.next().expect("what names a folio maps one of its pages")
    }

    /// Where page tables map a page that a folio holds: space and virtual page.
    fn mappings_of_page(&self, pfn: Pfn, index: u32) -> Vec<(SpaceId, u32)> {
        if !self.frames[pfn].has(Frame::MAPPED) {
            return Vec::new();
        }
        let (file, _) = self.file_home(pfn);
        let maps = self.pagecache.maps.iter().filter(|map| map.file == file);
        let places = maps.filter_map(|map| Some((map.space, map.base.checked_add(index)?)));
        places.filter(|(space, vpn)| self.slot_of(*space, *vpn) == Slot::Page(pfn)).collect()
    }

    /// Where page tables map the pages of a folio.
    pub(crate) fn mappings_of(&self, pfn: Pfn) -> Vec<(SpaceId, u32)> {
        self.folio_indices(pfn).flat_map(|index| self.mappings_of_page(pfn, index)).collect()
    }

    /// Takes a folio out of all page tables (`try_to_unmap()`).
    pub(crate) fn unmap_file_page(&mut self, pfn: Pfn) {
        for index in self.folio_indices(pfn) {
            let entries = self.mappings_of_page(pfn, index);
            self.stat.node_add(self.node_of(pfn), NodeStat::FileMapped, -i64::from(!entries.is_empty()));
            for (space, vpn) in entries {
                self.replace_slot(space, vpn, Slot::Page(pfn), Slot::None);
                self.charge(self.costs.unmap_page);
            }
        }
        self.frames[pfn].clear(Frame::YOUNG | Frame::MAPPED);
    }

    /// Migration: page tables that map `old` map `new` instead; `old` still has its place in its file.
    pub(crate) fn move_file_mappings(&mut self, old: Pfn, new: Pfn) {
        for index in self.folio_indices(old) {
            let entries = self.mappings_of_page(old, index);
            let mapped = i64::from(!entries.is_empty());
            self.stat.node_add(self.node_of(old), NodeStat::FileMapped, -mapped);
            self.stat.node_add(self.node_of(new), NodeStat::FileMapped, mapped);
            for (space, vpn) in entries {
                self.replace_slot(space, vpn, Slot::Page(old), Slot::Page(new));
            }
        }
    }
}
