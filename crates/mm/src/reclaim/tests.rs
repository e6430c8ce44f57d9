//! Whole runs of kswapd and direct reclaim on a small machine.

use rules::{BoostedSlab, Rules, WatermarkBoost};
use units::{Gfp, Order, PAGEBLOCK_ORDER};

use super::fixture::{Machine, NODE, rules_4_20};
use super::{BalancePgdat, BoostSnapshot, ThrottleReason};
use crate::stat::{NodeStat, VmEvent, ZoneEvent};
use crate::zone::{MAX_RECLAIM_RETRIES, Wmark};
use crate::{Effect, Frame, Kind, LruList, ZoneKind};

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
        let left = m.mm.lru_size(NODE, LruList::InactiveFile) + m.mm.lru_size(NODE, LruList::ActiveFile);
        assert_eq!(left + run.nr_reclaimed(), filled, "each page was either freed or kept");
        assert_eq!(m.mm.stat.event(VmEvent::PgstealKswapd), run.nr_reclaimed());
        assert_eq!(m.mm.stat.event(VmEvent::Pageoutrun), 1);
        assert_eq!(m.mm.nodes[0].kswapd.failures, 0);
        m.check();
    }
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
        let tail = m.mm.nodes[0].lruvec.lists[LruList::InactiveFile as usize].back();
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
        assert!(m.effects().contains(&Effect::WakeKcompactd(NODE, PAGEBLOCK_ORDER)));
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
    m.mm.nodes[0].dirty_seen = true;
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
        // All priorities together scan less than the list: size x (1/4096 + ... + 1/2). Where sparing the active list is
        // given up after a useless run, they are gone through twice.
        let (_, first) = m.kswapd(Order(0));
        assert!(m.mm.nodes[0].writeback_seen);
        assert!(first.is_empty() || reason == ThrottleReason::Writeback, "{first:?}");
        let waits: Vec<_> = (0..3).flat_map(|_| m.kswapd(Order(0)).1).collect();
        assert!(!waits.is_empty() && waits.iter().all(|w| *w == reason), "{waits:?}");
        assert_eq!(m.mm.nodes[0].kswapd.failures, 4);
        m.check();
    }
}
