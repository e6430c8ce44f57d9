//! The OOM killer's choice.

use crate::memcg::ROOT;
use rules::{OomScore, Rules};

use crate::anon::OomChoice;
use crate::anon::testing::{Machine, rules_4_20};
use crate::stat::VmEvent;

#[test]
fn badness_is_memory_and_adjustment() {
    let mut m = Machine::new(rules_4_20());
    m.add_swap(1000, false);
    let vpn = m.mmap(100);
    m.touch(vpn, 100, true);
    m.swap_out(vpn);
    let space = m.space;
    // 99 resident, 1 swapped, PTE + PMD + PUD page.
    assert_eq!(m.mm.oom_badness(space, ROOT), Some(99 + 1 + 3));
    // Memory 64 * 512 pages and 1000 of swap: a thousandth is 33 pages, rounded down.
    m.mm.set_oom_score_adj(space, 10);
    assert_eq!(m.mm.oom_badness(space, ROOT), Some(103 + 10 * 33));
    m.mm.set_oom_score_adj(space, -999);
    assert_eq!(m.mm.oom_badness(space, ROOT), Some(1), "at least one");
    m.mm.rules = Rules { oom_score: OomScore::Signed, ..m.mm.rules.clone() };
    assert_eq!(m.mm.oom_badness(space, ROOT), Some(103 - 999 * 33));
    m.mm.set_oom_score_adj(space, -1000);
    assert_eq!(m.mm.oom_badness(space, ROOT), None);
    assert_eq!(m.mm.oom_select(ROOT), OomChoice::Nobody);
}

#[test]
fn the_largest_is_killed_and_the_next_only_after_it_was_reaped() {
    let mut m = Machine::new(rules_4_20());
    let (small, env, free) = (m.space, m.env, m.free());
    let vpn = m.mmap(10);
    m.touch(vpn, 10, true);
    let large = m.mm.space_create();
    m.space = large;
    let vpn = m.mmap(2000);
    m.touch(vpn, 2000, true);
    assert_eq!(m.mm.oom_select(ROOT), OomChoice::Kill(large));
    m.mm.oom_kill(large);
    assert_eq!((m.mm.oom_select(ROOT), m.event(VmEvent::OomKill)), (OomChoice::Pending(large), 1));
    m.mm.oom_reap(&env, large);
    assert_eq!(m.rss(), 0);
    assert_eq!(m.mm.oom_select(ROOT), OomChoice::Kill(small));
    m.mm.space_exit(&env, large);
    m.check();
    // What is left: 10 pages, and PGD, PUD, PMD and PTE page.
    assert_eq!(m.free(), free - 14);
    m.space = small;
    m.end(0);
}
