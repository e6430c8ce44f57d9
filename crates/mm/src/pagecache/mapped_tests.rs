//! Mapped files on a small machine.

use rules::{FaultAround, FaultAroundHits, FaultGfp, LargeFolios, ReadaheadMark, Rules, StoreFault, WrittenMeanwhile};
use units::{FileId, Gfp, Order, Pfn, SpaceId};

use super::rig::Rig;
use super::{Readahead, Slot};
use crate::anon::{Touch, TouchStop};
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::{Frame, Kind};

struct Mapped {
    rig: Rig,
    space: SpaceId,
    file: FileId,
    base: u32,
}

impl Mapped {
    /// A file of so many pages that is on disk, mapped.
    fn new(pages: u32) -> Mapped {
        Mapped::with(pages, LargeFolios::Never)
    }

    fn with(pages: u32, large_folios: LargeFolios) -> Mapped {
        let mut rig = Rig::with_rules(1, 8192, Rules { large_folios, ..Rules::newest() });
        let file = rig.on_disk(pages);
        let space = rig.mm.space_create();
        let base = rig.mm.mmap_file(space, file, pages, Readahead::default());
        Mapped { rig, space, file, base }
    }

    /// Accesses pages; says how often one was made dirty.
    fn touch(&mut self, index: u32, pages: u32, write: bool) -> u32 {
        let mut touch = Touch::new(self.space, self.base + index, pages, write, u64::MAX >> 1);
        let mut dirtied = 0;
        loop {
            match self.rig.mm.touch(&self.rig.env, &mut touch, None) {
                TouchStop::Done => break,
                TouchStop::Dirtied(file, _) => {
                    assert_eq!(file, self.file);
                    dirtied += 1;
                }
                TouchStop::Wait(pfn) => {
                    self.rig.collect();
                    while self.rig.mm.frames[pfn].has(Frame::LOCKED) {
                        assert!(self.rig.complete_one());
                    }
                }
                stop => panic!("{stop:?}"),
            }
        }
        self.rig.collect();
        self.check();
        dirtied
    }

    fn event(&self, event: VmEvent) -> u64 {
        self.rig.mm.stat.event(event)
    }

    fn check(&self) {
        self.rig.check();
        let mut violations = Vec::new();
        self.rig.mm.validate_anon(&mut violations);
        assert!(violations.is_empty(), "{violations:?}");
    }
}

#[test]
fn a_miss_reads_32_pages_around_it_and_maps_what_is_ready_of_16() {
    let mut m = Mapped::new(256);
    assert_eq!(m.touch(100, 1, false), 0);
    assert_eq!((m.event(VmEvent::Pgfault), m.event(VmEvent::Pgmajfault)), (1, 1));
    // 84 to before 116, the mark at 108. Once they are read, the fault maps 96 to 111 but for the marked page.
    assert_eq!(m.rig.mm.nr_cached(m.file), 32);
    assert_eq!(m.rig.mm.stat.node_sum(NodeStat::FileMapped), 15);
    m.touch(97, 1, false);
    assert_eq!(m.event(VmEvent::Pgfault), 1);
    // Meeting the mark reads the next window: 32 pages from 116 on.
    m.touch(108, 1, false);
    assert_eq!((m.event(VmEvent::Pgmajfault), m.rig.mm.nr_cached(m.file)), (1, 64));
}

#[test]
fn until_3_14_a_fault_maps_its_page_alone() {
    let mut m = Mapped::new(256);
    m.rig.mm.rules.fault_around = FaultAround::OnePage;
    m.touch(100, 4, false);
    assert_eq!((m.event(VmEvent::Pgfault), m.event(VmEvent::Pgmajfault)), (4, 1));
    assert_eq!((m.rig.mm.nr_cached(m.file), m.rig.mm.stat.node_sum(NodeStat::FileMapped)), (32, 4));
}

#[test]
fn a_mapping_that_is_read_at_random_reads_what_is_touched_and_no_more() {
    let mut m = Mapped::new(256);
    m.rig.mm.madvise_random(m.space, m.base);
    for (number, index) in [100, 101, 7].into_iter().enumerate() {
        m.touch(index, 1, false);
        assert_eq!((m.event(VmEvent::Pgmajfault), m.rig.mm.nr_cached(m.file)), (number as u64 + 1, number as u32 + 1));
    }
    m.touch(100, 2, false);
    assert_eq!(m.event(VmEvent::Pgmajfault), 3, "what was read is there");
}

#[test]
fn a_store_dirties_a_page_once_until_it_is_written() {
    let mut m = Mapped::new(64);
    assert_eq!(m.touch(0, 4, true), 4);
    assert_eq!(m.touch(0, 4, true), 0, "they are dirty");
    assert_eq!(m.event(VmEvent::Pgfault), 4);
    m.rig.write_back(m.file);
    m.rig.complete_all();
    assert_eq!(m.touch(0, 4, false), 0);
    assert_eq!(m.event(VmEvent::Pgfault), 4, "they are mapped still");
    assert_eq!(m.touch(0, 1, true), 1);
    assert_eq!((m.event(VmEvent::Pgfault), m.rig.mm.stat.node_sum(NodeStat::Dirtied)), (5, 5));
}

/// A store to the first page of a file that is under writeback, and the touch that came with it.
fn store_under_writeback(rule: WrittenMeanwhile) -> (Mapped, Touch, TouchStop) {
    let mut m = Mapped::new(64);
    m.rig.mm.rules.written_meanwhile = rule;
    m.touch(0, 1, true);
    m.rig.write_back(m.file);
    let mut touch = Touch::new(m.space, m.base, 1, true, u64::MAX >> 1);
    let stop = m.rig.mm.touch(&m.rig.env, &mut touch, None);
    (m, touch, stop)
}

#[test]
fn a_page_that_was_written_before_its_writer_goes_on_faults_again() {
    let mut m = Mapped::new(64);
    m.touch(0, 1, false);
    let mut touch = Touch::new(m.space, m.base, 1, true, u64::MAX >> 1);
    for stores in 1..=2 {
        assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Dirtied(m.file, 1));
        assert_eq!((m.event(VmEvent::Pgfault), m.rig.mm.stat.node_sum(NodeStat::Dirtied)), (1 + stores, stores));
        // Meanwhile its writer sleeps, because too much is dirty.
        if stores == 1 {
            m.rig.write_back(m.file);
            m.rig.complete_all();
        }
    }
    assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Done);
    m.check();
}

#[test]
fn a_store_takes_its_fault_again_once_from_5_5_to_5_19() {
    let faults = |rule, is_written: bool| {
        let mut m = Mapped::new(64);
        m.rig.mm.rules.store_fault = rule;
        m.touch(0, 1, false);
        let before = m.event(VmEvent::Pgfault);
        let mut touch = Touch::new(m.space, m.base, 1, true, u64::MAX >> 1);
        assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Dirtied(m.file, 1));
        if is_written {
            m.rig.write_back(m.file);
            m.rig.complete_all();
        }
        while m.rig.mm.touch(&m.rig.env, &mut touch, None) != TouchStop::Done {}
        m.check();
        m.event(VmEvent::Pgfault) - before
    };
    for rule in [StoreFault::KeepsLock, StoreFault::Completes] {
        assert_eq!((faults(rule, false), faults(rule, true)), (1, 2));
    }
    // Who takes it again makes a page dirty that was written meanwhile.
    assert_eq!((faults(StoreFault::Retries, false), faults(StoreFault::Retries, true)), (2, 2));
}

#[test]
fn a_store_to_a_page_under_writeback_waits_with_it_locked_from_3_0_to_3_8() {
    let (m, _, stop) = store_under_writeback(WrittenMeanwhile::Changes);
    assert_eq!(stop, TouchStop::Dirtied(m.file, 1));

    let (mut m, mut touch, stop) = store_under_writeback(WrittenMeanwhile::Waits);
    let pfn = m.rig.page(m.file, 0);
    assert_eq!(stop, TouchStop::WaitWriteback(pfn));
    assert!([Frame::LOCKED, Frame::DIRTY, Frame::WRITEBACK].iter().all(|&flag| m.rig.mm.frames[pfn].has(flag)));
    // Who would write it waits for the lock, though the writeback has ended.
    m.rig.complete_all();
    assert_eq!(m.rig.mm.write_dirty_pages(&m.rig.env, m.file, 0, u32::MAX).pages, 0);
    // It answers for the page once it has let go.
    assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Dirtied(m.file, 1));
    assert!(!m.rig.mm.frames[pfn].has(Frame::LOCKED));
    assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Done);
    m.check();
}

#[test]
fn who_is_killed_while_it_holds_a_page_lets_go_of_it() {
    let (mut m, touch, _) = store_under_writeback(WrittenMeanwhile::Waits);
    m.rig.mm.touch_cancel(&m.rig.env, touch, None);
    assert!(!m.rig.mm.frames[m.rig.page(m.file, 0)].has(Frame::LOCKED));
    m.rig.complete_all();
    m.check();
}

#[test]
fn a_page_that_is_truncated_while_a_fault_holds_it_is_gone() {
    let (mut m, mut touch, _) = store_under_writeback(WrittenMeanwhile::Waits);
    m.rig.mm.truncate_pages(&m.rig.env, m.file, 0);
    m.rig.complete_all();
    let free = m.rig.mm.stat.zone_sum(ZoneStat::FreePages);
    assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Dirtied(m.file, 1));
    assert_eq!(m.rig.mm.stat.zone_sum(ZoneStat::FreePages), free);
    m.check();
}

#[test]
fn beyond_the_end_of_the_file_there_is_nothing() {
    let mut m = Mapped::new(8);
    m.rig.mm.truncate_pages(&m.rig.env, m.file, 4);
    m.rig.mm.set_inode_size_pages(&m.rig.env, m.file, 4);
    let mut touch = Touch::new(m.space, m.base + 4, 1, false, u64::MAX >> 1);
    assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::IoError);
}

#[test]
fn what_reclaim_truncation_or_the_end_of_a_process_unmaps_is_mapped_no_more() {
    let mut m = Mapped::new(64);
    m.touch(0, 8, true);
    let page = |m: &Mapped, index| m.rig.page(m.file, index);
    let first: Pfn = page(&m, 0);
    assert!(m.rig.mm.try_to_unmap(&m.rig.env, first));
    assert!(!m.rig.mm.is_mapped(first) && m.rig.mm.frames[first].has(Frame::DIRTY));
    assert!(m.rig.mm.mincore(m.space, m.base), "it is cached");
    m.check();
    m.rig.mm.truncate_pages(&m.rig.env, m.file, 6);
    m.check();
    // An accessed bit counts as an access.
    assert!(!m.rig.mm.frames[page(&m, 1)].has(Frame::REFERENCED));
    let env = m.rig.env;
    m.rig.mm.space_exit(&env, m.space);
    assert!(m.rig.mm.frames[page(&m, 1)].has(Frame::REFERENCED));
    assert_eq!(m.rig.mm.stat.node_sum(NodeStat::FileMapped), 0);
    m.check();
}

#[test]
fn a_page_that_moves_stays_mapped() {
    let mut m = Mapped::new(64);
    m.touch(0, 1, false);
    m.rig.complete_all();
    let old = m.rig.page(m.file, 0);
    let request = crate::AllocRequest { gfp: units::Gfp::HIGHUSER_MOVABLE, order: Order(0), node: m.rig.env.node };
    let new = m.rig.mm.alloc_pages(&m.rig.env, request).expect("memory is plentiful");
    m.rig.mm.lru_del(old);
    m.rig.mm.pagecache_replace(old, new);
    m.rig.mm.lru_add(&m.rig.env, new);
    m.rig.mm.free_pages(&m.rig.env, old, Order(0));
    assert_eq!(m.rig.mm.frames[new].kind(), Kind::File);
    let faults = m.event(VmEvent::Pgfault);
    m.touch(0, 1, false);
    assert_eq!(m.event(VmEvent::Pgfault), faults, "the page table points to the new frame");
}

#[test]
fn page_tables_map_the_pages_of_a_large_folio_one_by_one() {
    let mut m = Mapped::with(256, LargeFolios::Written);
    m.touch(100, 1, false);
    // As above, 84 to before 116, in folios of order 2: all four pages of the marked one, at 108, are left out.
    assert_eq!(m.rig.mm.stat.node_sum(NodeStat::FileMapped), 12);
    let folio = m.rig.page(m.file, 100);
    assert_eq!((m.rig.mm.frames[folio].order(), m.rig.mm.mappings_of(folio).len()), (Order(2), 4));
    // A store dirties all of it, and its pages are written as a whole.
    let mut touch = Touch::new(m.space, m.base + 101, 1, true, u64::MAX >> 1);
    assert_eq!(m.rig.mm.touch(&m.rig.env, &mut touch, None), TouchStop::Dirtied(m.file, 4));
    assert_eq!(m.rig.mm.pagecache.trees.nr_dirty(m.file.0), 4);
    m.rig.write_back(m.file);
    m.rig.complete_all();
    // What is cut is mapped no more, and comes back page by page.
    assert!(m.rig.mm.split_folio(folio));
    assert_eq!(m.rig.mm.stat.node_sum(NodeStat::FileMapped), 8);
    m.check();
    m.touch(101, 1, false);
    assert_eq!(m.rig.mm.stat.node_sum(NodeStat::FileMapped), 12);
    m.rig.mm.space_exit(&m.rig.env, m.space);
    assert_eq!(m.rig.mm.stat.node_sum(NodeStat::FileMapped), 0);
    m.rig.check();
}

#[test]
fn which_pages_around_a_fault_make_misses_fewer_is_a_rule() {
    use FaultAroundHits::{Mapped as Maps, Met, NotEvicted};
    let misses = |rule| {
        let mut m = Mapped::new(256);
        m.rig.mm.rules.fault_around = FaultAround::OnePage;
        m.touch(100, 1, false);
        m.touch(97, 1, false);
        m.rig.mm.rules.fault_around = FaultAround::MapsAround;
        m.rig.mm.rules.fault_around_hits = rule;
        let evicted_once = m.rig.page(m.file, 98);
        m.rig.mm.frames[evicted_once].set(Frame::WORKINGSET);
        m.rig.mm.pagecache.maps[0].misses = 50;
        m.touch(99, 1, false);
        m.rig.mm.pagecache.maps[0].misses
    };
    // Of the 16 pages from 96 on, 108 is marked, 97 and 100 are mapped already, and 98 was evicted before.
    assert_eq!([Maps, Met, NotEvicted].map(misses), [50 - 13, 50 - 15, 50 - 14]);
}

#[test]
fn since_4_5_a_fault_that_reads_a_page_alone_may_enter_the_file_system() {
    let mut m = Mapped::new(8);
    let own = m.rig.mm.mapping_gfp(m.file);
    assert!(!own.contains(Gfp::FS), "it is on XFS");
    let mut gfp = |rule| {
        m.rig.mm.rules.fault_gfp = rule;
        m.rig.mm.fault_gfp(m.file)
    };
    assert_eq!([FaultGfp::Mapping, FaultGfp::EntersFs].map(&mut gfp), [own, own.with(Gfp::FS)]);
}

#[test]
fn since_5_8_a_window_that_the_file_cuts_is_marked_before_its_end() {
    let mark = |rule, index| {
        let mut m = Mapped::new(64);
        m.rig.mm.rules.readahead_mark = rule;
        m.touch(index, 1, false);
        (0..64).find(|at| match m.rig.mm.pagecache_get(m.file, *at) {
            Slot::Page(pfn) => m.rig.mm.frames[pfn].has(Frame::READAHEAD),
            _ => false,
        })
    };
    // 44 to before 76, the last 8 of them ahead: 68 is behind the file's end at 64, 8 before that is 56.
    assert_eq!([ReadaheadMark::OfWindow, ReadaheadMark::OfRead].map(|rule| mark(rule, 60)), [None, Some(56)]);
    // 40 to before 72: 64 and 56; 16 to before 48 is within the file.
    assert_eq!([ReadaheadMark::OfWindow, ReadaheadMark::OfRead].map(|rule| mark(rule, 56)), [None, Some(56)]);
    assert_eq!([ReadaheadMark::OfWindow, ReadaheadMark::OfRead].map(|rule| mark(rule, 32)), [Some(40); 2]);
}

#[test]
fn a_mapping_is_read_ahead_as_far_as_its_device_allows() {
    for (ahead, window) in [(8, 96..104), (32, 84..116)] {
        let mut m = Mapped::new(200);
        m.base = m.rig.mm.mmap_file(m.space, m.file, 200, Readahead::new(ahead));
        m.touch(100, 1, false);
        let cached = |index: &u32| matches!(m.rig.mm.pagecache_get(m.file, *index), Slot::Page(_));
        assert_eq!((0..200).filter(cached).collect::<Vec<_>>(), window.collect::<Vec<_>>());
    }
}
