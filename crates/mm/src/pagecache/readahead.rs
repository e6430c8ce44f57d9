//! Readahead: which pages are read beside the one that is missing.
//!
//! Rule: the start of a file, or a page right behind the last read, opens a window of 4 times the request (small
//! ones), of which all but the request is read ahead. One page of a window is marked; reading it starts the next
//! window, 4 or 2 times as large, up to `ra_pages`. A mark met without a fitting window, or a miss behind cached pages,
//! starts a window as large as what is cached around it. Everything else is a random read: just the request.
//! With `FADV_RANDOM`, always just the request.
//! Source: `ondemand_readahead()`, `get_init_ra_size()`, `get_next_ra_size()`, mm/readahead.c (4.20);
//! `page_cache_sync_ra()`, `page_cache_async_ra()` (6.12).
//! Since/until: one function for misses and marks until 6.10, two since ([`ReadaheadWindow`]); whether a window may be smaller than the
//! one that it follows ([`NextWindow`]); what a search finds where all is cached ([`CachedRun`]).
//! Abstracted: positions are whole pages.
//! Omitted: a congested device defers readahead (until 5.17); `MADV_*`.

use rules::{CachedRun, NextWindow, ReadaheadWindow, Rules};
use units::Order;

use super::folio::order_of_window;
use crate::vfs::Need;

/// Pages that a read may ask of the device at once (`bdi->io_pages`): `max_sectors_kb` of 1280.
const IO_PAGES: u32 = 320;
/// Pages of the smallest window that is read into large folios.
const LEAST_FOR_FOLIOS: u32 = 4;
/// Pages of a forced readahead that are read in one go: 2 MiB.
pub(super) const FORCED_CHUNK: u32 = 512;

/// A range of pages to be read, of which one is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Window {
    /// First page.
    pub(super) start: u32,
    /// Pages.
    pub(super) size: u32,
    /// Page that starts the next window when it is read.
    pub(super) mark: Option<u32>,
    /// Order of the large folios that it may be read into; none where just the request is read.
    pub(super) folios: Option<Order>,
}

/// A batch of pages that is being allocated; it may take several calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    pub(super) next: u32,
    pub(super) end: u32,
    pub(super) mark: Option<u32>,
    /// Order of its folios; single pages if none.
    pub(super) folios: Option<Order>,
    /// The window: first page, pages.
    pub(super) window: (u32, u32),
    /// First page that is allocated and not submitted.
    pub(super) run: u32,
    /// What was asked for on the slow path last.
    pub(super) asked: Option<Need>,
}

impl Batch {
    /// Whether the folio that begins at a page is the one with the mark.
    pub(super) fn marks(&self, index: u32, order: Order) -> bool {
        self.mark.is_some_and(|mark| mark - mark % order.pages() == index)
    }
}

/// Readahead state of an open file (`struct file_ra_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readahead {
    start: u32,
    size: u32,
    async_size: u32,
    ra_pages: u32,
    bdi_pages: u32,
    random: bool,
    /// Last page of the previous read (`prev_pos`).
    pub(super) prev: u32,
    /// Last page that was copied, in this read or the previous one.
    pub(super) copied: u32,
    pub(super) batch: Option<Batch>,
    /// Page for which readahead was tried before it is read alone.
    pub(super) tried: Option<u32>,
}

/// What an open file keeps of its [`Readahead`] between reads: the last page read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastRead(u32);

impl LastRead {
    /// The page; none of a file just opened.
    pub fn page(self) -> Option<u32> {
        (self != LastRead::from(None)).then_some(self.0)
    }
}

impl From<Option<u32>> for LastRead {
    fn from(page: Option<u32>) -> LastRead {
        page.map_or_else(|| Readahead::default().rest().0, LastRead)
    }
}

/// And the window, in 8 bytes; who reads at random has none. A window has at most as many pages as a read may ask of the
/// device, or twice `read_ahead_kb`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RestingWindow {
    start: u32,
    size: u16,
    async_size: u16,
}

impl Default for Readahead {
    /// 128 KiB, the kernel's default (`VM_READAHEAD_PAGES`).
    fn default() -> Readahead {
        Readahead::new(32)
    }
}

/// What a kernel does about windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WindowRules {
    window: ReadaheadWindow,
    next: NextWindow,
    run: CachedRun,
    /// Pages that a window may have at most.
    limit: u32,
}

impl WindowRules {
    /// Those of a kernel, with so many pages for a window at most.
    pub(super) fn new(rules: &Rules, limit: u32) -> WindowRules {
        WindowRules { window: rules.readahead_window, next: rules.next_window, run: rules.cached_run, limit }
    }
}

/// What the windows need to know of the cache.
pub(super) trait Cached {
    /// Whether a page is cached.
    fn cached(&self, index: u32) -> bool;

    /// Cached pages right before `index`, looking at up to `max` (`count_history_pages()`).
    fn before(&self, run: CachedRun, index: u32, max: u32) -> u32 {
        let pages = (1..=max.min(index)).take_while(|back| self.cached(index - back)).count() as u32;
        if run != CachedRun::Beyond && pages == max { max - 1 } else { pages }
    }

    /// First page from `index` on that is not cached, looking at up to `max`; where all are, what the kernel gives instead.
    fn next_miss(&self, run: CachedRun, index: u32, max: u32) -> u32 {
        let beyond = index.saturating_add(max);
        let found = (index..beyond).find(|&i| !self.cached(i));
        found.unwrap_or(if run == CachedRun::LastLooked { beyond - 1 } else { beyond })
    }
}

fn initial_size(request: u32, max: u32) -> u32 {
    let size = request.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

impl Readahead {
    /// State of a file just opened on a device with `read_ahead_kb` of `ra_pages` times 4 KiB.
    pub fn new(ra_pages: u32) -> Readahead {
        Readahead {
            start: 0,
            size: 0,
            async_size: 0,
            ra_pages,
            bdi_pages: ra_pages,
            random: false,
            prev: u32::MAX,
            copied: u32::MAX,
            batch: None,
            tried: None,
        }
    }

    /// What is to be kept until the next read; nothing is being allocated.
    ///
    /// # Panics
    /// If the window has 65536 pages or more.
    pub fn rest(&self) -> (LastRead, RestingWindow) {
        debug_assert!(self.batch.is_none(), "a read ends with all that it allocated submitted");
        let pages = |n: u32| u16::try_from(n).expect("a window has less than 256 MiB");
        let Readahead { start, prev, size, async_size, .. } = *self;
        (LastRead(prev), RestingWindow { start, size: pages(size), async_size: pages(async_size) })
    }

    /// Goes on from what was kept.
    #[must_use]
    pub fn resume(
        self,
        LastRead(prev): LastRead,
        RestingWindow { start, size, async_size }: RestingWindow,
    ) -> Readahead {
        Readahead { start, prev, copied: prev, size: size.into(), async_size: async_size.into(), ..self }
    }

    /// In the midst of a read that copied this page last.
    #[must_use]
    pub fn after(self, page: u32) -> Readahead {
        Readahead { copied: page, ..self }
    }

    /// `POSIX_FADV_RANDOM`.
    pub fn advise_random(&mut self) {
        self.random = true;
    }

    /// `POSIX_FADV_SEQUENTIAL`: windows twice as large.
    pub fn advise_sequential(&mut self) {
        (self.random, self.ra_pages) = (false, self.bdi_pages * 2);
    }

    /// `POSIX_FADV_NORMAL`.
    pub fn advise_normal(&mut self) {
        (self.random, self.ra_pages) = (false, self.bdi_pages);
    }

    fn next_size(&self, max: u32) -> u32 {
        let grown = if self.size < max / 16 { 4 * self.size } else { 2 * self.size };
        grown.min(max)
    }

    fn max_pages(&self, rules: WindowRules, request: u32) -> u32 {
        let pages =
            if request > self.ra_pages && IO_PAGES > self.ra_pages { request.min(IO_PAGES) } else { self.ra_pages };
        pages.min(rules.limit)
    }

    /// What to read when page `index` is missing and `request` pages are wanted from it on.
    pub(super) fn on_miss(
        &mut self,
        rules: WindowRules,
        cache: &impl Cached,
        index: u32,
        request: u32,
    ) -> Option<Window> {
        if self.ra_pages.min(rules.limit) == 0 {
            return None;
        }
        if self.random {
            let size = request.min(IO_PAGES.max(self.ra_pages)).min(rules.limit);
            return Some(Window { start: index, size, mark: None, folios: None });
        }
        let max = self.max_pages(rules, request);
        if rules.window == ReadaheadWindow::OnDemand && index != 0 && self.expects(index, Order(0), true) {
            return Some(self.advance(rules, (index, Order(0)), max));
        }
        if index == 0 || request > max || index.wrapping_sub(self.prev) <= 1 {
            return Some(self.open(rules, (index, Order(0)), request, max));
        }
        let history = cache.before(rules.run, index, max);
        if history <= request {
            return Some(Window { start: index, size: request, mark: None, folios: None });
        }
        let history = if history >= index { history * 2 } else { history };
        (self.start, self.size, self.async_size) = (index, (history + request).min(max), 1);
        Some(self.submit(rules, (index, Order(0)), max))
    }

    /// Pages of a whole window.
    pub(super) fn window_pages(&self) -> u32 {
        self.ra_pages
    }

    /// What to read when page `index` of a mapped file is missing: a window around it (`do_sync_mmap_readahead()`).
    pub(super) fn around(&mut self, rules: WindowRules, index: u32) -> Window {
        let pages = self.ra_pages.min(rules.limit);
        (self.start, self.size, self.async_size) = (index.saturating_sub(pages / 2), pages, pages / 4);
        self.window(Order(0))
    }

    /// The present window, which a folio of order `opened_by` opened.
    fn window(&self, opened_by: Order) -> Window {
        Window {
            start: self.start,
            size: self.size,
            mark: Some(self.start + self.size - self.async_size),
            folios: (self.size >= LEAST_FOR_FOLIOS).then(|| order_of_window(opened_by, self.size)),
        }
    }

    /// What to read when the marked folio of such an order that begins at page `index` is read.
    pub(super) fn on_mark(
        &mut self,
        rules: WindowRules,
        cache: &impl Cached,
        (index, order): (u32, Order),
        request: u32,
    ) -> Option<Window> {
        if self.ra_pages.min(rules.limit) == 0 {
            return None;
        }
        let max = self.max_pages(rules, request);
        if rules.window == ReadaheadWindow::OnDemand && index == 0 {
            return Some(self.open(rules, (index, order), request, max));
        }
        if self.expects(index, order, rules.window == ReadaheadWindow::OnDemand) {
            return Some(self.advance(rules, (index, order), max));
        }
        let start = cache.next_miss(rules.run, index + 1, max);
        if start - index > max {
            return None;
        }
        (self.start, self.size) = (start, start - index + request);
        self.size = self.next_size(max);
        self.async_size = self.size;
        Some(self.submit(rules, (index, order), max))
    }

    /// Whether `index` is where the folio of the present window's mark begins, or where that ends.
    fn expects(&self, index: u32, order: Order, or_end: bool) -> bool {
        let end = self.start + self.size;
        let mark = end - self.async_size;
        index == mark - mark % order.pages() || (or_end && index == end)
    }

    /// The window behind the present one.
    fn advance(&mut self, rules: WindowRules, at: (u32, Order), max: u32) -> Window {
        self.start += self.size;
        let next = self.next_size(max);
        self.size = match rules.next {
            NextWindow::Capped => next,
            // What one large read had opened stays as large.
            NextWindow::NeverSmaller => next.max(self.size),
        };
        self.async_size = self.size;
        self.submit(rules, at, max)
    }

    /// The first window of a stream.
    fn open(&mut self, rules: WindowRules, (index, order): (u32, Order), request: u32, max: u32) -> Window {
        self.start = index;
        self.size = initial_size(request, max);
        self.async_size = match (self.size > request, rules.window) {
            (true, _) => self.size - request,
            (false, ReadaheadWindow::OnDemand) => self.size,
            (false, ReadaheadWindow::Split) => self.size >> 1,
        };
        self.submit(rules, (index, order), max)
    }

    fn submit(&mut self, rules: WindowRules, (index, order): (u32, Order), max: u32) -> Window {
        if rules.window == ReadaheadWindow::OnDemand && index == self.start && self.size == self.async_size {
            // The read would meet its own mark at once: the next window joins this one.
            let more = self.next_size(max);
            if self.size + more <= max {
                self.async_size = more;
                self.size += more;
            } else {
                (self.size, self.async_size) = (max, max >> 1);
            }
        }
        self.window(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows of 4.20.
    const ON_DEMAND: WindowRules = WindowRules {
        window: ReadaheadWindow::OnDemand,
        next: NextWindow::Capped,
        run: CachedRun::LastLooked,
        limit: u32::MAX,
    };
    /// Those of 6.12.
    const SPLIT: WindowRules = WindowRules {
        window: ReadaheadWindow::Split,
        next: NextWindow::NeverSmaller,
        run: CachedRun::BeyondAhead,
        limit: u32::MAX,
    };

    struct Pages(Vec<u32>);

    impl Cached for Pages {
        fn cached(&self, index: u32) -> bool {
            self.0.contains(&index)
        }
    }

    /// Reads a file page by page and gives the windows that are submitted.
    fn sequential(rules: WindowRules, pages: u32) -> Vec<(u32, u32)> {
        let mut ra = Readahead::default();
        let mut cache = Pages(Vec::new());
        let mut marks = Vec::new();
        let mut windows = Vec::new();
        for index in 0..pages {
            let window = if !cache.cached(index) {
                ra.on_miss(rules, &cache, index, 1)
            } else if marks.contains(&index) {
                ra.on_mark(rules, &cache, (index, Order(0)), 1)
            } else {
                None
            };
            if let Some(w) = window {
                windows.push((w.start, w.size));
                cache.0.extend(w.start..w.start + w.size);
                marks.extend(w.mark);
            }
            ra.prev = index;
        }
        windows
    }

    #[test]
    fn sequential_reads_of_a_page_open_windows_of_4_8_16_32() {
        // Initial: 1 page is at most 32/32, so 4 pages, marked behind the first. Then twice as many each time.
        let expected = vec![(0, 4), (4, 8), (12, 16), (28, 32), (60, 32)];
        assert_eq!(sequential(ON_DEMAND, 30), expected);
        assert_eq!(sequential(SPLIT, 30), expected);
    }

    #[test]
    fn a_read_that_fills_the_first_window_is_joined_with_the_next() {
        // 32 pages are more than max/4: a window of max = 32 pages, none of them ahead. 4.20 marks all of it, which is
        // the page read now, so that the next window of min(64, 32) would join; it does not fit, so half is marked.
        // 6.12 marks half at once.
        for rule in [ON_DEMAND, SPLIT] {
            let mut ra = Readahead::default();
            let window = ra.on_miss(rule, &Pages(vec![]), 0, 32);
            assert_eq!(window, Some(Window { start: 0, size: 32, mark: Some(16), folios: Some(Order(2)) }), "{rule:?}");
        }
    }

    #[test]
    fn a_window_larger_than_the_files_own_does_not_shrink_since_6_13() {
        // 33 pages are more than ra_pages: a window of 33, of which half (16) is marked. The mark asks for what is left of the
        // request, 16 pages, so that 32 is the most again.
        let on_demand = WindowRules { next: NextWindow::NeverSmaller, ..ON_DEMAND };
        for (rule, size) in [(ON_DEMAND, 32), (on_demand, 33), (SPLIT, 33)] {
            let mut ra = Readahead::default();
            ra.on_miss(rule, &Pages(vec![]), 0, 33);
            let mark = 33 - 16;
            assert_eq!(
                ra.on_mark(rule, &Pages(vec![]), (mark, Order(0)), 16).map(|w| (w.start, w.size)),
                Some((33, size)),
                "{rule:?}"
            );
        }
    }

    #[test]
    fn a_random_read_takes_just_the_request_and_leaves_the_window() {
        let mut ra = Readahead::default();
        ra.on_miss(ON_DEMAND, &Pages(vec![]), 0, 1);
        let before = ra;
        let window = ra.on_miss(ON_DEMAND, &Pages(vec![]), 1000, 2);
        assert_eq!(window, Some(Window { start: 1000, size: 2, mark: None, folios: None }));
        assert_eq!(ra, before);
    }

    #[test]
    fn cached_pages_before_a_miss_give_it_a_window() {
        // 7 pages of history before page 100, request 1: 7 + 1 pages, the last marked.
        let mut ra = Readahead { prev: 5, ..Readahead::default() };
        let window = ra.on_miss(SPLIT, &Pages((93..100).collect()), 100, 1);
        assert_eq!(window, Some(Window { start: 100, size: 8, mark: Some(107), folios: Some(Order(2)) }));
        // As much history as the request is no sign of a stream.
        let mut ra = Readahead { prev: 5, ..Readahead::default() };
        let window = ra.on_miss(SPLIT, &Pages(vec![99]), 100, 1);
        assert_eq!(window, Some(Window { start: 100, size: 1, mark: None, folios: None }));
    }

    #[test]
    fn a_mark_of_another_stream_starts_behind_what_is_cached() {
        // Pages 50..54 are cached, 50 is marked: 4 from the mark to the miss, 1 requested, times 2.
        let mut ra = Readahead { start: 900, size: 8, async_size: 8, prev: 900, ..Readahead::default() };
        let window = ra.on_mark(ON_DEMAND, &Pages((50..54).collect()), (50, Order(0)), 1);
        assert_eq!(window, Some(Window { start: 54, size: 10, mark: Some(54), folios: Some(Order(2)) }));
    }

    #[test]
    fn a_mark_with_a_whole_window_cached_ahead_starts_one_only_at_the_last_page_looked_at() {
        // 51 to 82 are the 32 pages behind the mark; a search of them ends at 82, or at 83, which is more than 32 away.
        let cache = Pages((50..83).collect());
        let on_mark = |run| {
            let mut ra = Readahead { start: 900, size: 8, async_size: 8, prev: 900, ..Readahead::default() };
            ra.on_mark(WindowRules { run, ..ON_DEMAND }, &cache, (50, Order(0)), 1).map(|w| (w.start, w.size))
        };
        let found = [CachedRun::Beyond, CachedRun::LastLooked, CachedRun::BeyondAhead].map(on_mark);
        assert_eq!(found, [None, Some((82, 32)), None]);
    }

    #[test]
    fn a_whole_window_cached_before_a_read_counts_one_page_less_since_4_20() {
        let cache = Pages((68..100).collect());
        let before = |run, max| cache.before(run, 100, max);
        assert_eq!([31, 32, 33].map(|max| before(CachedRun::Beyond, max)), [31, 32, 32]);
        assert_eq!([31, 32, 33].map(|max| before(CachedRun::LastLooked, max)), [30, 31, 32]);
        assert_eq!([31, 32, 33].map(|max| before(CachedRun::BeyondAhead, max)), [30, 31, 32]);
    }

    #[test]
    fn a_stream_goes_on_after_a_rest() {
        assert_eq!((size_of::<LastRead>(), size_of::<RestingWindow>()), (4, 8));
        let mut ra = Readahead::new(32);
        ra.advise_sequential();
        ra.on_miss(ON_DEMAND, &Pages(vec![]), 0, 1);
        (ra.prev, ra.copied, ra.tried) = (7, 7, Some(7));
        let mut resumed = Readahead::new(32);
        resumed.advise_sequential();
        // A page that was tried in vain is tried again by the next read.
        let (last_read, window) = ra.rest();
        assert_eq!(resumed.resume(last_read, window), Readahead { tried: None, ..ra });
    }

    #[test]
    fn advice_sets_the_window() {
        let mut ra = Readahead::default();
        ra.advise_random();
        let window = ra.on_miss(ON_DEMAND, &Pages(vec![]), 0, 1);
        assert_eq!(window, Some(Window { start: 0, size: 1, mark: None, folios: None }));
        ra.advise_sequential();
        // 64 pages: 1 page is at most 64/32 = 2.
        let window = ra.on_miss(ON_DEMAND, &Pages(vec![]), 0, 1);
        assert_eq!(window, Some(Window { start: 0, size: 4, mark: Some(1), folios: Some(Order(2)) }));
        assert_eq!(ra.max_pages(SPLIT, 1), 64);
        ra.advise_normal();
        assert_eq!(ra.max_pages(SPLIT, 1), 32);
    }

    #[test]
    fn where_nothing_may_be_read_ahead_nothing_is() {
        for limit in [0, 3] {
            let rules = WindowRules { limit, ..SPLIT };
            let cache = Pages(Vec::new());
            let mut random = Readahead::new(32);
            random.advise_random();
            let sizes = [Readahead::new(32), random].map(|mut ra| ra.on_miss(rules, &cache, 0, 8).map(|w| w.size));
            assert_eq!(sizes, [(limit > 0).then_some(limit); 2]);
        }
    }
}
