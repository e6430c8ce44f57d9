//! What ext4 remembers of extents.

use std::collections::BTreeMap;

use rules::{DelayedBlocks, ExtentLookup, ExtentStatus, HoleLookup};

use super::*;
use crate::pagecache::Readahead;
use crate::pagecache::rig::Rig;
use crate::vfs::statuses::Status;

const STATUS: ShrinkerId = ShrinkerId::ExtentStatus;

/// 4.4, as far as it matters here.
fn rules_4_4() -> Rules {
    Rules {
        extent_status: ExtentStatus::Unmarked,
        extent_lookup: ExtentLookup::Found,
        hole_lookup: HoleLookup::FromExtent,
        delayed_blocks: DelayedBlocks::Written,
        ..Rules::newest()
    }
}

fn freeable(rig: &mut Rig) -> u64 {
    rig.mm.shrinker_count(STATUS, SHARE)
}

fn shrink_statuses(rig: &mut Rig, nr: u64) -> u64 {
    let freed = rig.mm.shrinker_scan(&rig.env, STATUS, SHARE, nr, Gfp::KERNEL).freed;
    rig.check();
    freed
}

/// Writes pages of a file back.
fn write_back(rig: &mut Rig, file: FileId) {
    rig.write_back(file);
    rig.complete_all();
}

fn truncate(rig: &mut Rig, file: FileId, pages: u32) {
    rig.mm.truncate_pages(&rig.env, file, pages);
    rig.mm.set_inode_size_pages(&rig.env, file, pages);
    rig.collect();
}

fn read(rig: &mut Rig, file: FileId, page: u32) {
    rig.read(file, page, 1, &mut Readahead::new(0));
    rig.complete_all();
}

/// The entries of a file: `w`ritten, `d`elayed, `h`ole, `u`nwritten, their pages, `*` where they are marked.
fn entries(rig: &Rig, file: FileId) -> String {
    let name = |entry: crate::vfs::statuses::Entry| {
        let letter = ['w', 'd', 'h', 'u'][entry.status as usize];
        let end = if entry.end == u32::MAX { String::new() } else { entry.end.to_string() };
        format!("{letter}{}-{end}{}", entry.start, if entry.referenced { "*" } else { "" })
    };
    rig.mm.vfs.statuses_from(file, 0).map(name).collect::<Vec<_>>().join(" ")
}

/// Objects in use, without those that are free on a CPU's slab.
fn objects(rig: &Rig) -> usize {
    let files = (0..rig.mm.vfs.files.len() as u32).map(FileId).filter(|file| rig.mm.has_statuses(*file));
    let of = |file| rig.mm.vfs.statuses_from(file, 0).map(|entry| entry.obj).collect::<Vec<_>>();
    let all: Vec<_> = files.flat_map(of).collect();
    assert!(all.iter().all(|obj| obj.is_some()));
    std::collections::BTreeSet::from_iter(&all).len()
}

#[test]
fn a_file_written_in_order_has_an_entry_of_its_blocks_and_one_of_the_hole_behind_them() {
    for (rules, hole) in [(Rules::newest(), "*"), (rules_4_4(), "")] {
        let mut rig = Rig::ext4_with(1 << 14, rules);
        let file = rig.create();
        assert_eq!(freeable(&mut rig), 0, "nothing was looked up");
        rig.write(file, 0);
        assert_eq!(entries(&rig, file), format!("d0-1 h1-{hole}"));
        assert_eq!(freeable(&mut rig), 1, "the hole; the blocks are delayed");
        rig.write(file, 1);
        assert_eq!(entries(&rig, file), format!("d0-2 h2-{hole}"));
        write_back(&mut rig, file);
        assert_eq!(entries(&rig, file), format!("w0-2 h2-{hole}"));
        assert_eq!((freeable(&mut rig), objects(&rig)), (2, 2));
    }
}

#[test]
fn a_page_written_apart_splits_the_hole_and_a_page_between_two_joins_them() {
    let mut rig = Rig::ext4(1 << 14);
    let file = rig.create();
    rig.write(file, 5);
    assert_eq!(entries(&rig, file), "h0-5* d5-6 h6-*");
    rig.write(file, 3);
    assert_eq!(entries(&rig, file), "h0-3* d3-4 h4-5* d5-6 h6-*");
    assert_eq!((freeable(&mut rig), objects(&rig)), (3, 5));
    rig.write(file, 4);
    assert_eq!(entries(&rig, file), "h0-3* d3-6 h6-*");
    // A second write of the page finds its block in its buffer.
    shrink_statuses(&mut rig, 3);
    rig.write(file, 4);
    assert_eq!(entries(&rig, file), "h0-3 d3-6 h6-");
    write_back(&mut rig, file);
    rig.write(file, 0);
    assert_eq!(entries(&rig, file), "d0-1 h1-3* w3-6 h6-");
    write_back(&mut rig, file);
    // Its block is not beside theirs.
    rig.write(file, 1);
    rig.write(file, 2);
    write_back(&mut rig, file);
    let block = |page| rig.mm.map_block(file, page).expect("it was written").sector / 8;
    assert_eq!(block(1) + 1, block(2));
    let (low, high) = (block(0) + 1 == block(1), block(2) + 1 == block(3));
    let expected = match (low, high) {
        (true, false) => "w0-3 w3-6 h6-",
        (false, true) => "w0-1 w1-6 h6-",
        (true, true) => "w0-6 h6-",
        (false, false) => "w0-1 w1-3 w3-6 h6-",
    };
    assert_eq!(entries(&rig, file), expected);
}

#[test]
fn a_delayed_entry_stays_and_one_that_was_looked_up_gets_another_round() {
    let mut rig = Rig::ext4(1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    assert_eq!(shrink_statuses(&mut rig, 10), 0, "the hole was looked up again before the page was delayed");
    assert_eq!(shrink_statuses(&mut rig, 10), 1);
    assert_eq!(entries(&rig, file), "d0-1");
    write_back(&mut rig, file);
    assert_eq!((freeable(&mut rig), shrink_statuses(&mut rig, 1)), (1, 1));
    // A read that finds nothing in memory looks the blocks up.
    rig.evict(file, 0);
    read(&mut rig, file, 0);
    assert_eq!(entries(&rig, file), "w0-1");
    rig.evict(file, 0);
    read(&mut rig, file, 0);
    assert_eq!(entries(&rig, file), "w0-1*");
}

#[test]
fn until_4_20_the_mark_is_lost_and_until_3_7_there_is_nothing() {
    for (extent_status, freed) in [(ExtentStatus::Marked, 0), (ExtentStatus::Unmarked, 1), (ExtentStatus::None, 0)] {
        let mut rig = Rig::ext4_with(1 << 14, Rules { extent_status, ..Rules::newest() });
        let file = rig.create();
        rig.write(file, 0);
        rig.write(file, 1);
        assert_eq!(freeable(&mut rig), u64::from(extent_status != ExtentStatus::None), "the hole");
        assert_eq!(shrink_statuses(&mut rig, 10), freed);
    }
}

#[test]
fn since_5_6_a_lookup_brings_all_extents_of_the_inode_and_the_holes_between_them() {
    for (rules, after) in [(Rules::newest(), "w0-2 h2-4 w4-6"), (rules_4_4(), "w4-5")] {
        let mut rig = Rig::ext4_with(1 << 14, rules);
        let file = rig.create();
        for page in [0, 1, 4, 5] {
            rig.write(file, page);
        }
        write_back(&mut rig, file);
        shrink_statuses(&mut rig, 10);
        shrink_statuses(&mut rig, 10);
        assert_eq!(entries(&rig, file), "");
        rig.evict(file, 4);
        read(&mut rig, file, 4);
        assert_eq!(entries(&rig, file), after);
    }
}

#[test]
fn until_6_7_the_hole_that_is_remembered_may_lie_before_the_page() {
    for (hole_lookup, expected) in
        [(HoleLookup::AroundPage, "d2-3 d7-8 h8-*"), (HoleLookup::FromExtent, "h0-2 d2-3 d7-8")]
    {
        let mut rig = Rig::ext4_with(1 << 14, Rules { hole_lookup, ..Rules::newest() });
        let file = rig.create();
        rig.write(file, 2);
        shrink_statuses(&mut rig, 10);
        shrink_statuses(&mut rig, 10);
        assert_eq!(entries(&rig, file), "d2-3");
        rig.write(file, 7);
        assert_eq!(entries(&rig, file), expected);
    }
}

#[test]
fn truncation_and_eviction_take_the_entries() {
    let mut rig = Rig::ext4(1 << 14);
    let handle = rig.mm.vfs_create(&rig.env, rig.dir).expect("memory is plentiful");
    let file = handle.file;
    for page in [0, 1, 2, 5] {
        rig.write(file, page);
    }
    truncate(&mut rig, file, 2);
    assert_eq!((entries(&rig, file).as_str(), freeable(&mut rig)), ("d0-2", 0));
    write_back(&mut rig, file);
    rig.mm.vfs_close(&rig.env, handle);
    rig.mm.vfs_unlink(&rig.env, file).expect("all of it is in memory");
    rig.collect();
    rig.check();
    assert_eq!((freeable(&mut rig), rig.mm.vfs.statuses.list.len()), (0, 0));
}

#[test]
fn the_shrinker_goes_round_the_inodes_and_goes_on_where_it_stopped() {
    let mut rig = Rig::ext4_with(1 << 14, rules_4_4());
    let files: Vec<FileId> = (0..10).map(|_| rig.create()).collect();
    for &file in &files {
        rig.write(file, 0);
        write_back(&mut rig, file);
    }
    assert_eq!(freeable(&mut rig), 20);
    assert_eq!((shrink_statuses(&mut rig, 5), shrink_statuses(&mut rig, 5)), (5, 5));
    // Two of each file but the third, of which the hole was left when it came to it: it was at the tail by then.
    let left: Vec<String> = files.iter().map(|file| entries(&rig, *file)).collect();
    assert_eq!(left[..7], ["", "", "h1-", "", "", "h1-", "w0-1 h1-"]);
    assert_eq!(shrink_statuses(&mut rig, 8), 8);
    let listed: Vec<u32> = rig.mm.vfs.statuses.list.iter(&rig.mm.vfs.statuses.links).collect();
    assert_eq!(listed, [files[2].0, files[5].0]);
}

#[test]
fn within_a_file_the_shrinker_wraps_round() {
    let mut rig = Rig::ext4_with(1 << 14, Rules { hole_lookup: HoleLookup::FromExtent, ..Rules::newest() });
    let file = rig.create();
    for page in [1, 3, 5] {
        rig.write(file, page);
    }
    assert_eq!(entries(&rig, file), "h0-1 d1-2 h2-3* d3-4 h4-5* d5-6 h6-*");
    assert_eq!(shrink_statuses(&mut rig, 3), 1);
    assert_eq!(entries(&rig, file), "d1-2 h2-3 d3-4 h4-5* d5-6 h6-*");
    // Four to the end, and one from the start.
    assert_eq!(shrink_statuses(&mut rig, 5), 0);
    assert_eq!(entries(&rig, file), "d1-2 h2-3 d3-4 h4-5 d5-6 h6-");
    assert_eq!(shrink_statuses(&mut rig, 1), 1);
    assert_eq!(entries(&rig, file), "d1-2 d3-4 h4-5 d5-6 h6-");
}

#[test]
fn blocks_are_unwritten_until_their_data_is_there() {
    for (rules, under_way) in [(Rules::newest(), "u0-3"), (rules_4_4(), "w0-3")] {
        let mut rig = Rig::ext4_with(1 << 14, rules);
        let file = rig.create();
        for page in 0..3 {
            rig.write(file, page);
        }
        rig.mm.write_dirty_pages(&rig.env, file, 0, 3);
        rig.collect();
        assert_eq!(entries(&rig, file).replace('*', "").split(' ').next(), Some(under_way));
        rig.complete_all();
        assert_eq!(entries(&rig, file).replace('*', "").split(' ').next(), Some("w0-3"));
        rig.check();
    }
}

/// Pages of the files of the property; the last stands for all behind it.
const LAST: u32 = 24;

/// What is known of each page, and whether its entry is marked.
struct Model {
    rules: Rules,
    pages: BTreeMap<u32, (Status, bool)>,
    resume: u32,
    /// First pages and ends of the file's extents, and whether they are in a leaf.
    extents: Vec<(u32, u32)>,
    leaf: bool,
}

type Run = (u32, u32, Status, bool);

impl Model {
    fn new(rules: Rules) -> Model {
        Model { rules, pages: BTreeMap::new(), resume: 0, extents: Vec::new(), leaf: false }
    }

    fn see_extents(&mut self, rig: &Rig, file: FileId) {
        self.leaf = rig.mm.vfs.has_leaf(file);
        self.extents.clear();
        let mut page = 0;
        while page < LAST {
            let found = rig.mm.vfs.find_extent(file, page);
            self.extents.extend(found.map(|(_, blocks)| (page, page + blocks)));
            page += found.map_or(1, |(_, blocks)| blocks);
        }
    }

    fn is_mapped(&self, page: u32) -> bool {
        self.extents.iter().any(|(start, end)| (*start..*end).contains(&page))
    }

    /// Runs of pages of one status whose blocks, if they have any, follow each other.
    fn runs(&self, rig: &Rig, file: FileId) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let block = |page: u32| rig.mm.map_block(file, page).map(|extent| extent.sector / 8);
        for (&page, &(status, mark)) in &self.pages {
            let follows = || !status.has_blocks() || block(page - 1).map(|last| last + 1) == block(page);
            match runs.last_mut() {
                Some(run) if run.1 == page && run.2 == status && follows() => {
                    (run.1, run.3) = (page + 1, run.3 | mark);
                }
                _ => runs.push((page, page + 1, status, mark)),
            }
        }
        runs
    }

    /// A mark is that of the whole entry.
    fn spread(&mut self, rig: &Rig, file: FileId) {
        for (start, end, status, mark) in self.runs(rig, file) {
            self.pages.extend((start..end).map(|page| (page, (status, mark))));
        }
    }

    fn look_up(&mut self, rig: &Rig, file: FileId, page: u32) -> Option<Status> {
        let (status, mark) = self.pages.get_mut(&page)?;
        *mark |= self.rules.extent_status == ExtentStatus::Marked;
        let status = *status;
        self.spread(rig, file);
        Some(status)
    }

    fn insert(&mut self, rig: &Rig, file: FileId, pages: std::ops::Range<u32>, status: Status) {
        self.pages.extend(pages.map(|page| (page, (status, false))));
        self.spread(rig, file);
    }

    fn root(&mut self, rig: &Rig, file: FileId) {
        if self.rules.extent_lookup == ExtentLookup::Found || self.leaf {
            return;
        }
        let mut before = 0;
        for (start, end) in self.extents.clone() {
            let hole = if before > 0 { before..start } else { 0..0 };
            for (range, status) in [(hole, Status::Hole), (start..end, Status::Written)] {
                if range.clone().all(|page| !self.pages.contains_key(&page)) {
                    self.insert(rig, file, range, status);
                }
            }
            before = end;
        }
    }

    fn found(&mut self, rig: &Rig, file: FileId, page: u32) -> bool {
        self.root(rig, file);
        if self.is_mapped(page) {
            self.insert(rig, file, page..page + 1, Status::Written);
            return true;
        }
        let before = (0..page).rev().find(|page| self.is_mapped(*page)).map(|page| page + 1);
        let after = (page..LAST).find(|page| self.is_mapped(*page));
        let start = before.unwrap_or(if after.is_some() { page } else { 0 });
        let end = after.unwrap_or(LAST + 1);
        let delayed = |page: &u32| self.pages.get(page).is_some_and(|(status, _)| *status == Status::Delayed);
        let hole = match self.rules.hole_lookup {
            HoleLookup::AroundPage => {
                let start = if (start..page).any(|page| delayed(&page)) { page } else { start };
                start..(page..end).find(delayed).unwrap_or(end)
            }
            HoleLookup::FromExtent => start..(start..end).find(delayed).unwrap_or(end),
        };
        self.insert(rig, file, hole, Status::Hole);
        false
    }

    fn write(&mut self, rig: &Rig, file: FileId, page: u32) {
        match self.look_up(rig, file, page) {
            Some(Status::Written | Status::Delayed) => return,
            None if self.found(rig, file, page) => return,
            _ => {}
        }
        if self.rules.hole_lookup == HoleLookup::AroundPage {
            self.look_up(rig, file, page);
        }
        self.insert(rig, file, page..page + 1, Status::Delayed);
    }

    /// Goes over entries; where it goes on, and whether it saw all.
    fn pass(&mut self, runs: &[Run], nr: &mut u64) -> Option<u32> {
        for &(from, to, status, mark) in runs {
            if *nr == 0 {
                return Some(from);
            }
            *nr -= 1;
            for page in from..to {
                match (status, mark) {
                    (Status::Delayed, _) => {}
                    (_, true) => self.pages.get_mut(&page).expect("it is known").1 = false,
                    _ => _ = self.pages.remove(&page),
                }
            }
        }
        None
    }

    fn shrink(&mut self, rig: &Rig, file: FileId, mut nr: u64) {
        let runs = self.runs(rig, file);
        if runs.iter().all(|run| run.2 == Status::Delayed) {
            return;
        }
        let start = std::mem::take(&mut self.resume);
        let first = runs.iter().position(|run| run.1 > start).unwrap_or(runs.len());
        let stopped = self.pass(&runs[first..], &mut nr);
        if start == 0 || stopped.is_some() {
            self.resume = stopped.unwrap_or(0);
            return;
        }
        let runs = self.runs(rig, file);
        let end = runs.iter().position(|run| run.0 >= start).unwrap_or(runs.len());
        let stopped = self.pass(&runs[..end], &mut nr);
        self.resume = match (stopped, runs.get(end)) {
            (Some(at), _) => at,
            (None, None) => 0,
            (None, Some(next)) => {
                if nr == 0 {
                    next.0
                } else {
                    start
                }
            }
        };
    }
}

/// Writes all that is dirty of a file back, a run at a time.
fn write_back_runs(rig: &mut Rig, file: FileId, model: &mut Model) {
    let delayed = model.pages.iter().filter(|(_, known)| known.0 == Status::Delayed);
    let delayed: Vec<u32> = delayed.map(|(page, _)| *page).collect();
    let runs: Vec<_> = delayed.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[0] + run.len() as u32).collect();
    let converts = model.rules.delayed_blocks == DelayedBlocks::Unwritten;
    for run in &runs {
        model.see_extents(rig, file);
        rig.mm.write_dirty_pages(&rig.env, file, run.start, run.len() as u32);
        rig.collect();
        model.root(rig, file);
        model.insert(rig, file, run.clone(), if converts { Status::Unwritten } else { Status::Written });
    }
    write_back(rig, file);
    model.see_extents(rig, file);
    for run in runs.into_iter().filter(|_| converts) {
        model.look_up(rig, file, run.start);
        model.root(rig, file);
        model.insert(rig, file, run, Status::Written);
    }
}

/// What is so of a page: it is in memory, and has its buffer.
fn cached(rig: &Rig, file: FileId, page: u32) -> (bool, bool) {
    match rig.mm.pagecache_get(file, page) {
        crate::pagecache::Slot::Page(pfn) => (true, rig.mm.has_buffers(pfn)),
        _ => (false, false),
    }
}

proptest! {
    #[test]
    fn entries_are_those_of_a_table_by_page(
        which in 0usize..3,
        ops in proptest::collection::vec((0u32..12, 0u32..LAST, 1u64..6), 1..80),
    ) {
        let mixed = Rules { extent_lookup: ExtentLookup::Found, ..Rules::newest() };
        let rules = [Rules::newest(), rules_4_4(), mixed][which].clone();
        let (mut rig, mut model) = (Rig::ext4_with(1 << 14, rules.clone()), Model::new(rules));
        let (file, other) = (rig.create(), rig.create());
        for (n, (op, page, nr)) in ops.into_iter().enumerate() {
            model.see_extents(&rig, file);
            let (in_memory, has_buffer) = cached(&rig, file, page);
            match op {
                0..6 => {
                    rig.write(file, page);
                    if !has_buffer {
                        model.write(&rig, file, page);
                    }
                }
                6 => {
                    // Somebody else's blocks come between.
                    rig.write(other, n as u32);
                    write_back(&mut rig, other);
                    write_back_runs(&mut rig, file, &mut model);
                }
                7 if in_memory && model.is_mapped(page) && !rig.mm.frames[rig.page(file, page)].has(crate::Frame::DIRTY) => {
                    rig.evict(file, page);
                    read(&mut rig, file, page);
                    if model.look_up(&rig, file, page).is_none() {
                        model.found(&rig, file, page);
                    }
                }
                8 if page < rig.mm.inode_size_pages(file) => {
                    truncate(&mut rig, file, page);
                    model.pages.retain(|at, _| *at < page);
                }
                9.. => {
                    // Those of the other file go first: a mark, then the entry.
                    for _ in 0..2 {
                        rig.mm.reclaim_statuses(&rig.env, other, &mut u64::from(LAST * 8));
                    }
                    shrink_statuses(&mut rig, nr);
                    model.shrink(&rig, file, nr);
                }
                _ => {}
            }
            rig.check();
            let plain = |(start, end, status, mark): Run| (start, end, status, mark && status != Status::Delayed);
            let found = rig.mm.vfs.statuses_from(file, 0).map(|e| (e.start, e.end.min(LAST + 1), e.status, e.referenced));
            let expected = model.runs(&rig, file);
            prop_assert_eq!(found.map(plain).collect::<Vec<_>>(), expected.iter().copied().map(plain).collect::<Vec<_>>());
            prop_assert_eq!(objects(&rig), expected.len() + rig.mm.vfs.statuses_from(other, 0).count());
        }
    }
}
