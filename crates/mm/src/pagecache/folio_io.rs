//! I/O on large folios, and on what was truncated while it was under way.
//!
//! Rule: several bios may hold pages of a folio. It is unlocked when all that was read of it is there, and up to date unless any of
//! that failed; it leaves writeback when all that was written of it is on the device.
//! Source: `iomap_finish_folio_read()`, `iomap_finish_folio_write()`, fs/iomap/buffered-io.c, 6.12.
//! Abstracted: what was truncated is taken for what ends first, where its place in the file is in use again.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use units::{FileId, PAGEBLOCK_ORDER, Pfn};

use crate::{Frame, Kind, Mm};

const WORDS: usize = 8;

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// I/O on a folio.
#[derive(Clone, Debug)]
struct FolioIo {
    pfn: Pfn,
    direction: Direction,
    /// Its pages that are on their way, a bit each.
    left: [u64; WORDS],
    failed: bool,
    /// It is in its file no more.
    truncated: bool,
    /// How many came before it.
    begun: u64,
}

/// What the end of a page's I/O means to what it is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FolioIoEnd {
    /// It is a page of its own, and in its file.
    SinglePage,
    /// Other pages of the folio are on their way.
    NotYet,
    /// It was the last one of this folio.
    Last {
        pfn: Pfn,
        /// None failed.
        ok: bool,
        truncated: bool,
    },
}

/// All of it, by file and first page.
#[derive(Debug, Default)]
pub(crate) struct FolioIos {
    at: BTreeMap<(u32, u32), SmallVec<[FolioIo; 1]>>,
    begun: u64,
    /// How many were truncated: only then may several have the same page on its way.
    truncated: usize,
}

fn bit(page: u32) -> (usize, u64) {
    ((page / u64::BITS) as usize, 1 << (page % u64::BITS))
}

fn bits(pages: impl IntoIterator<Item = u32>) -> [u64; WORDS] {
    let mut left = [0; WORDS];
    for (word, mask) in pages.into_iter().map(bit) {
        left[word] |= mask;
    }
    left
}

impl FolioIos {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Host bytes, less what the map's own nodes take.
    pub(super) fn host_bytes(&self) -> usize {
        self.at.len() * size_of::<((u32, u32), SmallVec<[FolioIo; 1]>)>()
    }

    /// Of a folio that begins at page `first` of a file, these pages are on their way, counted from there.
    fn begin(
        &mut self,
        place: (FileId, u32),
        pfn: Pfn,
        direction: Direction,
        pages: impl IntoIterator<Item = u32>,
    ) -> &mut FolioIo {
        let (left, begun) = (bits(pages), self.begun);
        debug_assert!(left != [0; WORDS]);
        self.begun += 1;
        let all = self.at.entry((place.0.0, place.1)).or_default();
        all.push(FolioIo { pfn, direction, left, failed: false, truncated: false, begun });
        all.last_mut().expect("it was pushed")
    }

    /// The place of the oldest one that has page `index` on its way.
    fn find(&self, file: FileId, index: u32, direction: Direction) -> Option<((u32, u32), usize)> {
        let lowest = index.saturating_sub(PAGEBLOCK_ORDER.pages() - 1);
        let near = self.at.range((file.0, lowest)..=(file.0, index)).rev();
        let mut found = near.filter_map(|(place, all)| {
            let (word, mask) = bit(index - place.1);
            let at = all.iter().position(|io| io.direction == direction && io.left[word] & mask != 0)?;
            Some((all[at].begun, (*place, at)))
        });
        let one = if self.truncated == 0 { found.next() } else { found.min_by_key(|(begun, _)| *begun) };
        one.map(|(_, at)| at)
    }

    fn end(&mut self, file: FileId, index: u32, direction: Direction, ok: bool) -> FolioIoEnd {
        let Some((place, at)) = self.find(file, index, direction) else { return FolioIoEnd::SinglePage };
        let all = self.at.get_mut(&place).expect("it was found there");
        let io = &mut all[at];
        let (word, mask) = bit(index - place.1);
        io.left[word] &= !mask;
        io.failed |= !ok;
        if io.left != [0; WORDS] {
            return FolioIoEnd::NotYet;
        }
        let FolioIo { pfn, failed, truncated, .. } = all.remove(at);
        self.truncated -= usize::from(truncated);
        if all.is_empty() {
            self.at.remove(&place);
        }
        FolioIoEnd::Last { pfn, ok: !failed, truncated }
    }

    /// What is under way at a place goes on, though it is no more in its file; a single page's is not noted so far.
    fn truncate(&mut self, place: (FileId, u32), pfn: Pfn, direction: Direction) {
        self.truncated += 1;
        let all = self.at.get_mut(&(place.0.0, place.1)).into_iter().flatten();
        match all.into_iter().find(|io| io.pfn == pfn && !io.truncated) {
            Some(io) => io.truncated = true,
            None => self.begin(place, pfn, direction, [0]).truncated = true,
        }
    }
}

impl Mm {
    /// I/O begins on these pages of a large folio, by their index.
    pub(crate) fn begin_folio_io(&mut self, pfn: Pfn, direction: Direction, indices: impl IntoIterator<Item = u32>) {
        debug_assert!(self.frames[pfn].kind() == Kind::File);
        let place @ (_, first) = self.file_home(pfn);
        self.pagecache.folio_ios.begin(place, pfn, direction, indices.into_iter().map(|index| index - first));
    }

    /// I/O on a page of a file has ended.
    #[inline]
    pub(crate) fn end_folio_io(&mut self, file: FileId, index: u32, direction: Direction, ok: bool) -> FolioIoEnd {
        if self.pagecache.folio_ios.is_empty() {
            return FolioIoEnd::SinglePage;
        }
        self.pagecache.folio_ios.end(file, index, direction, ok)
    }

    /// A folio leaves its file while I/O on it goes on.
    pub(super) fn truncate_folio_io(&mut self, pfn: Pfn) {
        let direction = if self.frames[pfn].has(Frame::WRITEBACK) { Direction::Write } else { Direction::Read };
        self.pagecache.folio_ios.truncate(self.file_home(pfn), pfn, direction);
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{Read, Write};
    use super::*;

    const FILE: FileId = FileId(7);

    fn last(pfn: u32, ok: bool, truncated: bool) -> FolioIoEnd {
        FolioIoEnd::Last { pfn: Pfn(pfn), ok, truncated }
    }

    #[test]
    fn a_folio_ends_with_its_last_page_whatever_their_order() {
        let mut ios = FolioIos::default();
        ios.begin((FILE, 512), Pfn(1024), Read, [0, 88, 511]);
        assert_eq!(ios.end(FILE, 513, Read, true), FolioIoEnd::SinglePage, "it is not on its way");
        assert_eq!(ios.end(FILE, 512, Write, true), FolioIoEnd::SinglePage, "it is being read");
        assert_eq!(ios.end(FILE, 1023, Read, true), FolioIoEnd::NotYet);
        assert_eq!(ios.end(FILE, 512, Read, false), FolioIoEnd::NotYet);
        assert_eq!(ios.end(FILE, 600, Read, true), last(1024, false, false));
        assert!(ios.is_empty());
    }

    #[test]
    fn what_was_truncated_and_what_took_its_place_end_apart() {
        let mut ios = FolioIos::default();
        ios.begin((FILE, 16), Pfn(32), Write, 0..16);
        ios.truncate((FILE, 16), Pfn(32), Write);
        ios.truncate((FILE, 40), Pfn(5), Write);
        ios.begin((FILE, 16), Pfn(64), Write, [0, 1]);
        ios.begin((FILE, 32), Pfn(80), Write, [8]);
        ios.begin((FileId(8), 16), Pfn(96), Write, [0]);
        let ends: Vec<_> = (16..32).map(|index| ios.end(FILE, index, Write, true)).collect();
        assert!(ends[..15].iter().all(|end| *end == FolioIoEnd::NotYet));
        assert_eq!(ends[15], last(32, true, true));
        assert_eq!(
            [16, 17].map(|index| ios.end(FILE, index, Write, true)),
            [FolioIoEnd::NotYet, last(64, true, false)]
        );
        assert_eq!(
            [40, 40].map(|index| ios.end(FILE, index, Write, true)),
            [last(5, true, true), last(80, true, false)]
        );
        assert_eq!(ios.end(FileId(8), 16, Write, true), last(96, true, false));
        assert!(ios.is_empty() && ios.truncated == 0);
    }
}
