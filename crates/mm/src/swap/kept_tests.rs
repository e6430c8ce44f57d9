//! Compressed swap: what it costs and counts.

use rules::{Rules, Switch, ZeroPages, ZramIo};
use units::{Contents, Gfp, NodeId};

use super::ZswapStep;
use crate::anon::testing::{Machine, rules_4_20};
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::{Effect, Frame};
use rules::Compressor;

/// A number that no disk has.
const ZRAM: u16 = 9;
/// Each page takes half a page.
const HALVES: Contents = Contents { mean_bytes: 2048, same_filled_percent: 0 };

fn with_zram(rules: Rules, contents: Contents) -> Machine {
    add_zram(Machine::new(rules), contents)
}

pub(super) fn add_zram(mut m: Machine, contents: Contents) -> Machine {
    m.mm.swap.contents = contents;
    m.mm.swap.add_zram(ZRAM, 30_001, 100, Compressor::Lz4);
    m
}

fn with_zswap(rules: Rules, contents: Contents) -> Machine {
    add_zswap(Machine::new(rules), contents)
}

pub(super) fn add_zswap(mut m: Machine, contents: Contents) -> Machine {
    m.mm.swap.contents = contents;
    m.mm.tunables.zswap_enabled = Switch::On;
    m.add_swap(4096, false);
    m
}

fn take_ns(m: &mut Machine) -> u64 {
    m.mm.take_cpu_ns()
}

#[test]
fn a_page_goes_to_zram_and_back_at_the_cost_of_its_compressor() {
    let mut m = with_zram(Rules::newest(), HALVES);
    let vpn = m.mmap(1);
    m.touch(vpn, 1, true);
    let pfn = m.pfn(vpn);
    take_ns(&mut m);
    assert!(m.swap_out(vpn));
    let out = take_ns(&mut m);
    assert!(out > m.mm.costs.swap_out + m.mm.costs.compress_lz4, "{out}");
    assert!(m.bios().is_empty() && !m.mm.frames[pfn].has_any(Frame::WRITEBACK | Frame::DIRTY), "it is written");
    assert_eq!((m.event(VmEvent::Pswpout), m.event(VmEvent::Pgpgout), m.gauge(NodeStat::Written)), (1, 4, 1));
    assert!(m.mm.stat.zone_sum(ZoneStat::Zspages) > 0);
    m.drop_cached(pfn);
    m.check();
    take_ns(&mut m);
    m.touch(vpn, 1, false);
    assert_eq!((m.event(VmEvent::Pswpin), m.event(VmEvent::Pgmajfault), m.event(VmEvent::Pgpgin)), (1, 1, 4));
    let back = take_ns(&mut m);
    assert!(back > m.mm.costs.swap_in + m.mm.costs.decompress_lz4 && back < m.mm.costs.compress_lz4 + out, "{back}");
    assert_eq!(m.mm.stat.zone_sum(ZoneStat::Zspages), 0, "its slot is free, and its memory with it");
    m.end(0);
}

#[test]
fn zram_takes_as_much_memory_as_its_pages_compress_to() {
    const PAGES: u32 = 20_000;
    for mean_bytes in [1024_u32, 2048] {
        let mut m = with_zram(Rules::newest(), Contents { mean_bytes, same_filled_percent: 0 });
        let vpn = m.mmap(PAGES);
        m.touch(vpn, PAGES, true);
        for page in vpn..vpn + PAGES {
            let pfn = m.pfn(page);
            assert!(m.swap_out(page));
            m.drop_cached(pfn);
        }
        // The sizes themselves, from half to one and a half of the mean, up to 4 % that zspages waste at their ends, and a zspage
        // of 8 pages that is not full for each class, 16 bytes apart.
        let least = f64::from(mean_bytes) / 4096.0;
        let most = least * 1.04 + f64::from(mean_bytes / 16 * 8) / f64::from(PAGES);
        let share = m.mm.stat.zone_sum(ZoneStat::Zspages) as f64 / f64::from(PAGES);
        assert!((least..most).contains(&share), "{mean_bytes}: {share}, expected {least} to {most}");
        m.end(0);
    }
}

#[test]
fn a_page_of_zeros_takes_no_memory_and_since_6_11_no_device_hears_of_it() {
    let zeros = Contents { same_filled_percent: 100, ..HALVES };
    let written = Rules { zero_pages: ZeroPages::Written, ..rules_4_20() };
    for (rules, pswpout) in [(Rules::newest(), 0), (written.clone(), 1)] {
        let mut m = with_zram(rules, zeros);
        let vpn = m.mmap(1);
        m.touch(vpn, 1, true);
        let pfn = m.pfn(vpn);
        assert!(m.swap_out(vpn));
        assert_eq!((m.event(VmEvent::Pswpout), m.mm.stat.zone_sum(ZoneStat::Zspages)), (pswpout, 0));
        m.drop_cached(pfn);
        m.touch(vpn, 1, true);
        assert_eq!(m.event(VmEvent::Pswpin), pswpout);
        m.end(0);
    }
    // A disk has to write it before 6.11.
    for (rules, bios) in [(Rules::newest(), 0), (written, 1)] {
        let mut m = Machine::new(rules);
        m.mm.swap.contents = zeros;
        m.add_swap(4096, false);
        let vpn = m.mmap(1);
        m.touch(vpn, 1, true);
        assert!(m.swap_out(vpn));
        assert_eq!(m.finish_io(), bios);
        m.end(0);
    }
}

#[test]
fn what_zram_is_given_by_the_page_is_no_disks() {
    for (zram_io, kib) in [(ZramIo::Bio, 4), (ZramIo::Page, 0)] {
        let mut m = with_zram(Rules { zram_io, ..Rules::newest() }, HALVES);
        let vpn = m.mmap(1);
        m.touch(vpn, 1, true);
        let pfn = m.pfn(vpn);
        assert!(m.swap_out(vpn));
        m.drop_cached(pfn);
        m.touch(vpn, 1, true);
        assert_eq!([VmEvent::Pswpout, VmEvent::Pswpin].map(|event| m.event(event)), [1, 1]);
        assert_eq!([VmEvent::Pgpgout, VmEvent::Pgpgin].map(|event| m.event(event)), [kib, kib]);
        m.end(0);
    }
}

#[test]
fn zram_without_memory_leaves_the_page_dirty() {
    let mut m = with_zram(Rules::newest(), HALVES);
    let vpn = m.mmap(1);
    m.touch(vpn, 1, true);
    let pfn = m.pfn(vpn);
    let held = m.exhaust();
    let mut reserve = Vec::new();
    let request = crate::AllocRequest { gfp: Gfp::KERNEL, order: units::Order(0), node: NodeId(0) };
    while let Some(page) = m.reserve(request) {
        reserve.push(page);
    }
    assert!(m.swap_out(vpn));
    assert!(m.mm.frames[pfn].has(Frame::DIRTY | Frame::SWAPCACHE), "it is nowhere else");
    let pages = held.len() + reserve.len();
    held.into_iter().chain(reserve).for_each(|page| m.give(page));
    m.touch(vpn, 1, false);
    assert!(pages > 0);
    m.end(0);
}

#[test]
fn zswap_keeps_pages_until_they_are_read_and_loads_are_exclusive() {
    let mut m = with_zswap(Rules::newest(), HALVES);
    let vpn = m.mmap(1);
    m.touch(vpn, 1, true);
    let pfn = m.pfn(vpn);
    assert!(m.swap_out(vpn));
    assert_eq!((m.bios().len(), m.event(VmEvent::Zswpout), m.event(VmEvent::Pswpout)), (0, 1, 0));
    m.drop_cached(pfn);
    m.check();
    m.touch(vpn, 1, false);
    assert_eq!((m.event(VmEvent::Zswpin), m.event(VmEvent::Pswpin), m.event(VmEvent::Pgmajfault)), (1, 0, 1));
    assert_eq!(m.mm.zswap_stored_pages(), 0, "the page is the only copy now");
    assert!(m.mm.frames[m.pfn(vpn)].has(Frame::DIRTY | Frame::SWAPCACHE));
    m.end(0);
}

#[test]
fn at_its_limit_zswap_takes_nothing_until_a_worker_has_written_enough_back() {
    let mut m = with_zswap(Rules::newest(), Contents { mean_bytes: 4000, same_filled_percent: 0 });
    // 1 % of 32768 pages: 327, of which 90 % are 294.
    m.mm.tunables.zswap_max_pool_percent = 1;
    let limit = m.mm.total_pages().0 / 100;
    let vpn = m.mmap(2000);
    m.touch(vpn, 2000, true);
    let mut page = vpn;
    let mut out = |m: &mut Machine| {
        let pfn = m.pfn(page);
        assert!(m.swap_out(page));
        page += 1;
        let under_way = m.mm.frames[pfn].has(Frame::WRITEBACK);
        if !under_way {
            m.drop_cached(pfn);
        }
        under_way
    };
    let before_limit = (0..1000).find(|_| {
        m.mm.zswap_total_pages() >= limit || {
            out(&mut m);
            false
        }
    });
    assert!(before_limit.is_some() && m.mm.zswap_total_pages() >= limit);
    let stored = m.mm.zswap_stored_pages();
    assert!(out(&mut m), "the device gets the page");
    assert_eq!(m.mm.zswap_stored_pages(), stored);
    let env = m.env;
    let mut effects = Vec::new();
    m.mm.effects.take_into(&mut effects);
    assert!(effects.contains(&Effect::WakeZswap));
    let mut steps = 0;
    while m.mm.zswap_shrink_step(&env, None) == ZswapStep::More {
        steps += 1;
    }
    assert!(steps as u64 >= stored, "each page was passed over once");
    assert!(m.mm.zswap_total_pages() <= limit * 90 / 100);
    let written = m.event(VmEvent::Zswpwb);
    assert!(written > 0 && m.finish_io() as u64 == written, "they are on their way to the device");
    assert_eq!(m.mm.zswap_listed() as u64, m.mm.zswap_stored_pages());
    assert!(!out(&mut m), "it takes pages again");
    m.check();
}

#[test]
fn the_shrinker_offers_what_compression_saves_less_what_was_read_from_devices() {
    let mut m = with_zswap(Rules::newest(), HALVES);
    let vpn = m.mmap(400);
    m.touch(vpn, 400, true);
    for page in vpn..vpn + 400 {
        assert!(m.swap_out(page));
    }
    let node = NodeId(0);
    assert_eq!(m.mm.zswap_count(node), 0, "it is off");
    m.mm.tunables.zswap_shrinker_enabled = Switch::On;
    let pages = m.mm.zswap_total_pages();
    assert_eq!(m.mm.zswap_count(node), pages);
    (0..100).for_each(|_| m.mm.zswap_missed());
    // 300 of 400 pages, scaled.
    assert_eq!(m.mm.zswap_count(node), 300 * pages / 400);
    assert_eq!(m.mm.zswap_count(node), pages, "they count once");
}
