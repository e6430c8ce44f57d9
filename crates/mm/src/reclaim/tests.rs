//! Whole runs of kswapd and direct reclaim on a small machine.

use rules::{BoostedSlab, IsolationWait, MemcgWalkSharing, Rules, ThpEnabled, WatermarkBoost};
use units::{Gfp, Order, PAGEBLOCK_ORDER, SpaceId};

use super::fixture::{self, LRU, Machine, NODE, rules_4_20};
use super::{BalancePgdat, BoostSnapshot, ScanControl, ShrinkNode, Step, ThrottleReason};
use crate::anon::{Touch, TouchStop};
use crate::pagecache::Slot;
use crate::stat::{NodeStat, VmEvent, ZoneEvent};
use crate::swap::SwapSpec;
use crate::zone::{MAX_RECLAIM_RETRIES, Wmark};
use crate::{Bio, BioTarget, Effect, Frame, Kind, LruList, ZoneKind};

fn both_eras() -> [Rules; 2] {
    [rules_4_20(), Rules::newest()]
}

#[test]
fn kswapd_frees_clean_cache_until_a_zone_is_balanced() {
    for rules in both_eras() {
        let mut m = Machine::new(rules);
        let filled = m.fill(Kind::File, 0);
        assert!(!m.balanced());
        let (run, waits) = m.kswapd(Order(0));
        assert!(m.balanced());
        assert_eq!(waits, []);
        let left = m.mm.lru_size(LRU, LruList::InactiveFile) + m.mm.lru_size(LRU, LruList::ActiveFile);
        assert_eq!(left + run.nr_reclaimed(), filled, "each page was either freed or kept");
        assert_eq!(m.mm.stat.event(VmEvent::PgstealKswapd), run.nr_reclaimed());
        assert_eq!(m.mm.stat.event(VmEvent::Pageoutrun), 1);
        assert_eq!(m.mm.nodes[0].kswapd.failures, 0);
        m.check();
    }
}

#[test]
fn per_cpu_lists_are_kept_short_from_the_beginning_of_a_run_to_its_end() {
    let mut m = Machine::new(rules_4_20());
    m.fill(Kind::File, 0);
    let active = |m: &Machine| m.mm.zones.iter().filter(|zone| zone.managed > 0).all(|zone| zone.reclaim_active);
    let mut run = BalancePgdat::new(&mut m.mm, NODE, Order(0), ZoneKind::Normal);
    assert!(active(&m));
    m.run(|mm, env| run.step(mm, env));
    assert!(m.mm.zones.iter().all(|zone| !zone.reclaim_active));
}

#[test]
fn kswapd_does_nothing_on_a_balanced_node() {
    let mut m = Machine::new(rules_4_20());
    m.add("a b c", Kind::File, 0);
    let (run, _) = m.kswapd(Order(0));
    assert_eq!(run.nr_reclaimed(), 0);
    assert_eq!(m.draw(), "inactive: c b a | active:");
    assert_eq!(m.mm.nodes[0].kswapd.failures, 0);
}

#[test]
fn a_run_without_progress_is_a_failure_and_progress_forgives_all() {
    for rules in both_eras() {
        let mut m = Machine::new(rules);
        m.add("a b c d", Kind::File, Frame::LOCKED);
        // Without swap nothing of this can be reclaimed.
        m.fill(Kind::Anon, Frame::ACTIVE);
        let (run, _) = m.kswapd(Order(0));
        assert_eq!((run.nr_reclaimed(), m.mm.nodes[0].kswapd.failures), (0, 1));
        m.mm.nodes[0].kswapd.failures = MAX_RECLAIM_RETRIES;
        "abcd".chars().for_each(|name| m.frame(name).clear(Frame::LOCKED));
        let (run, _) = m.kswapd(Order(0));
        // Priority 2 takes 4 >> 2 = 1 page, priority 1 another 3 >> 1 = 1.
        assert_eq!((run.nr_reclaimed(), m.mm.nodes[0].kswapd.failures), (2, 0));
        m.check();
    }
}

#[test]
fn a_run_for_a_high_order_turns_to_order_0_once_twice_its_size_is_reclaimed() {
    let mut m = Machine::new(rules_4_20());
    m.fill(Kind::File, 0);
    let (run, _) = m.kswapd(PAGEBLOCK_ORDER);
    assert_eq!(run.order(), Order(0));
    assert!(run.nr_reclaimed() >= 1024);
}

fn boosted(rules: Rules, boost: u64) -> Machine {
    let mut m = Machine::new(Rules { watermark_boost: WatermarkBoost::PageblockStep, ..rules });
    m.fill(Kind::File, 0);
    m.kswapd(Order(0));
    while !m.mm.zones.iter().all(|z| z.free_pages > m.mm.wmark(z.id, Wmark::High) + boost) {
        let tail = m.mm.nodes[0].lruvecs[0].lists[LruList::InactiveFile as usize].back();
        m.mm.lru_del(tail);
        let env = m.env;
        m.mm.pagecache_remove(&env, tail, None);
        m.mm.free_pages(&env, tail, Order(0));
    }
    m.mm.drain_pcp_all();
    m.effects();
    m.mm.zones[1].boost = boost;
    assert!(m.balanced(), "balanced, boost included");
    m
}

#[test]
fn a_boost_is_reclaimed_gently_and_then_taken_back() {
    for rules in both_eras() {
        let mut m = boosted(rules, 512);
        let (run, _) = m.kswapd(Order(0));
        assert!(run.nr_reclaimed() >= 512, "{} pages for a boost of 512", run.nr_reclaimed());
        assert_eq!(m.mm.zones[1].boost, 0);
        assert_eq!(m.mm.nodes[0].kcompactd.max_order, PAGEBLOCK_ORDER, "asked; woken only where it may help");
        m.check();
    }
}

#[test]
fn a_boost_added_during_a_run_survives_it() {
    let mut m = boosted(rules_4_20(), 512);
    let mut run = BalancePgdat::new(&mut m.mm, NODE, Order(0), ZoneKind::Normal);
    m.mm.zones[1].boost += 512;
    m.run(|mm, env| run.step(mm, env));
    assert_eq!(m.mm.zones[1].boost, 512);
}

#[test]
fn a_boosted_run_that_finds_only_dirty_pages_ends_and_writes_nothing() {
    let mut m = boosted(Rules { boosted_slab: BoostedSlab::Skip, ..rules_4_20() }, 512);
    for frame in (0..m.mm.frames.len()).map(|n| units::Pfn(n as u32)) {
        if m.mm.frames[frame].has(Frame::LRU) {
            m.mm.frames[frame].set(Frame::DIRTY);
        }
    }
    m.mm.nodes[0].lruvecs[0].dirty_seen = true;
    let (run, _) = m.kswapd(Order(0));
    assert_eq!((run.nr_reclaimed(), m.mm.stat.node(NODE, NodeStat::VmscanWrite)), (0, 0));
    assert_eq!(m.mm.zones[1].boost, 0, "the boost is taken back all the same");
    m.check();
}

#[test]
fn on_an_unbalanced_node_the_boost_is_forgotten_and_the_run_is_ordinary() {
    let mut m = Machine::new(rules_4_20());
    m.fill(Kind::File, 0);
    m.mm.zones[1].boost = 512;
    let mut run = BalancePgdat::new(&mut m.mm, NODE, Order(0), ZoneKind::Normal);
    assert!(run.is_boosted());
    let env = m.env;
    run.step(&mut m.mm, &env);
    assert!(!run.is_boosted());
    m.run(|mm, env| run.step(mm, env));
    assert_eq!(m.mm.zones[1].boost, 0);
    assert!(m.balanced());
}

#[test]
fn a_snapshot_holds_the_boosts_of_eligible_zones() {
    let mut m = Machine::new(rules_4_20());
    (m.mm.zones[0].boost, m.mm.zones[1].boost) = (512, 1024);
    assert_eq!(BoostSnapshot::take(&m.mm, NODE, ZoneKind::Normal).total(), 1536);
    assert_eq!(BoostSnapshot::take(&m.mm, NODE, ZoneKind::Dma32).total(), 512);
}

#[test]
fn direct_reclaim_takes_at_least_32_pages_if_there_are_any() {
    for rules in both_eras() {
        let mut m = Machine::new(rules);
        m.fill(Kind::File, 0);
        let (progress, waits) = m.direct(Gfp::HIGHUSER, Order(0));
        assert!(progress >= 32, "{progress}");
        assert_eq!(waits, []);
        assert_eq!(m.mm.stat.zone_event(ZoneEvent::Allocstall, ZoneKind::Normal), 1);
        assert_eq!(m.mm.stat.event(VmEvent::PgstealDirect), progress);
        m.check();
    }
}

#[test]
fn direct_reclaim_without_anything_to_take_goes_through_all_priorities() {
    let mut m = Machine::new(rules_4_20());
    m.fill(Kind::Anon, Frame::ACTIVE);
    assert_eq!(m.direct(Gfp::HIGHUSER, Order(0)), (0, vec![]));
    assert_eq!(m.mm.stat.event(VmEvent::PgscanDirect), 0, "without swap anonymous pages are not scanned");
}

#[test]
fn a_task_without_a_reserve_waits_until_there_is_one_unless_it_may_hold_locks() {
    let mut m = Machine::new(rules_4_20());
    m.fill(Kind::File, 0);
    let free: Vec<u64> = m.mm.zones.iter().map(|z| z.free_pages).collect();
    m.mm.zones.iter_mut().for_each(|z| z.free_pages = 0);
    let (_, waits) = m.direct(Gfp::NOFS, Order(0));
    assert_eq!(waits, [ThrottleReason::Reserve], "for a second, once");
    assert_eq!(m.mm.stat.event(VmEvent::PgscanDirectThrottle), 1);
    m.mm.zones.iter_mut().zip(free).for_each(|(z, free)| z.free_pages = free);
}

#[test]
fn a_costly_request_is_left_to_compaction_where_memory_is_free() {
    let mut m = Machine::new(rules_4_20());
    m.add("a b c", Kind::File, 0);
    assert_eq!(m.direct(Gfp::TRANSHUGE, PAGEBLOCK_ORDER).0, 1, "ready: counts as progress");
    assert_eq!(m.draw(), "inactive: c b a | active:");
}

#[test]
fn kswapd_that_meets_nothing_but_writeback_waits_once_the_pages_come_round_again() {
    for (rules, reason) in [(rules_4_20(), ThrottleReason::Device), (Rules::newest(), ThrottleReason::Writeback)] {
        let mut m = Machine::new(rules);
        m.fill(Kind::File, Frame::WRITEBACK);
        m.mm.flush_lru_stats();
        // All priorities together scan less than the list: size x (1/4096 + ... + 1/2). Where sparing the active list is
        // given up after a useless run, they are gone through twice.
        let (_, first) = m.kswapd(Order(0));
        assert!(m.mm.nodes[0].lruvecs[0].writeback_seen);
        assert!(first.is_empty() || reason == ThrottleReason::Writeback, "{first:?}");
        let mut later_run = || {
            m.mm.flush_lru_stats();
            m.kswapd(Order(0)).1
        };
        let waits: Vec<_> = (0..3).flat_map(|_| later_run()).collect();
        assert!(!waits.is_empty() && waits.iter().all(|w| *w == reason), "{waits:?}");
        assert_eq!(m.mm.nodes[0].kswapd.failures, 4);
        m.check();
    }
}

/// Maps and writes anonymous memory; returns its space and first page.
fn write_anon(m: &mut Machine, pages: u32) -> (SpaceId, u32) {
    let env = fixture::env(false);
    let space = m.mm.space_create();
    let vpn = m.mm.mmap_anon(space, pages, 512);
    let mut touch = Touch::new(space, vpn, pages, true, 1 << 40);
    assert_eq!(m.mm.touch(&env, &mut touch, None), TouchStop::Done);
    (space, vpn)
}

fn with_swap(mut rules: Rules, pages: u32, thp: ThpEnabled) -> Machine {
    rules.watermark_boost = WatermarkBoost::Off;
    let mut m = Machine::new(rules);
    m.mm.tunables.thp_enabled = thp;
    m.mm.swap.add_device(&SwapSpec { device: 5, start_sector: 0, pages: pages + 1, priority: 0, rotational: true });
    m
}

/// Reclaims from the node at a priority, and nothing but its lists.
fn shrink_at(m: &mut Machine, priority: i8, target: u64) -> ScanControl {
    let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
    (sc.priority, sc.nr_to_reclaim, sc.may_shrink_slab) = (priority, target, false);
    let mut shrink = ShrinkNode::new(LRU);
    m.run(|mm, env| shrink.step(mm, env, &mut sc));
    sc
}

/// Ends every write to swap that was submitted; returns how many.
fn end_swap_writes(m: &mut Machine) -> u64 {
    let env = m.env;
    let mut ended = 0;
    for effect in m.effects() {
        if let Effect::Submit(Bio { target: BioTarget::Swap { pfn }, write: true, .. }) = effect {
            m.mm.end_swap_write(&env, pfn, true);
            ended += 1;
        }
    }
    ended
}

#[test]
fn anonymous_pages_are_written_to_swap_and_freed_when_that_has_ended() {
    for rules in both_eras() {
        let mut m = with_swap(rules, 4096, ThpEnabled::Never);
        let (space, vpn) = write_anon(&mut m, 1000);
        // A pass with nothing on the inactive list moves 32 pages there; later ones take references, then the pages.
        let mut written = 0;
        for _ in 0..64 {
            shrink_at(&mut m, 0, 1000);
            written += end_swap_writes(&mut m);
        }
        assert_eq!(written, 1000, "each page is written once");
        assert_eq!(m.mm.stat.node(NODE, NodeStat::VmscanWrite), 1000);
        assert_eq!(m.mm.stat.event(VmEvent::PgstealAnon), 1000);
        assert!((0..1000).all(|n| !m.mm.mincore(space, vpn + n)));
        assert_eq!(m.mm.stat.event(VmEvent::Pgrotated), 1000, "they were first in line when their writes ended");
        m.check();
    }
}

#[test]
fn once_the_last_slot_is_taken_anonymous_pages_are_not_scanned() {
    let mut m = with_swap(rules_4_20(), 64, ThpEnabled::Never);
    write_anon(&mut m, 1000);
    for _ in 0..64 {
        shrink_at(&mut m, 0, 1000);
        end_swap_writes(&mut m);
    }
    // 64 slots: one batch of 32 is written and freed, the next is written and takes the last slot. Its pages are in
    // the swap cache and clean, but nobody looks at their list any more.
    assert_eq!(m.mm.stat.event(VmEvent::PgstealAnon), 32);
    assert_eq!((m.mm.swap_free_pages(), m.mm.stat.node(NODE, NodeStat::SwapCached)), (0, 32));
    m.check();
}

#[test]
fn a_huge_page_is_split_and_swapped_page_by_page() {
    for rules in both_eras() {
        let mut m = with_swap(rules, 4096, ThpEnabled::Always);
        write_anon(&mut m, 1024);
        assert_eq!(m.mm.stat.node(NODE, NodeStat::AnonThps), 2);
        for _ in 0..64 {
            shrink_at(&mut m, 0, 1024);
            end_swap_writes(&mut m);
        }
        assert_eq!(m.mm.stat.event(VmEvent::ThpSplitPage), 2);
        assert_eq!(m.mm.stat.event(VmEvent::ThpSwpoutFallback), 2);
        assert_eq!(m.mm.stat.event(VmEvent::PgstealAnon), 1024);
        assert_eq!(m.mm.stat.node(NODE, NodeStat::AnonThps), 0);
        m.check();
    }
}

#[test]
fn a_batch_writes_the_huge_page_that_it_splits_and_no_other() {
    let mut m = with_swap(Rules::newest(), 4096, ThpEnabled::Always);
    write_anon(&mut m, 1536);
    let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
    let env = m.env;
    let mut batch = |m: &mut Machine| {
        m.mm.shrink_inactive_list(&env, LRU, LruList::InactiveAnon, 1, &mut sc);
        (m.mm.stat.event(VmEvent::ThpSplitPage), end_swap_writes(m))
    };
    // Each was written to once: the first look finds that.
    assert_eq!([(); 3].map(|()| batch(&mut m)), [(0, 0); 3]);
    assert_eq!(batch(&mut m), (1, 512), "two more stand behind it at the tail");
    assert_eq!(m.mm.stat.node(NODE, NodeStat::AnonThps), 2);
    m.check();
}

#[test]
fn a_boosted_run_does_not_swap() {
    let mut m = with_swap(rules_4_20(), 4096, ThpEnabled::Never);
    write_anon(&mut m, 1000);
    m.mm.zones[1].boost = 512;
    let (run, _) = m.kswapd(Order(0));
    assert_eq!((run.nr_reclaimed(), m.mm.stat.event(VmEvent::Pswpout)), (0, 0));
    assert_eq!(m.mm.zones[1].boost, 0);
}

#[test]
fn an_evicted_page_that_comes_back_soon_is_active() {
    for rules in both_eras() {
        let mut m = Machine::new(rules);
        m.add("J K", Kind::File, Frame::ACTIVE);
        m.add("a b c", Kind::File, 0);
        m.mm.flush_lru_stats();
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        let env = m.env;
        m.mm.shrink_inactive_list(&env, LRU, LruList::InactiveFile, 3, &mut sc);
        let shadow = |m: &Machine, index| match m.mm.pagecache_get(m.file, index) {
            Slot::Shadow(shadow) => shadow,
            slot => panic!("{slot:?}"),
        };
        // Clock 3 now. The page evicted last left 3 (4.20: 1, 2, 3) or 2 (6.12: 0, 1, 2): distance 0 or 1, and the
        // first one's is 2 or 3. Two pages are active: a distance up to 2 counts.
        let (a, c) = (shadow(&m, 2), shadow(&m, 4));
        let is_420 = m.mm.rules.scan_balance == rules::ScanBalance::RotatedRatio;
        m.add("d e", Kind::File, 0);
        let (d, e) = (m.page('d'), m.page('e'));
        m.mm.workingset_refault(&env, e, a);
        assert_eq!(m.frame('e').take(Frame::ACTIVE), is_420);
        m.mm.workingset_refault(&env, d, c);
        assert!(m.frame('d').take(Frame::ACTIVE));
        assert_eq!(m.mm.stat.node(NODE, NodeStat::WorkingsetRefaultFile), 2);
        assert_eq!(m.mm.stat.node(NODE, NodeStat::WorkingsetActivateFile), 1 + u64::from(is_420));
        assert_eq!(m.mm.stat.node(NODE, NodeStat::WorkingsetRestoreFile), 0, "they never were active");
    }
}

#[test]
fn dentries_and_inodes_are_shrunk_and_slabs_that_are_freed_at_once_count_as_reclaimed() {
    let mut m = Machine::new(rules_4_20());
    let env = m.env;
    let fs = m.mm.vfs_mkfs(crate::vfs::FsSpec::ext4(4, units::Bytes::gib(4)));
    let root = m.mm.vfs_root(fs);
    for _ in 0..20_000 {
        let handle = m.mm.vfs_create(&env, root).expect("memory is plentiful");
        m.mm.vfs_close(&env, handle);
    }
    let slab = |m: &Machine| m.mm.stat.node(NODE, NodeStat::SlabReclaimable);
    let (before, freed_before) = (slab(&m), m.mm.stat.event(VmEvent::Pgfree));
    let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
    (sc.priority, sc.nr_to_reclaim) = (0, 1);
    let mut shrink = ShrinkNode::new(LRU);
    let (steps, _) = m.run(|mm, env| shrink.step(mm, env, &mut sc));
    assert!(m.mm.stat.event(VmEvent::SlabsScanned) > 0);
    assert!(steps >= 20, "batches of 1024, one a step: {steps}");
    // Slabs of `jbd2_inode`, and the pages of metadata buffers.
    assert_eq!(sc.nr_reclaimed, m.mm.stat.event(VmEvent::Pgfree) - freed_before, "no page was on the LRU lists");
    // Dentries and inodes wait for a grace period, and count for nobody: a 21st of 20,000 pages and a 15th of slabs of four.
    let (reclaimed, freed) = (sc.nr_reclaimed, 20_000 / 21 + 20_000 / 15 * 4);
    assert!(reclaimed > 0 && reclaimed < freed, "{reclaimed}");
    while m.mm.rcu_tick(&env) {}
    assert!(before - slab(&m) > freed * 9 / 10, "{before} {}", slab(&m));
    assert_eq!(sc.nr_reclaimed, reclaimed);
    m.check();
}

#[test]
fn a_direct_reclaimer_at_priority_0_takes_the_swap_token_away() {
    for (flags, keeps) in [(0, true), (Frame::LOCKED, false)] {
        let mut m = Machine::new(Rules { swap_token: rules::SwapToken::Ages, ..rules_4_20() });
        let space = m.mm.space_create();
        m.mm.grab_swap_token(space);
        m.fill(Kind::File, flags);
        m.direct(Gfp::KERNEL, Order(0));
        assert_eq!(m.mm.swap_token_holder().is_some(), keeps);
    }
}

#[test]
fn a_page_of_the_process_with_the_swap_token_is_activated_by_others() {
    for (sleeps, freed) in [(false, 1), (true, 0)] {
        let mut m = with_swap(Rules { swap_token: rules::SwapToken::Ages, ..rules_4_20() }, 4096, ThpEnabled::Never);
        write_anon(&mut m, 1);
        let mut sc = ScanControl::kswapd(Order(0), ZoneKind::Normal);
        let env = m.env;
        // On the active list, and young: to the inactive one, which takes the mark.
        m.mm.shrink_active_list(&env, LRU, LruList::ActiveAnon, 1, &sc);
        let space = m.mm.spaces.live().next().expect("it was written to");
        m.mm.grab_swap_token(space);
        if sleeps {
            m.mm.fault_sleeps(space);
        }
        m.mm.shrink_inactive_list(&env, LRU, LruList::InactiveAnon, 1, &mut sc);
        assert_eq!(end_swap_writes(&mut m), freed, "{sleeps}");
        m.check();
    }
}

#[test]
fn since_6_8_direct_reclaim_in_vain_goes_through_all_groups_once_more_even_if_there_is_but_the_root() {
    for (memcg_walk, rounds) in [(MemcgWalkSharing::Nobody, 1), (MemcgWalkSharing::DirectReclaim, 2)] {
        let mut m = Machine::new(Rules { memcg_walk, ..Rules::newest() });
        let (progress, _) = m.direct(Gfp::KERNEL, Order(0));
        assert_eq!(
            (progress, m.mm.stat.zone_event(ZoneEvent::Allocstall, ZoneKind::Normal)),
            (0, rounds),
            "there is nothing to reclaim"
        );
    }
}

/// Half of the pages are isolated until direct reclaim has waited four times.
#[test]
fn until_4_12_direct_reclaim_waits_until_fewer_are_isolated_and_later_it_leaves_the_list() {
    for (isolation_wait, waits, reclaims) in [(IsolationWait::Congestion, 4, true), (IsolationWait::Sleep, 1, false)] {
        let mut m = Machine::new(Rules { isolation_wait, ..rules_4_20() });
        m.add("abcdefgh", Kind::File, 0);
        let isolated = "abcd".chars().map(|name| m.page(name)).collect::<Vec<_>>();
        assert!(isolated.iter().all(|pfn| m.mm.lru_isolate(*pfn)));
        let mut sc = ScanControl { priority: 1, ..ScanControl::direct(Gfp::KERNEL, Order(0), ZoneKind::Normal) };
        let (mut shrink, env) = (ShrinkNode::new(LRU), fixture::env(false));
        let mut throttled = 0;
        loop {
            match shrink.step(&mut m.mm, &env, &mut sc) {
                Step::Done => break,
                Step::Throttle(..) => throttled += 1,
                _ => continue,
            }
            if throttled == 4 {
                isolated.iter().for_each(|pfn| m.mm.lru_putback(&env, *pfn));
            }
        }
        assert_eq!((throttled, sc.nr_reclaimed > 0), (waits, reclaims), "{isolation_wait:?}");
    }
}
