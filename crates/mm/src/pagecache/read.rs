//! Buffered reads of whole pages, with readahead.
//!
//! Rule: a missing page starts readahead, and if that did not bring it, it is read alone. A page with the readahead
//! mark starts the next window before it is used. A page that is being read is waited for. A page that was not the
//! last one read is marked accessed. A read that wants more than there is makes the page behind the end of the file, of zeros,
//! where the end is that of a page and the kernel looks at the size too late.
//! Source: `generic_file_buffered_read()`, mm/filemap.c, `__do_page_cache_readahead()`, mm/readahead.c (4.20);
//! `filemap_read()`, `page_cache_ra_unbounded()` (6.12).
//! Who wakes kswapd for a page of a window gives way to it before the next one (`might_sleep_if()` in `__alloc_pages()`).
//! Since/until: [`ReadPastEnd`], [`ReadaheadGfp`], [`FaultGfp`], [`ReadaheadMark`].
//! Abstracted: readahead puts each page into the cache as soon as it is allocated (as 6.12 does), not after all are.
//! A read beyond the end leaves the window of readahead as it is.
//! Omitted: direct I/O, reads of parts of pages (a read of part of a page is one of all).

use rules::{FaultGfp, ReadPastEnd, ReadaheadGfp, ReadaheadMark, ReclaimedPages};
use units::{FileId, Gfp, Order, Pfn};

use super::folio::FolioPlace;
use super::readahead::{Batch, Cached, FORCED_CHUNK, Window};
use super::{Direction, Readahead, Slot, Trees, slots};
use crate::vfs::Need;
use crate::{Env, Frame, Mm};

/// Why a read stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadStop {
    /// The page was copied to the reader.
    Done,
    /// Something is missing; provide it and call again. What is for readahead ([`Need::is_optional`]) need not be provided:
    /// calling again without it gives that readahead up.
    Need(Need),
    /// Reads are to be submitted ([`crate::Effect::HeldRead`]); call again.
    Submit,
    /// The page is being read; wait for it and call again.
    Wait(Pfn),
}

/// The pages of one file.
struct FilePages<'a>(&'a Trees, u32);

impl Cached for FilePages<'_> {
    fn cached(&self, index: u32) -> bool {
        slots::is_page(self.0.get(self.1, index))
    }
}

impl Mm {
    /// Reads page `index` of a file, the first of `request` pages that this system call still wants. `hand` is a page
    /// from the slow path, after `Need::Page`; what is left in it when something else is needed is for the next call,
    /// and it is empty after `Done`. The page must lie within the file's size.
    pub fn read_page(
        &mut self,
        env: &Env,
        file: FileId,
        index: u32,
        request: u32,
        ra: &mut Readahead,
        hand: &mut Option<Pfn>,
    ) -> ReadStop {
        debug_assert!(request > 0 && index < self.inode_size_pages(file));
        loop {
            if let Err(need) = self.run_batch(env, file, ra, hand) {
                return ReadStop::Need(need);
            }
            if self.effects.ends_with_held_read() {
                return ReadStop::Submit;
            }
            self.charge(self.costs.cache_lookup);
            let Slot::Page(pfn) = self.pagecache_get(file, index) else {
                if let Err(need) = self.read_miss(env, file, index, request, ra, hand) {
                    return ReadStop::Need(need);
                }
                continue;
            };
            if self.frames[pfn].has(Frame::READAHEAD) && self.read_folio_mark(env, pfn, (index, request), ra) {
                continue;
            }
            self.free_hand(env, hand);
            if !self.frames[pfn].has(Frame::UPTODATE) {
                if !self.frames[pfn].has(Frame::LOCKED) {
                    self.read_again(env, pfn);
                }
                let frame = &mut self.frames[pfn];
                if frame.has(Frame::LOCKED) {
                    frame.set(Frame::WAITERS);
                    return ReadStop::Wait(pfn);
                }
            }
            if !self.folio_indices(pfn).contains(&ra.copied) {
                self.mark_page_accessed(env, pfn);
            }
            self.charge(self.costs.copy_page);
            (ra.tried, ra.copied) = (None, index);
            if request == 1 {
                ra.prev = index;
            }
            return ReadStop::Done;
        }
    }

    /// Looks at pages of a file that are about to be read, so that their cache misses overlap.
    pub fn look_ahead_cached(&self, file: FileId, pages: &[u32]) {
        self.frames.look_ahead(pages.iter().filter_map(|index| match self.pagecache_get(file, *index) {
            Slot::Page(pfn) => Some(pfn),
            Slot::Shadow(_) | Slot::Empty => None,
        }));
    }

    /// Reads pages of a file one after the other, each a request of its own, as long as they are cached and up to date and
    /// start no readahead; returns how many.
    pub fn read_cached(&mut self, env: &Env, file: FileId, pages: &[u32], ra: &mut Readahead) -> usize {
        let mut done = 0;
        for &index in pages {
            let Slot::Page(pfn) = self.pagecache_get(file, index) else { break };
            let frame = &self.frames[pfn];
            if !frame.has(Frame::UPTODATE) || frame.has(Frame::READAHEAD) {
                break;
            }
            if !self.folio_indices(pfn).contains(&ra.copied) {
                self.mark_page_accessed(env, pfn);
            }
            (ra.prev, ra.copied) = (index, index);
            done += 1;
        }
        self.charge(done as u64 * (self.costs.io_uring_read + self.costs.cache_lookup + self.costs.copy_page));
        done
    }

    /// Submits what a reader that is killed has allocated and not submitted.
    pub fn abandon_read(&mut self, env: &Env, file: FileId, ra: &mut Readahead) {
        if let Some(batch) = ra.batch.take() {
            self.submit_read(env, file, batch.run, batch.next);
        }
    }

    /// `POSIX_FADV_WILLNEED`, or readahead(2), of a range, in pieces: starts reading what is missing of up to 2 MiB
    /// from `from` on and says where to go on; `Err` as in [`ReadStop::Need`].
    pub fn force_readahead(
        &mut self,
        env: &Env,
        file: FileId,
        from: u32,
        pages: u32,
        ra: &mut Readahead,
        hand: &mut Option<Pfn>,
    ) -> Result<u32, Need> {
        let size = pages.min(FORCED_CHUNK);
        if ra.batch.is_none() {
            self.start_batch(file, ra, Window { start: from, size, mark: None, folios: None });
        }
        self.run_batch(env, file, ra, hand)?;
        self.free_hand(env, hand);
        Ok(from + size)
    }

    /// A page is missing: readahead first, and the page alone if that did not bring it.
    fn read_miss(
        &mut self,
        env: &Env,
        file: FileId,
        index: u32,
        request: u32,
        ra: &mut Readahead,
        hand: &mut Option<Pfn>,
    ) -> Result<(), Need> {
        if ra.tried != Some(index) {
            ra.tried = Some(index);
            let pages = FilePages(&self.pagecache.trees, file.0);
            if let Some(window) = ra.on_miss(self.window_rules(env), &pages, index, request) {
                self.start_batch(file, ra, window);
            }
            return Ok(());
        }
        self.read_alone(env, file, index, self.reading_gfp(file), hand)
    }

    /// A read goes on at page `index`, which lies behind the end of the file. `hand` as for [`Mm::read_page`].
    ///
    /// # Errors
    /// What a new page lacks.
    pub fn read_past_end(&mut self, env: &Env, file: FileId, index: u32, hand: &mut Option<Pfn>) -> Result<(), Need> {
        if self.rules.read_past_end == ReadPastEnd::Stops {
            return Ok(());
        }
        self.charge(self.costs.cache_lookup);
        if !matches!(self.pagecache_get(file, index), Slot::Page(_)) {
            let pfn = self.add_alone(env, file, index, self.reading_gfp(file), hand)?;
            self.frames[pfn].set(Frame::UPTODATE);
            self.charge(self.costs.zero_page);
        }
        self.free_hand(env, hand);
        Ok(())
    }

    /// Starts reading one page that is not cached.
    pub(super) fn read_alone(
        &mut self,
        env: &Env,
        file: FileId,
        index: u32,
        gfp: Gfp,
        hand: &mut Option<Pfn>,
    ) -> Result<(), Need> {
        let pfn = self.add_alone(env, file, index, gfp, hand)?;
        self.frames[pfn].set(Frame::LOCKED);
        self.submit_read(env, file, index, index + 1);
        Ok(())
    }

    /// How pages that the device is to fill are allocated (`page_cache_alloc_cold()` until 4.14).
    fn reading_gfp(&self, file: FileId) -> Gfp {
        let gfp = self.mapping_gfp(file);
        if self.rules.reclaimed_pages == ReclaimedPages::HotEnd { gfp } else { gfp.with(Gfp::COLD) }
    }

    /// How a page that a fault reads alone is allocated (`__get_fault_gfp_mask()`).
    pub(super) fn fault_gfp(&self, file: FileId) -> Gfp {
        let gfp = self.reading_gfp(file);
        match self.rules.fault_gfp {
            FaultGfp::Mapping => gfp,
            FaultGfp::EntersFs => gfp.with(Gfp::FS).with(Gfp::IO),
        }
    }

    /// How pages of a window are allocated (`readahead_gfp_mask()`).
    fn readahead_gfp(&self, file: FileId) -> Gfp {
        let gfp = self.reading_gfp(file).with(Gfp::NORETRY).with(Gfp::NOWARN);
        match self.rules.readahead_gfp {
            ReadaheadGfp::Mapping => gfp,
            ReadaheadGfp::NoFs => gfp.without(Gfp::FS),
        }
    }

    /// A new page of a file, in the cache and not read yet.
    fn add_alone(
        &mut self,
        env: &Env,
        file: FileId,
        index: u32,
        gfp: Gfp,
        hand: &mut Option<Pfn>,
    ) -> Result<Pfn, Need> {
        let pfn = self.new_folio(env, FolioPlace::page(file, index), gfp, hand)?;
        self.add_to_page_cache(env, pfn, file, index, gfp);
        self.charge(self.costs.read_page);
        Ok(pfn)
    }

    /// Reads a folio once more, since an earlier read failed.
    pub(super) fn read_again(&mut self, env: &Env, pfn: Pfn) {
        let ((file, _), indices) = (self.file_home(pfn), self.folio_indices(pfn));
        self.lock_to_read(pfn);
        self.submit_read(env, file, indices.start, indices.end);
    }

    /// Locks a folio, all of which is about to be read.
    fn lock_to_read(&mut self, pfn: Pfn) {
        self.frames[pfn].set(Frame::LOCKED);
        if self.frames[pfn].order() > Order(0) {
            self.begin_folio_io(pfn, Direction::Read, self.folio_indices(pfn));
        }
    }

    /// The mark of a window was met by a read of so many pages from page `at` on: it asks for them from the folio's first.
    fn read_folio_mark(&mut self, env: &Env, pfn: Pfn, (at, request): (u32, u32), ra: &mut Readahead) -> bool {
        let (_, first) = self.file_home(pfn);
        self.read_mark(env, pfn, (first, at - first + request), ra)
    }

    /// The mark of a window was met by who asks for so many pages from a page of its folio on: starts the next one, if there is
    /// one.
    pub(super) fn read_mark(&mut self, env: &Env, pfn: Pfn, (at, request): (u32, u32), ra: &mut Readahead) -> bool {
        let frame = &mut self.frames[pfn];
        if frame.has(Frame::WRITEBACK) {
            return false;
        }
        frame.clear(Frame::READAHEAD);
        let order = frame.order();
        let (file, _) = self.file_home(pfn);
        let (rules, pages) = (self.window_rules(env), FilePages(&self.pagecache.trees, file.0));
        match ra.on_mark(rules, &pages, (at, order), request) {
            Some(window) => {
                self.start_batch(file, ra, window);
                true
            }
            None => false,
        }
    }

    /// Begins to allocate the pages of a window, as far as the file goes.
    pub(super) fn start_batch(&self, file: FileId, ra: &mut Readahead, window: Window) {
        debug_assert!(ra.batch.is_none());
        let end = window.start.saturating_add(window.size).min(self.inode_size_pages(file));
        if window.start < end {
            let Window { start, size, mark, .. } = window;
            let folios = window.folios.filter(|_| self.reads_large_folios(file));
            let window = (start, size);
            let mark = if folios.is_some() { mark } else { self.mark_of_pages(window, mark, end) };
            ra.batch = Some(Batch { next: start, end, mark, folios, window, run: start, asked: None });
        }
    }

    /// Where a window of single pages is marked that is read up to `end`.
    fn mark_of_pages(&self, (start, size): (u32, u32), mark: Option<u32>, end: u32) -> Option<u32> {
        match self.rules.readahead_mark {
            ReadaheadMark::OfWindow => mark,
            ReadaheadMark::OfRead => {
                let ahead = start.saturating_add(size) - mark?;
                end.checked_sub(ahead).filter(|mark| *mark >= start)
            }
        }
    }

    /// Allocates the pages of the present batch that are not cached, and submits their reads.
    pub(super) fn run_batch(
        &mut self,
        env: &Env,
        file: FileId,
        ra: &mut Readahead,
        hand: &mut Option<Pfn>,
    ) -> Result<(), Need> {
        let Some(mut batch) = ra.batch else { return Ok(()) };
        let gfp = self.readahead_gfp(file);
        while batch.next < batch.end {
            let index = batch.next;
            let order = batch.folios.map_or(Order(0), |most| self.order_ahead(index, batch.end, most));
            let place = FolioPlace { file, index, order };
            if self.is_any_cached(place) {
                self.submit_read(env, file, batch.run, index);
                if batch.folios.is_some() {
                    self.go_on_with_pages(file, &mut batch);
                } else {
                    batch.next += 1;
                }
                batch.run = batch.next;
                continue;
            }
            match self.new_folio(env, place, gfp, hand) {
                Ok(pfn) => self.add_ahead(env, pfn, (file, index), batch.marks(index, order), gfp),
                // It was not provided.
                Err(need) if need.is_optional() && batch.asked == Some(need) => {
                    if batch.folios.is_none() {
                        break;
                    }
                    self.submit_read(env, file, batch.run, index);
                    self.go_on_with_pages(file, &mut batch);
                    batch.run = batch.next;
                    continue;
                }
                Err(need) => {
                    batch.asked = Some(need);
                    ra.batch = Some(batch);
                    return Err(need);
                }
            }
            batch.asked = None;
            batch.next += order.pages();
            if self.effects.wakes_kswapd() {
                ra.batch = Some(batch);
                return Err(Need::Resched);
            }
        }
        ra.batch = None;
        self.submit_read(env, file, batch.run, batch.next);
        Ok(())
    }

    /// A large folio could not be had: single pages from here on, as many as the whole window has.
    fn go_on_with_pages(&self, file: FileId, batch: &mut Batch) {
        let ((start, size), next) = (batch.window, batch.next);
        batch.end = next.saturating_add(size).min(self.inode_size_pages(file));
        let mark = batch.mark.map(|mark| next + (mark - start));
        batch.mark = self.mark_of_pages((next, size), mark, batch.end);
        (batch.window, batch.folios, batch.asked) = ((next, size), None, None);
    }

    fn add_ahead(&mut self, env: &Env, pfn: Pfn, (file, index): (FileId, u32), marked: bool, gfp: Gfp) {
        self.add_to_page_cache(env, pfn, file, index, gfp);
        if marked {
            self.frames[pfn].set(Frame::READAHEAD);
        }
        self.lock_to_read(pfn);
        self.charge(self.costs.read_page);
    }
}
