//! Throttling and the flusher on small machines.

use rules::{BioVectors, IoendEnd, MapLock, Redirtied, Rules, WrittenMeanwhile, XfsWriteMap, XfsWritepage};
use units::{Bytes, FileId, Nanos, Pfn};

use super::{FlushStep, FlushWork, Fsync, FsyncStep, Pause, TaskDirty, WbId};
use crate::pagecache::WriteStop;
use crate::pagecache::rig::{Rig, old_rules};
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::vfs::FsSpec;
use crate::{BioTarget, Effect, Frame, LruList, TaskFlags, WakeFlusher};

const DEVICE: u16 = 3;
/// The root group's writeback of it.
const WB: WbId = WbId::root(DEVICE);

/// Runs the flusher until it sleeps; what it submitted stays queued. Gives the time until which it sleeps.
fn flush(rig: &mut Rig, work: &mut FlushWork) -> Option<Nanos> {
    for _ in 0..100_000 {
        let step = rig.mm.writeback_step(&rig.env, WB, work, 1024);
        rig.collect();
        match step {
            FlushStep::More => {}
            FlushStep::Wait(_) => assert!(rig.complete_one()),
            FlushStep::Journal(_) => panic!("nothing commits"),
            FlushStep::Busy => panic!("no other task writes"),
            FlushStep::Idle(until) => return until,
        }
    }
    panic!("the flusher does not end");
}

/// Files of the queued data bios in the order of their submission, by number.
fn submitted(rig: &mut Rig, files: &[FileId]) -> Vec<usize> {
    let number = |file: FileId| files.iter().position(|&f| f == file).expect("one of ours");
    let bios: Vec<_> = rig.bios.iter().copied().collect();
    rig.complete_all();
    bios.iter()
        .filter_map(|b| if let BioTarget::File { file, .. } = b.target { Some(number(file)) } else { None })
        .collect()
}

/// A machine whose device has written something, so that it has a share of the limits.
fn used() -> Rig {
    let mut rig = Rig::new(1, 1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    rig.write_back(file);
    rig.complete_all();
    rig.mm.truncate_pages(&rig.env, file, 0);
    rig.effects.clear();
    rig
}

#[test]
fn a_device_that_never_wrote_has_no_share_and_flushes_at_the_first_wake_up() {
    let mut rig = Rig::new(1, 1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    rig.at(Nanos::secs(5));
    // Share 0 of 1: the background limit of the device is 0, and 1 page is more.
    assert!(rig.mm.wb_over_bg_thresh(&rig.env, WB));
    assert_eq!(flush(&mut rig, &mut FlushWork::default()), None);
    assert_eq!(submitted(&mut rig, &[file]), [0]);
    rig.write(file, 0);
    assert!(!rig.mm.wb_over_bg_thresh(&rig.env, WB));
}

#[test]
fn the_periodic_flush_takes_what_is_30_s_old_oldest_first() {
    let mut rig = used();
    let files: Vec<FileId> = (0..4).map(|_| rig.create()).collect();
    let mut work = FlushWork::default();
    // Dirtied at 0, 10, 20 and 30 s; the flusher looks every 5 s.
    let mut log = Vec::new();
    for tick in 0..=14u64 {
        rig.at(Nanos::secs(5 * tick));
        if tick % 2 == 0 && tick <= 6 {
            rig.write(files[tick as usize / 2], 0);
        }
        flush(&mut rig, &mut work);
        log.extend(submitted(&mut rig, &files).into_iter().map(|file| (5 * tick, file)));
    }
    assert_eq!(log, [(30, 0), (40, 1), (50, 2), (60, 3)]);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::FileDirty), 0);
    rig.check();
}

#[test]
fn the_first_dirty_inode_arms_the_flusher_and_the_last_lets_it_sleep() {
    let mut rig = used();
    let files = [rig.create(), rig.create()];
    rig.at(Nanos::secs(7));
    rig.write(files[0], 0);
    rig.write(files[1], 0);
    let arms: Vec<_> = rig.effects.iter().filter(|e| matches!(e, Effect::ArmFlusher(..))).collect();
    assert_eq!(arms, [&Effect::ArmFlusher(WB, Nanos::secs(12))]);
    let mut work = FlushWork::default();
    rig.at(Nanos::secs(12));
    assert_eq!(flush(&mut rig, &mut work), Some(Nanos::secs(17)));
    rig.at(Nanos::secs(37));
    assert_eq!(flush(&mut rig, &mut work), None, "nothing is dirty");
    rig.complete_all();
    rig.check();
}

#[test]
fn background_work_stops_below_the_limit() {
    let mut rig = Rig::new(1, 1 << 14);
    let limits = rig.mm.global_dirty_limits();
    let files: Vec<FileId> = (0..40).map(|_| rig.create()).collect();
    let mut n = 0;
    // A fifth more than the background limit, in files of 64 pages.
    while rig.mm.stat.node_sum(NodeStat::FileDirty) < limits.background * 6 / 5 {
        rig.write(files[n / 64], (n % 64) as u32);
        n += 1;
    }
    assert!(rig.mm.wb_over_bg_thresh(&rig.env, WB));
    let dirty = rig.mm.stat.node_sum(NodeStat::FileDirty);
    flush(&mut rig, &mut FlushWork::default());
    // One batch lasts until 100 ms have passed, and no time passes here: it takes all of b_io.
    assert_eq!(rig.mm.stat.node_sum(NodeStat::FileDirty), 0);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::Writeback), dirty);
    assert_eq!(submitted(&mut rig, &files)[..2], [0, 1], "oldest first");
    assert!(!rig.mm.wb_over_bg_thresh(&rig.env, WB));
    rig.check();
}

#[test]
fn a_large_file_is_written_in_slices_and_a_small_one_in_between() {
    let mut rig = Rig::new(1, 1 << 15);
    rig.mm.rules.bio_vectors = BioVectors::Pages;
    let (large, small) = (rig.create(), rig.create());
    for index in 0..3000 {
        rig.write(large, index);
    }
    rig.write(small, 0);
    rig.mm.ask_flushers(WakeFlusher::Vmscan);
    // The slice is the least, 1024 pages and what an eighth of the limit of 32768 * 20 % allows, rounded down.
    let slice = (rig.mm.global_dirty_limits().dirty / 8 + 1024) / 1024 * 1024;
    assert_eq!(slice, 1024);
    flush(&mut rig, &mut FlushWork::default());
    let order = submitted(&mut rig, &[large, small]);
    // 4 bios of 256 pages are a slice. Then the small file, then the rest of the large one: 2976 - ... in 8 bios.
    assert_eq!(order, [vec![0; 4], vec![1], vec![0; 8]].concat());
    rig.check();
}

#[test]
fn a_written_bio_is_one_run_of_pages() {
    let mut rig = Rig::new(1, 1 << 14);
    rig.mm.rules.bio_vectors = BioVectors::Pages;
    let file = rig.create();
    for index in (0..300).chain(400..410) {
        rig.write(file, index);
    }
    rig.write_back(file);
    let bios: Vec<_> = rig.bios.iter().map(|b| (b.target, b.pages, b.write)).collect();
    let at = |index| BioTarget::File { file, index };
    assert_eq!(bios, [(at(0), 256, true), (at(256), 44, true), (at(400), 10, true)]);
    assert_eq!(rig.bios[1].sector, rig.bios[0].sector + 256 * 8, "the blocks of a run are contiguous");
    assert_eq!(rig.mm.stat.event(VmEvent::Pgpgout), 310 * 4);
    assert_eq!(rig.mm.dirty_pages_of(file), (0, 310));
    // Pages dirtied during their writeback are not written again before it ends.
    rig.write(file, 5);
    rig.bios.clear();
    rig.write_back(file);
    assert!(rig.bios.is_empty());
    assert_eq!(rig.mm.stat.zone_sum(ZoneStat::WritePending), 311);
    rig.check();
}

#[test]
fn pages_side_by_side_in_memory_share_a_vector_of_256() {
    let mut rig = Rig::new(1, 1 << 14);
    assert_eq!(rig.mm.rules.bio_vectors, BioVectors::Segments);
    let file = rig.create();
    for index in 0..5000 {
        rig.write(file, index);
    }
    // Somewhere pages from elsewhere lie in between.
    let other = rig.create();
    for index in 0..400 {
        rig.write(other, index);
        rig.write(file, 5000 + index);
    }
    rig.write_back(file);
    let vectors = |rig: &Rig, pages: std::ops::Range<u32>| {
        let pfns: Vec<u32> = pages.map(|index| rig.page(file, index).0).collect();
        1 + pfns.windows(2).filter(|pair| pair[1] != pair[0] + 1).count()
    };
    let bios: Vec<(u32, u32)> = rig.bios.iter().map(|bio| (bio.first_index(), bio.pages)).collect();
    assert_eq!(bios.iter().map(|(_, pages)| pages).sum::<u32>(), 5400);
    for (nth, &(first, pages)) in bios.iter().enumerate() {
        assert!(vectors(&rig, first..first + pages) <= 256 && pages <= 4096, "{bios:?}");
        let more = nth + 1 < bios.len();
        assert!(
            !more || pages == 4096 || vectors(&rig, first..first + pages + 1) > 256,
            "it could hold more: {bios:?}"
        );
    }
    assert!(bios.len() > 1 && bios[0].1 > 256, "{bios:?}");
}

#[test]
fn a_page_that_reclaim_wants_goes_to_the_tail_when_it_is_written() {
    let mut rig = Rig::new(1, 1 << 14);
    let file = rig.create();
    for index in 0..3 {
        rig.write(file, index);
    }
    let wanted = rig.page(file, 2);
    rig.mm.frames[wanted].set(Frame::RECLAIM | Frame::WAITERS);
    rig.write_back(file);
    rig.complete_all();
    let list = rig.mm.nodes[0].lruvecs[0].lists[LruList::InactiveFile as usize];
    assert_eq!(list.back(), wanted);
    assert_eq!(rig.mm.stat.event(VmEvent::Pgrotated), 1);
    assert!(!rig.mm.frames[wanted].has_any(Frame::RECLAIM | Frame::WRITEBACK | Frame::WAITERS));
    assert!(rig.effects.contains(&Effect::WakePage(wanted)));
    rig.check();
}

fn pageout(rules: Rules, task: TaskFlags, index: u32) -> (bool, Vec<(u32, u32)>) {
    let mut rig = Rig::with_rules(1, 1 << 14, rules);
    let file = rig.create();
    for index in [0, 1, 2, 3, 7] {
        rig.write(file, index);
    }
    rig.env.task = task;
    let pfn: Pfn = rig.page(file, index);
    let started = rig.mm.pageout_file(&rig.env, pfn);
    rig.collect();
    assert_eq!(rig.mm.frames[pfn].has(Frame::WRITEBACK), started);
    assert_eq!(rig.mm.frames[pfn].has(Frame::DIRTY), !started);
    rig.check();
    let place = |b: &crate::Bio| match b.target {
        BioTarget::File { index, .. } => (index, b.pages),
        target => panic!("{target:?}"),
    };
    (started, rig.bios.iter().map(place).collect())
}

#[test]
fn until_3_2_a_page_that_reclaim_may_not_write_counts_as_dirtied_again() {
    for (redirtied, counted) in [(Redirtied::CountsAgain, 2), (Redirtied::CountsOnce, 1)] {
        let mut rig =
            Rig::with_rules(1, 1 << 14, Rules { xfs_writepage: XfsWritepage::OnePage, redirtied, ..old_rules() });
        let file = rig.create();
        rig.write(file, 0);
        rig.env.task = TaskFlags { memalloc: true, ..TaskFlags::default() };
        let pfn = rig.page(file, 0);
        assert!(!rig.mm.pageout_file(&rig.env, pfn));
        let counts = [NodeStat::Dirtied, NodeStat::FileDirty].map(|item| rig.mm.stat.node_sum(item));
        assert_eq!(counts, [counted, 1]);
    }
}

#[test]
fn xfs_writes_for_kswapd_and_refuses_direct_reclaim() {
    let kswapd = TaskFlags { memalloc: true, kswapd: true, ..TaskFlags::default() };
    let direct = TaskFlags { memalloc: true, ..TaskFlags::default() };
    let with = |xfs_writepage| Rules { xfs_writepage, ..old_rules() };
    assert_eq!(pageout(with(XfsWritepage::OnePage), kswapd, 1), (true, vec![(1, 1)]));
    assert_eq!(pageout(with(XfsWritepage::Cluster), kswapd, 1), (true, vec![(1, 3)]));
    for rule in [XfsWritepage::OnePage, XfsWritepage::Cluster, XfsWritepage::Never] {
        assert_eq!(pageout(with(rule), direct, 1), (false, vec![]));
    }
    assert_eq!(pageout(with(XfsWritepage::Never), kswapd, 1), (false, vec![]));
}

#[test]
fn ext4_refuses_reclaim_until_blocks_are_allocated() {
    let mut rig = Rig::new(1, 1 << 14);
    let fs = rig.mm.vfs_mkfs(FsSpec::ext4(4, Bytes::gib(8)));
    let root = rig.mm.vfs_root(fs);
    let file = rig.mm.vfs_create(&rig.env, root).expect("memory is plentiful").file;
    rig.write(file, 0);
    let pfn = rig.page(file, 0);
    assert!(!rig.mm.pageout_file(&rig.env, pfn));
    rig.write_back(file);
    rig.complete_all();
    rig.write(file, 0);
    assert!(rig.mm.pageout_file(&rig.env, pfn));
    rig.collect();
    rig.complete_all();
    rig.check();
}

#[test]
fn fsync_writes_waits_and_forces_the_log() {
    let mut rig = Rig::new(1, 1 << 14);
    rig.mm.rules.bio_vectors = BioVectors::Pages;
    let file = rig.create();
    for index in 0..600 {
        rig.write(file, index);
    }
    // One page is under an earlier writeback, and dirty again.
    rig.write_back(file);
    rig.complete_one();
    rig.write(file, 300);
    let mut fsync = Fsync::default();
    let (mut logs, mut waits) = (0, 0);
    loop {
        let step = rig.mm.fsync_step(&rig.env, file, &mut fsync);
        rig.collect();
        match step {
            FsyncStep::More => {}
            FsyncStep::Journal(_) => panic!("nothing commits"),
            FsyncStep::Wait(pfn) => {
                waits += 1;
                assert!(rig.mm.frames[pfn].has(Frame::WRITEBACK));
                while rig.mm.frames[pfn].has(Frame::WRITEBACK) {
                    assert!(rig.complete_one());
                }
            }
            FsyncStep::Log(bio) => {
                logs += 1;
                assert_eq!((bio.device, bio.sync, bio.target), (DEVICE, true, BioTarget::Metadata));
                assert!(!rig.mm.begin_metadata(bio), "the device does not copy");
                rig.collect();
            }
            FsyncStep::Done => break,
        }
    }
    assert_eq!(rig.mm.dirty_pages_of(file), (0, 0));
    assert_eq!((logs, rig.mm.stat.event(VmEvent::Pgpgout)), (1, 601 * 4 + 4), "one allocation in the log: one page");
    // The bio of 256..512 must end before 300 is written again; then 300, whose bio comes after that of 512..600.
    assert_eq!(waits, 2);
    rig.complete_all();
    rig.check();
}

#[test]
fn only_a_device_with_something_dirty_is_woken_and_once_for_everything() {
    let mut rig = Rig::new(1, 1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    rig.mm.writeback.wbs.get_mut(WbId::root(DEVICE + 1));
    assert_eq!(rig.mm.ask_flushers(WakeFlusher::Vmscan)[..], [WB]);
    assert!(rig.mm.ask_flushers(WakeFlusher::Sync).is_empty(), "it is asked already");
    assert_eq!(rig.mm.ask_flushers(WakeFlusher::Pages(7))[..], [WB]);
    flush(&mut rig, &mut FlushWork::default());
    rig.complete_all();
    assert!(rig.mm.ask_flushers(WakeFlusher::Vmscan).is_empty(), "nothing is dirty");
    rig.check();
}

#[test]
fn a_request_writes_everything_and_is_done_when_it_is_submitted() {
    let mut rig = Rig::new(1, 1 << 15);
    let files: Vec<FileId> = (0..3).map(|_| rig.create()).collect();
    for &file in &files {
        for index in 0..1500 {
            rig.write(file, index);
        }
    }
    let tickets = rig.mm.request_sync(DEVICE);
    rig.collect();
    assert!(rig.effects.contains(&Effect::WakeFlusher(WB)));
    assert!(!rig.mm.sync_done(&tickets));
    flush(&mut rig, &mut FlushWork::default());
    assert!(rig.mm.sync_done(&tickets));
    assert_eq!(rig.mm.writeback.pages_of(WB), (0, 4500));
    assert!(rig.bios.iter().all(|b| b.sync || b.target == BioTarget::Metadata));
    rig.complete_all();
    rig.check();
}

/// A writer without other work, on a device of so many pages a second, for `seconds`. Gives the pages written by the
/// writer in the second half, and the most that were dirty or under writeback.
fn writer(rig: &mut Rig, device_rate: u64, seconds: u64) -> (u64, u64) {
    let file = rig.create();
    let (mut task, mut work) = (TaskDirty::default(), FlushWork::default());
    let step = Nanos::micros(2);
    let (mut index, mut most, mut done_half) = (0u32, 0, 0);
    let (mut wake_writer, mut wake_flusher) = (Nanos::ZERO, Nanos::ZERO);
    let mut device_free = Nanos::ZERO;
    while rig.env.now < Nanos::secs(seconds) {
        if rig.env.now >= wake_writer {
            let dirtied = write_round(rig, file, &mut index);
            match rig.mm.balance_dirty_pages(&rig.env, file, dirtied, &mut task) {
                Pause::None => {}
                Pause::Sleep(pause) => {
                    wake_writer = rig.env.now + pause;
                }
                Pause::Write(..) => panic!("writers do not write"),
            }
            rig.collect();
        }
        if rig.effects.iter().any(|e| matches!(e, Effect::WakeFlusher(WB))) {
            wake_flusher = rig.env.now;
        }
        rig.effects.clear();
        // A queue of at most 128 bios, as a device has.
        while rig.env.now >= wake_flusher && rig.bios.len() < 128 {
            match rig.mm.writeback_step(&rig.env, WB, &mut work, 256) {
                FlushStep::More => {}
                FlushStep::Wait(_) | FlushStep::Journal(_) | FlushStep::Busy => break,
                FlushStep::Idle(until) => wake_flusher = until.unwrap_or(Nanos::MAX),
            }
            rig.collect();
        }
        if let Some(bio) = rig.bios.front() {
            let took = Nanos(u64::from(bio.pages) * 1_000_000_000 / device_rate);
            if device_free.since(Nanos::ZERO) + took <= rig.env.now {
                device_free += took;
                rig.complete_one();
            }
        } else {
            device_free = rig.env.now;
        }
        let dirty = rig.mm.stat.node_sum(NodeStat::FileDirty) + rig.mm.stat.node_sum(NodeStat::Writeback);
        most = most.max(dirty);
        if rig.env.now < Nanos::secs(seconds / 2) {
            done_half = rig.mm.stat.node_sum(NodeStat::Dirtied);
        }
        let next = if wake_writer > rig.env.now { Nanos::micros(200) } else { step };
        rig.at(rig.env.now + next);
    }
    (rig.mm.stat.node_sum(NodeStat::Dirtied) - done_half, most)
}

/// Writes the next page of a file that starts over at 6000 pages.
fn write_round(rig: &mut Rig, file: FileId, index: &mut u32) -> u64 {
    let dirtied = rig.write(file, *index);
    *index = (*index + 1) % 6000;
    u64::from(dirtied)
}

#[test]
fn a_writer_is_held_to_the_speed_of_its_device() {
    let mut rig = Rig::new(1, 1 << 14);
    let rate = 5000;
    let limits = rig.mm.global_dirty_limits();
    let (pages, most) = writer(&mut rig, rate, 24);
    // 12 s at 5000 pages a second, give or take what is dirty at its two ends.
    let (expected, swing) = (rate * 12, limits.dirty - limits.freerun());
    assert!(pages.abs_diff(expected) <= swing, "{pages} pages in 12 s, {expected} expected");
    assert!(most <= limits.dirty + 1024, "{most} dirty pages, limit {limits:?}");
    assert!(most > limits.background, "{most} dirty pages, limit {limits:?}");
    // The estimate starts at 25600 and nears 5000 with 50/1024 each 0.2 s: (974/1024)^120 * 20600 is 51 after 24 s.
    let (bandwidth, _) = rig.mm.writeback.rates_of(WB);
    assert!(bandwidth.abs_diff(rate) <= rate / 10, "{bandwidth} pages a second estimated");
    rig.complete_all();
    rig.check();
}

#[test]
fn below_freerun_nobody_pauses_and_above_the_background_limit_the_flusher_is_woken() {
    let mut rig = Rig::new(1, 1 << 14);
    let file = rig.create();
    let limits = rig.mm.global_dirty_limits();
    let mut task = TaskDirty::default();
    let mut index = 0;
    while u64::from(index) < limits.freerun() - 16 {
        let dirtied = u64::from(rig.write(file, index));
        assert_eq!(rig.mm.balance_dirty_pages(&rig.env, file, dirtied, &mut task), Pause::None);
        rig.collect();
        let woken = rig.effects.contains(&Effect::WakeFlusher(WB));
        assert!(!woken || u64::from(index) >= limits.background - 64, "woken at {index}, limit {}", limits.background);
        index += 1;
    }
    assert!(rig.effects.contains(&Effect::WakeFlusher(WB)));
    let paused = (u64::from(index)..limits.dirty).find(|_| {
        let dirtied = u64::from(rig.write(file, index));
        index += 1;
        rig.mm.balance_dirty_pages(&rig.env, file, dirtied, &mut task) != Pause::None
    });
    assert!(paused.is_some(), "a writer pauses before the limit");
}

#[test]
fn until_3_1_a_writer_above_the_limit_writes_one_and_a_half_times_what_brought_it_there() {
    let mut rig =
        Rig::with_rules(1, 1 << 14, Rules { dirty_throttle: rules::DirtyThrottle::WriterWrites, ..old_rules() });
    let file = rig.create();
    let mut task = TaskDirty::default();
    let limit = rig.mm.global_dirty_limits().dirty;
    let mut index = 0;
    let pause = loop {
        let dirtied = u64::from(rig.write(file, index));
        index += 1;
        match rig.mm.balance_dirty_pages(&rig.env, file, dirtied, &mut task) {
            Pause::None => {}
            pause => break pause,
        }
        assert!(u64::from(index) < 2 * limit, "nobody stops the writer");
    };
    assert!(u64::from(index) > rig.mm.global_dirty_limits().freerun(), "not before freerun");
    let Pause::Write(wb, pages) = pause else { panic!("it has only itself to write: {pause:?}") };
    let mut work = FlushWork::of_writer(&rig.env, pages);
    assert_eq!(wb, WB);
    // A CPU's share of 1/32 of the memory, and half of that again.
    let managed: u64 = rig.mm.zones.iter().map(|zone| zone.managed).sum();
    let ratelimit = (managed / (rig.mm.pcps.nr_cpus() as u64 * 32)).clamp(16, 1024);
    assert_eq!(work.pages_left(), (ratelimit + ratelimit / 2) as i64);
    while rig.mm.writeback_by_writer(&rig.env, WB, &mut work, 256).is_some() {}
    rig.collect();
    let written: u32 = rig.bios.iter().map(|bio| bio.pages).sum();
    assert!(u64::from(written) >= ratelimit + ratelimit / 2, "{written}");
    rig.check();
}

#[test]
fn a_write_to_a_page_under_writeback_waits_from_3_0_to_3_8() {
    for (rule, waits) in [(WrittenMeanwhile::Changes, false), (WrittenMeanwhile::Waits, true)] {
        let mut rig = Rig::with_rules(1, 1 << 14, Rules { written_meanwhile: rule, ..old_rules() });
        let file = rig.create();
        rig.write(file, 0);
        rig.write_back(file);
        let stop = rig.mm.write_page(&rig.env, &mut crate::pagecache::PageWrite::new(file, 0, 1));
        assert_eq!(stop == WriteStop::Wait(rig.page(file, 0)), waits, "{stop:?}");
        rig.complete_all();
        assert_eq!(rig.write(file, 0), waits, "it is clean now, or dirty since");
    }
}

#[test]
fn until_6_8_a_run_of_xfs_leaves_writeback_with_its_last_bio() {
    let mut rig = Rig::new(1, 1 << 14);
    rig.mm.rules.bio_vectors = BioVectors::Pages;
    rig.mm.rules.ioend_end = IoendEnd::LastBio;
    let file = rig.create();
    for index in (0..600).chain(700..710) {
        rig.write(file, index);
    }
    rig.write_back(file);
    let bios = std::mem::take(&mut rig.bios);
    // 256, 256 and 88 pages are one run, the ten behind the gap another.
    assert_eq!(bios.iter().map(|bio| bio.pages).collect::<Vec<_>>(), [256, 256, 88, 10]);
    let end = |rig: &mut Rig, nth: usize| {
        rig.mm.end_writeback(&rig.env, &bios[nth], true);
        rig.end_io();
        rig.mm.dirty_pages_of(file).1
    };
    assert_eq!([2, 0, 3, 1].map(|nth| end(&mut rig, nth)), [610, 610, 600, 0]);
    rig.check();
}

#[test]
fn until_4_5_a_flusher_leaves_the_first_page_of_a_run_whose_inode_is_locked() {
    let mut rig = Rig::new(1, 1 << 14);
    rig.mm.rules.map_lock = MapLock::Try;
    rig.mm.rules.xfs_write_map = XfsWriteMap::Pages;
    let file = rig.create();
    // Ten runs of two pages, of which the last eleven pages lie beyond the first 64 KiB and have blocks reserved ahead.
    for index in (0..40).filter(|index| index % 4 < 2) {
        rig.write(file, index);
    }
    let held = (20 * rig.mm.costs.write_xfs + 9 * rig.mm.costs.reserve_xfs) as u32;
    rig.mm.ask_flushers(WakeFlusher::Vmscan);
    flush(&mut rig, &mut FlushWork::default());
    // Its first pass goes through the file in order; it comes back for the pages that it left, since no other inode is dirty.
    let firsts: Vec<(u32, u32)> = rig.bios.iter().map(|bio| (bio.first_index(), bio.pages)).collect();
    let pass = firsts.windows(2).take_while(|pair| pair[1].0 > pair[0].0).count() + 1;
    let written: u32 = firsts[..pass].iter().map(|(_, pages)| pages).sum();
    // An attempt for each run, and one more for each page that is left; they fail as often as the lock was held in the 50 us.
    let left = 20 - written;
    let attempts = 10 + left - u32::from(firsts[pass - 1].0 + firsts[pass - 1].1 < 38);
    assert!((attempts * held / 50_000).abs_diff(left) <= 1, "{left} of {attempts}: {firsts:?}");
    assert!(left > 0 && rig.mm.dirty_pages_of(file) == (0, 20), "all are written in the end");
    rig.complete_all();
    rig.check();
}
