//! Areas of an address space: mapping, unmapping, advice.
//!
//! Rule: a new mapping takes the lowest gap that fits; neighbours with equal properties merge, an operation on a
//! part splits the area at its ends. A huge page is only for a 2 MiB region that lies whole inside one area.
//! Source: `do_mmap()`, `vma_merge()`, `__split_vma()`, `do_munmap()` (mm/mmap.c), `madvise_behavior()` (mm/madvise.c),
//! `hugepage_madvise()` (mm/khugepaged.c); 4.20.
//! Abstracted: lowest gap where the kernel takes the highest; an alignment is the caller's wish (programs
//! over-allocate and trim).
//! Omitted: private file mappings, protections, the automatic 2 MiB alignment of large
//! mappings since 6.7 (ask for it by `align`).

use std::ops::Range;

use smallvec::SmallVec;
use units::{FileId, SpaceId};

use super::swap_readahead::AddressReadahead;
use super::{REGION_PAGES, Space};
use crate::pagecache::Readahead;
use crate::{Env, Mm};

/// What an area maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VmaKind {
    /// Private anonymous memory.
    Anon,
    /// A file, shared.
    File {
        /// The file.
        file: FileId,
        /// Virtual page of the file's page 0.
        base: u32,
    },
}

/// What `madvise()` said of huge pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ThpAdvice {
    /// Nothing.
    #[default]
    None,
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
}

/// Advice that `madvise()` takes here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// `MADV_HUGEPAGE`.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NoHuge,
    /// `MADV_DONTNEED`: contents are dropped, the area stays.
    DontNeed,
}

/// One area: pages `start .. end` of a space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vma {
    /// First page.
    pub start: u32,
    /// One past the last page.
    pub end: u32,
    /// What it maps.
    pub kind: VmaKind,
    /// What was said of huge pages.
    pub thp: ThpAdvice,
    /// What it remembers of reading from swap.
    pub readahead: AddressReadahead,
}

impl Vma {
    /// Whether the 2 MiB around a page lie inside.
    #[inline]
    pub(super) fn holds_region(&self, vpn: u32) -> bool {
        let base = vpn & !(REGION_PAGES - 1);
        base >= self.start && base.checked_add(REGION_PAGES).is_some_and(|end| end <= self.end)
    }

    fn continues(&self, before: &Vma) -> bool {
        before.end == self.start && before.kind == self.kind && before.thp == self.thp
    }
}

impl Space {
    /// The area that holds a page, to change it.
    pub(super) fn find_mut(&mut self, vpn: u32) -> Option<&mut Vma> {
        let at = self.vmas.partition_point(|v| v.end <= vpn);
        self.vmas.get_mut(at).filter(|v| v.start <= vpn)
    }

    /// The area that holds a page.
    pub(super) fn find(&self, vpn: u32) -> Option<Vma> {
        let at = self.vmas.partition_point(|v| v.end <= vpn);
        self.vmas.get(at).copied().filter(|v| v.start <= vpn)
    }

    /// The area around a mapped page.
    pub(crate) fn area(&self, vpn: u32) -> Range<u32> {
        let vma = self.find(vpn).expect("a mapped page lies in an area");
        vma.start..vma.end
    }

    /// The areas, or parts of them, in the 2 MiB region that begins at a page; those of anonymous memory only if `anon`.
    pub(crate) fn areas_in_region(&self, base: u32, anon: bool) -> SmallVec<[Range<u32>; 4]> {
        let end = base.saturating_add(REGION_PAGES);
        let areas = self.vmas[self.vmas.partition_point(|v| v.end <= base)..].iter().take_while(|v| v.start < end);
        areas.filter(|v| anon || v.kind != VmaKind::Anon).map(|v| v.start.max(base)..v.end.min(end)).collect()
    }

    /// Start of the lowest gap of `pages` pages at a multiple of `align`; the lowest 2 MiB stay free.
    fn lowest_gap(&self, pages: u32, align: u32) -> u32 {
        let mut at = REGION_PAGES.next_multiple_of(align);
        for vma in &self.vmas {
            if u64::from(at) + u64::from(pages) <= u64::from(vma.start) {
                break;
            }
            at = at.max(vma.end.next_multiple_of(align));
        }
        assert!(u64::from(at) + u64::from(pages) < u64::from(u32::MAX), "an address space of 16 TiB is full");
        at
    }

    /// Makes `vpn` the start of an area if it lies inside one.
    fn split_at(&mut self, vpn: u32) {
        let at = self.vmas.partition_point(|v| v.end <= vpn);
        if let Some(vma) = self.vmas.get_mut(at)
            && vma.start < vpn
        {
            let upper = Vma { start: vpn, ..*vma };
            vma.end = vpn;
            self.vmas.insert(at + 1, upper);
        }
    }

    /// Merges neighbours that differ in nothing.
    fn merge(&mut self) {
        self.vmas.dedup_by(|later, kept| {
            let joined = later.continues(kept);
            if joined {
                kept.end = later.end;
            }
            joined
        });
    }

    /// The areas inside a range, which starts and ends at area boundaries or in gaps.
    fn inside(&self, start: u32, end: u32) -> std::ops::Range<usize> {
        self.vmas.partition_point(|v| v.end <= start)..self.vmas.partition_point(|v| v.start < end)
    }
}

impl Mm {
    /// Maps private anonymous memory: `pages` pages at a multiple of `align` pages; returns the first page.
    pub fn mmap_anon(&mut self, space: SpaceId, pages: u32, align: u32) -> u32 {
        self.mmap(space, pages, align, |_| VmaKind::Anon)
    }

    /// Maps the first `pages` pages of a file, shared, which stays open meanwhile and is read ahead as `ra` says; returns the
    /// first page.
    pub fn mmap_file(&mut self, space: SpaceId, file: FileId, pages: u32, ra: Readahead) -> u32 {
        let start = self.mmap(space, pages, 1, |base| VmaKind::File { file, base });
        self.file_map(file, space, start, ra);
        start
    }

    fn mmap(&mut self, space: SpaceId, pages: u32, align: u32, kind: impl FnOnce(u32) -> VmaKind) -> u32 {
        assert!(pages > 0 && align > 0, "a mapping of {pages} pages aligned to {align}");
        let owner = &mut self.spaces[space];
        assert!(owner.live);
        let start = owner.lowest_gap(pages, align);
        let vma = Vma {
            start,
            end: start + pages,
            kind: kind(start),
            thp: ThpAdvice::None,
            readahead: AddressReadahead::default(),
        };
        let at = owner.vmas.partition_point(|v| v.start < start);
        owner.vmas.insert(at, vma);
        owner.merge();
        owner.tables.grow(start + pages);
        self.khugepaged_enter_area(space, start);
        start
    }

    /// Unmaps whatever is mapped in a range: frees pages, swap slots, and page tables that serve no area any more.
    pub fn munmap(&mut self, env: &Env, space: SpaceId, vpn: u32, pages: u32) {
        let end = vpn + pages;
        let owner = &mut self.spaces[space];
        assert!(owner.live);
        owner.split_at(vpn);
        owner.split_at(end);
        let gone = owner.inside(vpn, end);
        if gone.is_empty() {
            return;
        }
        let (first, last) = (owner.vmas[gone.start].start, owner.vmas[gone.end - 1].end);
        for at in gone.clone() {
            let vma = self.spaces[space].vmas[at];
            self.zap_range(env, space, vma.start..vma.end);
        }
        let owner = &mut self.spaces[space];
        owner.vmas.drain(gone.clone());
        let floor = gone.start.checked_sub(1).map_or(0, |before| u64::from(owner.vmas[before].end));
        let ceiling = owner.vmas.get(gone.start).map_or(u64::MAX, |after| u64::from(after.start));
        self.free_tables(env, space, first..last, [floor, ceiling]);
        self.file_unmap_unused(space);
    }

    /// `madvise()` on whatever is mapped in a range.
    pub fn madvise(&mut self, env: &Env, space: SpaceId, vpn: u32, pages: u32, advice: Advice) {
        let end = vpn + pages;
        let owner = &mut self.spaces[space];
        assert!(owner.live);
        if advice == Advice::DontNeed {
            for at in owner.inside(vpn, end) {
                let vma = self.spaces[space].vmas[at];
                self.zap_range(env, space, vma.start.max(vpn)..vma.end.min(end));
            }
            return;
        }
        owner.split_at(vpn);
        owner.split_at(end);
        for at in owner.inside(vpn, end) {
            owner.vmas[at].thp = if advice == Advice::Huge { ThpAdvice::Huge } else { ThpAdvice::NoHuge };
        }
        owner.merge();
        if advice == Advice::Huge {
            self.khugepaged_enter_area(space, vpn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(areas: &[(u32, u32)]) -> Space {
        let area = |&(start, end)| Vma {
            start,
            end,
            kind: VmaKind::Anon,
            thp: ThpAdvice::None,
            readahead: AddressReadahead::default(),
        };
        Space { vmas: areas.iter().map(area).collect(), ..Space::default() }
    }

    #[test]
    fn the_lowest_gap_that_fits_is_taken() {
        let s = space(&[(512, 600), (610, 1000)]);
        assert_eq!(s.lowest_gap(10, 1), 600, "the gap of exactly 10 pages");
        assert_eq!(s.lowest_gap(11, 1), 1000);
        assert_eq!(s.lowest_gap(11, 512), 1024);
        assert_eq!(space(&[]).lowest_gap(1, 1), 512);
    }

    #[test]
    fn a_split_area_merges_again() {
        let mut s = space(&[(512, 2048)]);
        s.split_at(1024);
        s.split_at(1024);
        assert_eq!(s.vmas.len(), 2);
        s.vmas[1].thp = ThpAdvice::Huge;
        s.merge();
        assert_eq!(s.vmas.len(), 2, "different advice keeps them apart");
        s.vmas[1].thp = ThpAdvice::None;
        s.merge();
        assert_eq!(s.vmas, space(&[(512, 2048)]).vmas);
    }

    #[test]
    fn a_region_is_held_only_whole() {
        let vma = space(&[(1024, 2047)]).vmas[0];
        assert!(vma.holds_region(1024) && vma.holds_region(1535));
        assert!(!vma.holds_region(1536), "the last page of 1536..2048 is missing");
        assert!(!vma.holds_region(1000));
    }
}
