//! The page cache on small machines.

use proptest::prelude::*;
use rules::{ReadPastEnd, ReadaheadGfp, Rules, ScanBalance, ShadowNodes};
use units::{FileId, Gfp, NodeId, Order, Pfn};

use super::rig::{Rig, old_rules};
use super::{PageWrite, ReadStop, Readahead, Slot, WriteStop};
use crate::memcg::ROOT;
use crate::slab::tests::exhaust;
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::vfs::{Need, Share, ShrinkerId};
use crate::{AllocRequest, Bio, BioTarget, Effect, Frame};

const SHARE: Share = Share { node: NodeId(0), memcg: ROOT };

fn first_pages(rig: &Rig) -> Vec<(u32, u32)> {
    let place = |bio: &crate::Bio| match bio.target {
        BioTarget::File { index, .. } => (index, bio.pages),
        target => panic!("{target:?}"),
    };
    rig.bios.iter().map(place).collect()
}

#[test]
fn a_written_file_of_64_kib_takes_16_pages_and_a_node() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.create();
    assert!(rig.write(file, 0));
    assert_eq!(rig.mm.nr_tree_nodes(), 0, "a lone first page sits in the inode");
    assert_eq!(rig.objects("radix_tree_node"), 0);
    for index in 1..16 {
        assert!(rig.write(file, index));
    }
    assert!(!rig.write(file, 3), "it is dirty already");
    assert_eq!((rig.mm.nr_cached(file), rig.mm.inode_size_pages(file)), (16, 16));
    assert_eq!(rig.mm.nr_tree_nodes(), 1);
    assert!(rig.objects("radix_tree_node") > 0, "a CPU's slab counts as in use");
    for (item, pages) in [(NodeStat::FilePages, 16), (NodeStat::FileDirty, 16), (NodeStat::Dirtied, 16)] {
        assert_eq!(rig.mm.stat.node_sum(item), pages, "{item:?}");
    }
    assert_eq!(rig.mm.stat.zone_sum(ZoneStat::WritePending), 16);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::InactiveFile), 16);
    rig.check();
    rig.mm.truncate_pages(&rig.env, file, 0);
    assert_eq!(rig.mm.nr_tree_nodes(), 0);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::FilePages), 0);
    rig.check();
}

#[test]
fn sequential_reads_submit_growing_bios() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(100);
    let mut ra = Readahead::default();
    let mut waits = Vec::new();
    let mut bios = Vec::new();
    for index in 0..30 {
        if rig.read(file, index, 1, &mut ra) {
            waits.push(index);
        }
        bios.extend(first_pages(&rig));
        rig.complete_all();
    }
    // The first window was completed by the wait; the others were submitted at the marks 1, 4, 12 and 28.
    assert_eq!(bios, [(4, 8), (12, 16), (28, 32), (60, 32)]);
    assert_eq!(waits, [0]);
    // 4 + 8 + 16 + 32 + 32 pages of 4 KiB.
    assert_eq!(rig.mm.stat.event(VmEvent::Pgpgin), 92 * 4);
    assert_eq!(rig.mm.nr_cached(file), 92);
    rig.check();
}

#[test]
fn a_window_stops_at_the_end_of_the_file() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(3);
    let mut ra = Readahead::default();
    assert!(rig.read(file, 0, 1, &mut ra));
    assert_eq!(rig.mm.nr_cached(file), 3);
    assert!(!rig.read(file, 2, 1, &mut ra));
    rig.check();
}

#[test]
fn random_reads_with_advice_read_single_pages() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(1000);
    let mut ra = Readahead::default();
    ra.advise_random();
    for (n, index) in [0, 1, 2, 500, 501, 7].into_iter().enumerate() {
        assert!(rig.read(file, index, 1, &mut ra));
        assert_eq!(rig.mm.stat.event(VmEvent::Pgpgin), (n as u64 + 1) * 4);
    }
    rig.check();
}

#[test]
fn a_cached_page_within_a_window_splits_its_bio() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(100);
    rig.write(file, 5);
    let mut ra = Readahead::default();
    let stop = rig.mm.read_page(&rig.env, file, 0, 16, &mut ra, &mut None);
    rig.collect();
    // A request of 16 pages is more than a quarter of 32: a window of 32.
    assert_eq!(first_pages(&rig), [(0, 5), (6, 26)]);
    assert_eq!(stop, ReadStop::Wait(rig.page(file, 0)));
    rig.complete_all();
    assert_eq!(rig.effects.iter().filter(|e| matches!(e, crate::Effect::WakePage(_))).count(), 1);
    rig.check();
}

#[test]
fn a_reader_that_holds_its_reads_stops_once_a_window_to_submit_them() {
    let mut rig = Rig::new(1, 1 << 14);
    let file = rig.on_disk(8);
    let mut ra = Readahead::default();
    rig.env.task.holds_reads = true;
    let env = rig.env;
    let stop = rig.mm.read_page(&env, file, 0, 8, &mut ra, &mut None);
    assert_eq!(stop, ReadStop::Submit);
    rig.collect();
    let held: Vec<Bio> = rig
        .effects
        .iter()
        .filter_map(|effect| if let Effect::HeldRead(bio) = effect { Some(*bio) } else { None })
        .collect();
    assert!(rig.bios.is_empty());
    // 8 pages wanted of 32 at most: the window would be of 16, the file ends before.
    assert_eq!(held.iter().map(|bio| bio.pages).sum::<u32>(), 8);
    assert_eq!(rig.mm.read_page(&env, file, 0, 8, &mut ra, &mut None), ReadStop::Wait(rig.page(file, 0)));
    rig.env.task.holds_reads = false;
    assert!(held.iter().all(|bio| !rig.mm.reads_workingset(bio)));
    let (env, last) = (rig.env, rig.page(file, 7));
    rig.mm.frames[last].set(Frame::WORKINGSET);
    assert!(rig.mm.reads_workingset(&held[held.len() - 1]), "one page is enough");
    held.iter().for_each(|bio| rig.mm.submit(&env, *bio));
    rig.collect();
    rig.complete_all();
    assert!(!rig.read(file, 0, 8, &mut ra), "it is there");
    rig.check();
}

#[test]
fn evicted_pages_leave_shadows_and_the_shrinker_frees_their_nodes() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(16);
    let mut ra = Readahead::default();
    for index in 0..16 {
        rig.read(file, index, 1, &mut ra);
        rig.complete_all();
    }
    for index in 0..15 {
        rig.evict(file, index);
    }
    assert_eq!(rig.mm.stat.node_sum(NodeStat::WorkingsetNodes), 0, "a page is left");
    rig.evict(file, 15);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::WorkingsetNodes), 1);
    assert!(matches!(rig.mm.pagecache_get(file, 3), Slot::Shadow(_)));
    rig.check();
    let before = rig.mm.stat.node_sum(NodeStat::WorkingsetRefaultFile);
    rig.read(file, 3, 1, &mut Readahead::default());
    let refaults = rig.mm.stat.node_sum(NodeStat::WorkingsetRefaultFile) - before;
    assert_eq!(refaults, 1, "page 3 alone: neither start of file nor history");
    assert_eq!(rig.mm.stat.node_sum(NodeStat::WorkingsetNodes), 0);
    rig.evict(file, 3);
    // A scan frees what it is told to.
    let done = rig.mm.shadow_nodes_scan(&rig.env, SHARE, 10);
    assert_eq!((done.scanned, done.freed), (1, 1));
    assert_eq!(rig.mm.stat.node_sum(NodeStat::WorkingsetNodereclaim), 1);
    assert_eq!((rig.mm.nr_tree_nodes(), rig.mm.pagecache_get(file, 3)), (0, Slot::Empty));
    rig.check();
}

#[test]
fn as_many_nodes_may_hold_only_shadows_as_the_lists_or_until_4_5_the_node_have_pages() {
    let mut rig = Rig::new(1, 4096);
    let files = [16, 8].map(|pages| rig.on_disk(pages));
    for (file, pages) in files.into_iter().zip([16, 8]) {
        for index in 0..pages {
            rig.read(file, index, 1, &mut Readahead::default());
            rig.complete_all();
        }
    }
    let [evicted, kept] = files;
    (0..16).for_each(|index| rig.evict(evicted, index));
    let freeable = |rig: &mut Rig, rule| {
        rig.mm.rules.shadow_nodes = rule;
        rig.mm.shadow_nodes_count(SHARE)
    };
    // 4096 pages allow 256 nodes, and the eight that are left on the lists one.
    assert_eq!([ShadowNodes::SixteenthAtSeeks, ShadowNodes::Eighth].map(|rule| freeable(&mut rig, rule)), [0, 0]);
    rig.evict(kept, 0);
    assert_eq!([ShadowNodes::SixteenthAtSeeks, ShadowNodes::Eighth].map(|rule| freeable(&mut rig, rule)), [0, 1]);
    rig.check();
}

#[test]
fn since_4_6_nodes_with_only_shadows_are_counted_and_freed_by_the_group_that_they_are_charged_to() {
    for (rule, by_group) in [(ShadowNodes::SixteenthAtSeeks, false), (ShadowNodes::Eighth, true)] {
        let mut rig = Rig::with_rules(1, 4096, Rules { shadow_nodes: rule, ..old_rules() });
        let memcg = rig.mm.memcg_create(ROOT, "group").expect("there is room");
        let of_group = Share { memcg, ..SHARE };
        for (memcg, files) in [(ROOT, 3), (memcg, 5)] {
            rig.env.task.memcg = memcg;
            for _ in 0..files {
                let file = rig.on_disk(2);
                for index in 0..2 {
                    rig.read(file, index, 1, &mut Readahead::default());
                    rig.complete_all();
                }
                (0..2).for_each(|index| rig.evict(file, index));
            }
        }
        assert_eq!(rig.mm.stat.node_sum(NodeStat::WorkingsetNodes), 8);
        let lists = [SHARE, of_group].map(|share| rig.mm.pagecache.trees.shadows.len(share));
        assert_eq!(lists, if by_group { [3, 5] } else { [8, 0] });
        // No page is left on the LRU lists, and the group's slabs are less than the eight pages that let a node stay.
        let freed = rig.mm.shadow_nodes_scan(&rig.env, of_group, 4).freed;
        assert_eq!(freed, if by_group { 4 } else { 0 });
        assert_eq!(rig.mm.shrinker_count(ShrinkerId::ShadowNodes, of_group), u64::from(by_group));
        rig.check();
    }
}

#[test]
fn a_page_that_is_overwritten_is_no_refault() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.create();
    rig.write(file, 0);
    rig.write_back(file);
    rig.complete_all();
    rig.evict(file, 0);
    rig.write(file, 0);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::WorkingsetRefaultFile), 0);
    rig.check();
}

#[test]
fn pages_truncated_under_io_are_freed_when_it_ends() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.create();
    for index in 0..10 {
        rig.write(file, index);
    }
    rig.write_back(file);
    let free = rig.mm.stat.zone_sum(ZoneStat::FreePages);
    let file2 = rig.on_disk(4);
    let mut ra = Readahead::default();
    let stop = rig.mm.read_page(&rig.env, file2, 0, 4, &mut ra, &mut None);
    let ReadStop::Wait(waited) = stop else { panic!("{stop:?}") };
    rig.collect();
    rig.mm.truncate_pages(&rig.env, file, 2);
    rig.mm.truncate_pages(&rig.env, file2, 0);
    assert_eq!((rig.mm.nr_cached(file), rig.mm.nr_cached(file2)), (2, 0));
    assert_eq!(rig.mm.stat.node_sum(NodeStat::Writeback), 10, "the device writes on");
    rig.check();
    // The file is written again at the same places before the first write ends.
    for index in 2..5 {
        rig.write(file, index);
    }
    rig.write_back(file);
    rig.check();
    rig.complete_all();
    assert!(rig.effects.contains(&crate::Effect::WakePage(waited)));
    assert_eq!(rig.mm.stat.node_sum(NodeStat::Writeback), 0);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::FilePages), 5);
    rig.mm.truncate_pages(&rig.env, file, 0);
    rig.mm.drain_pcp_all();
    assert!(rig.mm.stat.zone_sum(ZoneStat::FreePages) >= free, "no page is lost");
    rig.check();
}

#[test]
fn a_file_may_be_gone_when_its_write_ends() {
    let mut rig = Rig::ext4(1 << 14);
    let file = rig.create();
    rig.write(file, 0);
    rig.write_back(file);
    while rig.mm.vfs_unlink(&rig.env, file).is_err() {}
    rig.mm.truncate_pages(&rig.env, file, 0);
    assert_eq!(rig.mm.stat.node_sum(NodeStat::Writeback), 1, "the device writes on");
    rig.complete_all();
    assert_eq!(rig.mm.stat.node_sum(NodeStat::Writeback), 0);
}

#[test]
fn invalidation_spares_what_is_dirty() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(10);
    let mut ra = Readahead::default();
    for index in 0..10 {
        rig.read(file, index, 10 - index, &mut ra);
    }
    rig.complete_all();
    rig.write(file, 4);
    assert_eq!(rig.mm.invalidate_clean_pages(&rig.env, file), 9);
    assert_eq!(rig.mm.nr_cached(file), 1);
    assert!(rig.mm.frames[rig.page(file, 4)].has(Frame::RECLAIM), "reclaim takes it once it is written");
    rig.check();
}

#[test]
fn migration_carries_a_dirty_page_to_another_node() {
    let mut rig = Rig::new(2, 4096);
    let file = rig.create();
    for index in 0..3 {
        rig.write(file, index);
    }
    let old = rig.page(file, 1);
    let node = |rig: &Rig, n, item| rig.mm.stat.node(NodeId(n), item);
    assert_eq!((node(&rig, 0, NodeStat::FileDirty), node(&rig, 1, NodeStat::FileDirty)), (3, 0));
    let req = AllocRequest { gfp: Gfp::HIGHUSER_MOVABLE.with(Gfp::THISNODE), order: Order(0), node: NodeId(1) };
    let new = rig.mm.alloc_pages(&rig.env, req).expect("memory is plentiful");
    assert!(rig.mm.lru_isolate(old));
    rig.mm.pagecache_replace(old, new);
    rig.mm.stat.node_add(NodeId(0), NodeStat::IsolatedFile, -1);
    rig.mm.lru_add(&rig.env, new);
    rig.mm.free_pages(&rig.env, old, Order(0));
    assert_eq!(rig.page(file, 1), new);
    assert!(rig.mm.frames[new].has(Frame::DIRTY | Frame::UPTODATE));
    assert_eq!((node(&rig, 0, NodeStat::FileDirty), node(&rig, 1, NodeStat::FileDirty)), (2, 1));
    assert_eq!((node(&rig, 0, NodeStat::FilePages), node(&rig, 1, NodeStat::FilePages)), (2, 1));
    rig.check();
}

/// Frees one of the pages taken and takes it as the slow path would.
fn from_reclaim(rig: &mut Rig, taken: &mut Vec<Pfn>) -> Pfn {
    taken.pop().unwrap_or_else(|| panic!("{:?}: nothing left", rig.env.now))
}

#[test]
fn a_write_says_what_it_lacks_and_goes_on_with_it() {
    let mut rig = Rig::new(1, 4096);
    let file = rig.create();
    rig.write(file, 0);
    let mut taken = exhaust(&mut rig.mm, None);
    rig.mm.drain_pcp_all();
    taken.extend(exhaust(&mut rig.mm, None));
    let mut write = PageWrite::new(file, 1, 1);
    let mut needs = Vec::new();
    loop {
        match rig.mm.write_page(&rig.env, &mut write) {
            WriteStop::Done { written, dirtied } => {
                assert_eq!((written, dirtied), (1, 1));
                break;
            }
            WriteStop::Need(Need::Slab(cache, req)) => {
                needs.push("slab");
                let page = from_reclaim(&mut rig, &mut taken);
                assert_eq!(req.pages.order, Order(0), "the least that a slab of nodes takes");
                rig.mm.slab_add_page(&rig.env, cache, page);
            }
            WriteStop::Need(Need::Page(req)) => {
                needs.push("page");
                assert!(req.gfp.contains(Gfp::WRITE) && !req.gfp.contains(Gfp::FS) && write.hand.is_none());
                write.hand = Some(from_reclaim(&mut rig, &mut taken));
            }
            stop => panic!("{stop:?}"),
        }
    }
    assert_eq!((needs, write.hand), (vec!["slab", "page"], None));
    assert_eq!(rig.mm.nr_cached(file), 2);
}

/// What the first read of a file asks for, and whether for readahead, which gets all but this.
fn asked_without(lacking: &'static str) -> Vec<(&'static str, bool)> {
    let mut rig = Rig::new(1, 4096);
    let file = rig.on_disk(64);
    let mut taken = exhaust(&mut rig.mm, None);
    rig.mm.drain_pcp_all();
    taken.extend(exhaust(&mut rig.mm, None));
    let (mut ra, mut hand) = (Readahead::default(), None);
    let mut asked = Vec::new();
    let stop = loop {
        let stop = rig.mm.read_page(&rig.env, file, 0, 1, &mut ra, &mut hand);
        let ReadStop::Need(need) = stop else { break stop };
        let what = if matches!(need, Need::Page(_)) { "page" } else { "node" };
        asked.push((what, need.is_optional()));
        match need {
            _ if need.is_optional() && what == lacking => {}
            Need::Slab(cache, _) => {
                let page = from_reclaim(&mut rig, &mut taken);
                rig.mm.slab_add_page(&rig.env, cache, page);
            }
            _ => hand = Some(from_reclaim(&mut rig, &mut taken)),
        }
    };
    rig.collect();
    assert_eq!(stop, ReadStop::Wait(rig.page(file, 0)));
    assert_eq!(first_pages(&rig), [(0, 1)]);
    assert_eq!(rig.mm.nr_cached(file), 1);
    asked
}

#[test]
fn since_5_8_readahead_reclaims_no_inodes() {
    for (readahead_gfp, fs) in [(ReadaheadGfp::Mapping, true), (ReadaheadGfp::NoFs, false)] {
        let mut rig = Rig::ext4_with(4096, Rules { readahead_gfp, ..Rules::newest() });
        let file = rig.on_disk(64);
        exhaust(&mut rig.mm, None);
        rig.mm.drain_pcp_all();
        exhaust(&mut rig.mm, None);
        let stop = rig.mm.read_page(&rig.env, file, 0, 1, &mut Readahead::default(), &mut None);
        let ReadStop::Need(Need::Page(ahead)) = stop else { panic!("{stop:?}") };
        assert_eq!((ahead.gfp.contains(Gfp::NORETRY), ahead.gfp.contains(Gfp::FS)), (true, fs));
    }
}

#[test]
fn who_wakes_kswapd_for_a_page_of_a_window_gives_way_before_the_next() {
    let mut rig = Rig::ext4(4096);
    let file = rig.on_disk(64);
    rig.mm.nodes[0].kswapd.asleep = true;
    rig.mm.zones.iter_mut().for_each(|zone| (zone.boost, zone.boosted_flag) = (1, true));
    let (mut ra, mut hand) = (Readahead::default(), None);
    assert_eq!(rig.mm.read_page(&rig.env, file, 0, 1, &mut ra, &mut hand), ReadStop::Need(Need::Resched));
    rig.collect();
    assert_eq!(rig.effects, [Effect::WakeKswapd(NodeId(0))]);
    assert_eq!((rig.mm.nr_cached(file), rig.bios.len()), (1, 0), "the rest of the window comes later");
    let stop = rig.mm.read_page(&rig.env, file, 0, 1, &mut ra, &mut hand);
    rig.collect();
    assert_eq!(stop, ReadStop::Wait(rig.page(file, 0)));
    assert_eq!(first_pages(&rig), [(0, rig.mm.nr_cached(file))], "the window is one read all the same");
}

#[test]
fn readahead_without_memory_is_given_up_and_the_page_read_alone() {
    assert_eq!(asked_without("page"), [("page", true), ("page", false)]);
    // The first page of a file alone has no node.
    assert_eq!(asked_without("node"), [("page", true), ("node", true)]);
}

#[derive(Clone, Debug)]
enum Op {
    Write(u32, u32),
    Read(u32, u32),
    WriteBack(u32),
    Complete,
    Truncate(u32, u32),
    Invalidate(u32),
    Evict(u32, u32),
    Shrink,
}

fn op() -> impl Strategy<Value = Op> {
    let place = || (0..3u32, prop_oneof![0..20u32, 60..70u32, Just(5000u32)]);
    prop_oneof![
        5 => place().prop_map(|(f, i)| Op::Write(f, i)),
        3 => place().prop_map(|(f, i)| Op::Read(f, i)),
        2 => (0..3u32).prop_map(Op::WriteBack),
        4 => Just(Op::Complete),
        1 => place().prop_map(|(f, i)| Op::Truncate(f, i)),
        1 => (0..3u32).prop_map(Op::Invalidate),
        3 => place().prop_map(|(f, i)| Op::Evict(f, i)),
        1 => Just(Op::Shrink),
    ]
}

fn apply(rig: &mut Rig, files: &[FileId], ras: &mut [Readahead], op: Op) {
    match op {
        Op::Write(f, index) => {
            rig.write(files[f as usize], index);
        }
        Op::Read(f, index) => {
            let file = files[f as usize];
            if index < rig.mm.inode_size_pages(file) {
                rig.read(file, index, 1, &mut ras[f as usize]);
            }
        }
        Op::WriteBack(f) => rig.write_back(files[f as usize]),
        Op::Complete => {
            rig.complete_one();
        }
        Op::Truncate(f, from) => rig.mm.truncate_pages(&rig.env, files[f as usize], from),
        Op::Invalidate(f) => {
            rig.mm.invalidate_clean_pages(&rig.env, files[f as usize]);
        }
        Op::Evict(f, index) => {
            let busy = Frame::DIRTY | Frame::WRITEBACK | Frame::LOCKED;
            if let Slot::Page(pfn) = rig.mm.pagecache_get(files[f as usize], index)
                && !rig.mm.frames[pfn].has_any(busy)
            {
                rig.evict(files[f as usize], index);
            }
        }
        Op::Shrink => {
            rig.mm.shadow_nodes_scan(&rig.env, SHARE, 2);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn counters_equal_a_recount_after_anything(ops in prop::collection::vec(op(), 1..120)) {
        let rules = Rules { scan_balance: ScanBalance::RotatedRatio, ..old_rules() };
        let mut rig = Rig::with_rules(1, 2048, rules);
        let files = [rig.create(), rig.create(), rig.on_disk(80)];
        let mut ras = [Readahead::default(); 3];
        for op in ops {
            apply(&mut rig, &files, &mut ras, op);
            rig.check();
            prop_assert!(rig.mm.pagecache.trees.spare.is_empty() && rig.mm.pagecache.trees.released.is_empty());
        }
        rig.complete_all();
        for file in files {
            rig.mm.truncate_pages(&rig.env, file, 0);
        }
        rig.check();
        prop_assert_eq!(rig.mm.nr_tree_nodes(), 0);
        prop_assert_eq!(rig.mm.stat.node_sum(NodeStat::FilePages), 0);
        prop_assert_eq!(rig.mm.stat.zone_sum(ZoneStat::WritePending), 0);
    }
}

/// The model of memory per page: 4 B of slot, and little else.
#[test]
fn host_memory_stays_near_four_bytes_a_page() {
    let mut trees = super::tree::Trees::default();
    let files = 100_000;
    for file in 0..files {
        for index in 0..16 {
            let missing = trees.nodes_missing(file, index);
            trees.spare.resize(missing, (crate::slab::Obj(0), SHARE));
            trees.insert(file, index, super::slots::page(Pfn(index)));
        }
    }
    // 16 slots of 4 B, a leaf of 16 B, 8 B for the file; a table may be a sixteenth larger than what is in it.
    let used = u64::from(files) * (64 + 16 + 8);
    assert!(trees.host_bytes() as u64 <= used + used / 16, "{} for {used}", trees.host_bytes());
}

#[test]
fn a_second_write_makes_a_page_active_until_4_6() {
    for (write_access, flags) in
        [(rules::WriteAccess::Marked, [Frame::REFERENCED, Frame::ACTIVE]), (rules::WriteAccess::Plain, [0, 0])]
    {
        let mut rig = Rig::with_rules(1, 4096, rules::Rules { write_access, ..old_rules() });
        let file = rig.create();
        for expected in flags {
            rig.write(file, 0);
            let Slot::Page(pfn) = rig.mm.pagecache_get(file, 0) else { panic!("it was written") };
            let frame = &rig.mm.frames[pfn];
            let marks = [Frame::REFERENCED, Frame::ACTIVE].into_iter().filter(|&mark| frame.has(mark)).sum::<u32>();
            assert_eq!(marks, expected);
        }
    }
}

#[test]
fn a_read_past_the_end_leaves_a_page_of_zeros_where_the_size_is_looked_at_late() {
    for (read_past_end, pages) in [(ReadPastEnd::CachesPage, 6), (ReadPastEnd::Stops, 5)] {
        let mut rig = Rig::with_rules(1, 4096, Rules { read_past_end, ..old_rules() });
        let file = rig.create();
        for index in 0..5 {
            rig.write(file, index);
        }
        for _ in 0..2 {
            rig.mm.read_past_end(&rig.env, file, 5, &mut None).expect("memory is plentiful");
        }
        rig.collect();
        assert_eq!((rig.mm.nr_cached(file), rig.mm.inode_size_pages(file)), (pages, 5));
        assert!(rig.bios.is_empty(), "there is nothing to read");
        if let Slot::Page(pfn) = rig.mm.pagecache_get(file, 5) {
            let frame = &rig.mm.frames[pfn];
            assert!(frame.has(Frame::UPTODATE) && !frame.has_any(Frame::DIRTY | Frame::REFERENCED | Frame::LOCKED));
        }
        rig.check();
    }
}
