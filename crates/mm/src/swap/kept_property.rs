//! No page is lost on its way through compressed swap.
//!
//! Every write of a page gives it a new version. Beside the machine stand the versions that its frames, what is kept in memory for slots
//! and the device ought to hold; whichever way a page comes back, it must have the version that was written last.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rules::{Rules, ZeroPages};
use units::{Contents, Gfp, Pfn};

use super::SwapEntry;
use super::kept::Kept;
use super::kept_tests::{add_zram, add_zswap};
use crate::Frame;
use crate::anon::testing::{Machine, rules_4_20};
use crate::anon::{Slot, TouchStop};

#[derive(Clone, Debug)]
enum Op {
    Access {
        page: u32,
        write: bool,
    },
    SwapOut {
        page: u32,
    },
    /// What reclaim does with a page of the swap cache that nobody maps: writes it if it is dirty, else lets it go.
    Reclaim {
        page: u32,
    },
    Complete {
        at: usize,
        ok: bool,
    },
    /// zswap's shrinker looks at so many pages.
    Shrink {
        pages: u64,
    },
}

const PAGES: u32 = 6;

fn op() -> impl Strategy<Value = Op> {
    let page = 0..PAGES;
    prop_oneof![
        4 => (page.clone(), any::<bool>()).prop_map(|(page, write)| Op::Access { page, write }),
        4 => page.clone().prop_map(|page| Op::SwapOut { page }),
        4 => page.prop_map(|page| Op::Reclaim { page }),
        3 => (0..8usize, prop::bool::weighted(0.8)).prop_map(|(at, ok)| Op::Complete { at, ok }),
        2 => (1..12u64).prop_map(|pages| Op::Shrink { pages }),
    ]
}

/// A bio under way: the page's frame and slot, and the version that a write carries.
struct Flying {
    pfn: Pfn,
    entry: SwapEntry,
    write: Option<u64>,
}

/// A machine beside what its pages ought to hold: each write makes a version.
struct World {
    m: Machine,
    vpn: u32,
    version: u64,
    /// The version that each page of the process was last given.
    pages: Vec<u64>,
    /// What frames hold, what is kept in memory for slots, and what is on the device.
    frames: BTreeMap<Pfn, u64>,
    kept: BTreeMap<u32, u64>,
    device: BTreeMap<u32, u64>,
    flying: Vec<Flying>,
}

impl World {
    fn new(m: Machine) -> World {
        let mut world = World {
            m,
            vpn: 0,
            version: 0,
            pages: vec![0; PAGES as usize],
            frames: BTreeMap::new(),
            kept: BTreeMap::new(),
            device: BTreeMap::new(),
            flying: Vec::new(),
        };
        world.vpn = world.m.mmap(PAGES);
        world.m.touch(world.vpn, PAGES, true);
        for page in 0..PAGES {
            let pfn = world.m.pfn(world.vpn + page);
            world.frames.insert(pfn, 0);
        }
        world
    }

    fn slot(&self, page: u32) -> Option<SwapEntry> {
        match self.m.mm.slot_of(self.m.space, self.vpn + page) {
            Slot::Swap(entry) => Some(entry),
            _ => None,
        }
    }

    /// Slots of all pages, and those that the swap cache holds a page for.
    fn slots(&self) -> Vec<(SwapEntry, Option<Pfn>)> {
        (0..PAGES).filter_map(|page| self.slot(page)).map(|entry| (entry, self.m.mm.swap.cached(entry))).collect()
    }

    /// Takes the bios that were submitted.
    fn collect(&mut self) {
        for (pfn, _, write) in self.m.bios() {
            let entry = self.m.mm.swap_entry_of(pfn).expect("a page under I/O has a slot");
            let write = write.then(|| self.frames[&pfn]);
            self.flying.push(Flying { pfn, entry, write });
        }
    }

    fn complete(&mut self, at: usize, ok: bool) {
        if self.flying.is_empty() {
            return;
        }
        let Flying { pfn, entry, write } = self.flying.remove(at % self.flying.len());
        let env = self.m.env;
        match write {
            Some(version) => {
                if ok {
                    self.device.insert(entry.0, version);
                }
                self.m.mm.end_swap_write(&env, pfn, ok);
            }
            None => {
                self.frames.insert(pfn, self.device[&entry.0]);
                self.m.mm.end_swap_read(&env, pfn, true);
            }
        }
        self.collect();
    }

    fn access(&mut self, page: u32, write: bool) {
        let before = self.slots();
        let own = self.slot(page);
        let mut touch = self.m.begin(self.vpn + page, 1, write);
        loop {
            let stop = self.m.go_on(&mut touch, None);
            self.collect();
            match stop {
                TouchStop::Done => break,
                TouchStop::Wait(pfn) => {
                    let at = self.flying.iter().position(|flying| flying.pfn == pfn).expect("it is under I/O");
                    self.complete(at, true);
                }
                stop => panic!("memory is plentiful: {stop:?}"),
            }
        }
        let pfn = self.m.pfn(self.vpn + page);
        // What was kept came from there.
        for (entry, cached) in before {
            let now = if own == Some(entry) { Some(pfn) } else { self.m.mm.swap.cached(entry) };
            if let (None, Some(now), Some(&version)) = (cached, now, self.kept.get(&entry.0)) {
                self.frames.insert(now, version);
                if self.m.mm.swap.kept(entry) == Kept::Nothing {
                    self.kept.remove(&entry.0);
                }
            }
        }
        assert_eq!(self.frames[&pfn], self.pages[page as usize], "page {page} is not what was written to it");
        if write {
            self.version += 1;
            self.pages[page as usize] = self.version;
            self.frames.insert(pfn, self.version);
        }
    }

    /// Notes where the page of a frame went that was given to swap.
    fn stored(&mut self, pfn: Pfn) {
        let entry = self.m.mm.swap_entry_of(pfn).expect("it has a slot");
        match self.m.mm.swap.kept(entry) {
            Kept::Nothing => self.kept.remove(&entry.0),
            _ => self.kept.insert(entry.0, self.frames[&pfn]),
        };
        self.collect();
    }

    fn swap_out(&mut self, page: u32) {
        let Slot::Page(pfn) = self.m.mm.slot_of(self.m.space, self.vpn + page) else { return };
        let written = !self.m.mm.frames[pfn].has(Frame::SWAPCACHE) || self.m.mm.frames[pfn].has(Frame::DIRTY);
        if self.m.mm.frames[pfn].has(Frame::WRITEBACK) {
            return;
        }
        assert!(self.m.swap_out(self.vpn + page));
        if written {
            self.stored(pfn);
        }
    }

    fn reclaim(&mut self, page: u32) {
        let Some(pfn) = self.slot(page).and_then(|entry| self.m.mm.swap.cached(entry)) else { return };
        let frame = &self.m.mm.frames[pfn];
        if frame.has_any(Frame::WRITEBACK | Frame::LOCKED) {
            return;
        }
        if frame.has(Frame::DIRTY) {
            let env = self.m.env;
            assert!(self.m.mm.pageout_anon(&env, pfn));
            self.stored(pfn);
        } else {
            self.m.drop_cached(pfn);
            self.frames.remove(&pfn);
        }
    }

    /// A page that zswap writes back stands in a frame of its own, with what was kept.
    fn shrink(&mut self, pages: u64) {
        let env = self.m.env;
        let before = self.slots();
        self.m.mm.zswap_scan(&env, pages, Gfp::KERNEL);
        for (entry, cached) in before {
            if let (None, Some(pfn)) = (cached, self.m.mm.swap.cached(entry)) {
                let version = self.kept.remove(&entry.0).expect("zswap had it");
                self.frames.insert(pfn, version);
            }
        }
        self.collect();
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Access { page, write } => self.access(page, write),
            Op::SwapOut { page } => self.swap_out(page),
            Op::Reclaim { page } => self.reclaim(page),
            Op::Complete { at, ok } => self.complete(at, ok),
            Op::Shrink { pages } => self.shrink(pages),
        }
        self.m.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_was_written_comes_back_from_zram_zswap_and_the_disk(
        ops in prop::collection::vec(op(), 1..200),
        zram in any::<bool>(),
        new in any::<bool>(),
        max_pool_percent in prop_oneof![Just(0u64), Just(20)],
    ) {
        let contents = Contents { mean_bytes: 2800, same_filled_percent: 20 };
        let rules = if new { Rules::newest() } else { Rules { zero_pages: ZeroPages::Written, ..rules_4_20() } };
        let m = Machine::with_nodes(1, 4, rules);
        let mut m = if zram { add_zram(m, contents) } else { add_zswap(m, contents) };
        m.mm.tunables.zswap_max_pool_percent = max_pool_percent;
        let mut world = World::new(m);
        for op in &ops {
            world.apply(op);
        }
        while !world.flying.is_empty() {
            world.complete(0, true);
        }
        for page in 0..PAGES {
            world.access(page, false);
        }
        while !world.flying.is_empty() {
            world.complete(0, true);
        }
        world.m.end(0);
    }
}
