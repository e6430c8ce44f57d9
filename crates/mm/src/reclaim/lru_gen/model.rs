//! The generations as plain vectors, against which the lists through the frame table are tested.
//!
//! File pages can be evicted, anonymous ones cannot: there is no swap.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use proptest::prelude::*;
use rules::{GenerationStart, LruGenCaps, LruPolicy, Rules, Tunables};

use super::super::fixture::{LRU, Machine};
use super::super::{ScanControl, lru::is_file_lru};
use super::*;
use crate::stat::VmEvent;
use crate::{Frame, Kind};

const NAMES: &str = "abcdefghXYZ";

/// What a test does to a page, or to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    /// Read through a file descriptor.
    Access,
    /// Found accessed in a page table.
    Promote,
    /// Its writeback ended.
    Rotate,
    /// It could not be invalidated.
    Deactivate,
    Activate,
    /// Compaction takes it and gives it back.
    Putback,
    Dirty,
    /// A new generation begins.
    Age,
    /// A batch is evicted.
    Evict,
}

const OPS: [Op; 9] =
    [Op::Access, Op::Promote, Op::Rotate, Op::Deactivate, Op::Activate, Op::Putback, Op::Dirty, Op::Age, Op::Evict];

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    kind: usize,
    at: usize,
    refs: u32,
    referenced: bool,
    workingset: bool,
    dirty: bool,
    reclaim: bool,
}

impl Page {
    fn forget(&mut self) {
        (self.refs, self.referenced, self.workingset) = (0, false, false);
    }
}

struct Model {
    /// As in 6.1.
    by_kswapd: bool,
    /// File pages join the second oldest generation, and go there for their accesses.
    protects: bool,
    max: u64,
    min: [u64; 2],
    /// By generation and type, head first.
    lists: [[VecDeque<char>; 2]; 4],
    pages: BTreeMap<char, Page>,
    evicted: u64,
    sorted: u64,
}

impl Model {
    fn join(&mut self, name: char, mut page: Page, active: bool, last: bool) {
        let seq = if active {
            self.max
        } else if page.kind == ANON || (page.reclaim && page.dirty) {
            if self.protects { self.max - 1 } else { self.min[page.kind] + 1 }
        } else if !self.protects || last || self.max - self.min[FILE] <= 2 {
            self.min[FILE]
        } else {
            self.min[FILE] + 1
        };
        page.at = (seq % 4) as usize;
        if active && !self.by_kswapd {
            (page.refs, page.referenced) = (0, false);
        }
        let list = &mut self.lists[page.at][page.kind];
        if last {
            list.push_back(name)
        } else {
            list.push_front(name)
        }
        self.pages.insert(name, page);
    }

    /// Takes a page off; whether it counted as active.
    fn leave(&mut self, name: char) -> (Page, bool) {
        let page = self.pages.remove(&name).expect("the page is there");
        self.lists.iter_mut().flatten().for_each(|list| list.retain(|n| *n != name));
        let active = [self.max, self.max - 1].iter().any(|seq| (seq % 4) as usize == page.at);
        (page, active)
    }

    fn apply(&mut self, name: char, op: Op) {
        match op {
            Op::Age => self.age(),
            Op::Evict => self.evict(),
            _ if self.pages.contains_key(&name) => self.apply_to_page(name, op),
            _ => {}
        }
    }

    fn apply_to_page(&mut self, name: char, op: Op) {
        let youngest = (self.max % 4) as usize;
        let page = self.pages.get_mut(&name).expect("the page is there");
        match op {
            Op::Access if !page.referenced => page.referenced = true,
            Op::Access if !page.workingset => page.workingset = true,
            Op::Access => page.refs = (page.refs + 1).min(3),
            Op::Promote => {
                page.at = youngest;
                page.forget();
            }
            Op::Rotate if page.dirty => {}
            Op::Rotate => {
                let (page, _) = self.leave(name);
                self.join(name, page, false, true);
            }
            Op::Deactivate => {
                let (mut page, _) = self.leave(name);
                page.referenced = false;
                self.join(name, page, false, !page.dirty);
                self.pages.get_mut(&name).expect("just joined").reclaim |= page.dirty;
            }
            Op::Activate => {
                let (page, _) = self.leave(name);
                self.join(name, page, true, false);
            }
            Op::Putback => {
                let (page, active) = self.leave(name);
                self.join(name, page, active, false);
            }
            Op::Dirty => page.dirty = true,
            Op::Age | Op::Evict => unreachable!("they are not for one page"),
        }
    }

    fn age(&mut self) {
        if self.max - self.min[FILE] == 3 {
            let oldest = (self.min[FILE] % 4) as usize;
            while let Some(name) = self.lists[oldest][FILE].pop_back() {
                let page = self.pages.get_mut(&name).expect("listed");
                if page.at == oldest {
                    page.at = (oldest + 1) % 4;
                    page.forget();
                }
                self.lists[page.at][FILE].push_back(name);
            }
            self.min[FILE] += 1;
        }
        self.min[ANON] += u64::from(self.max - self.min[ANON] == 3);
        self.max += 1;
    }

    fn evict(&mut self) {
        let mut isolated = Vec::new();
        let oldest = (self.min[FILE] % 4) as usize;
        if self.max - self.min[FILE] >= 2 {
            while let Some(name) = self.lists[oldest][FILE].pop_back() {
                let page = self.pages.get_mut(&name).expect("listed");
                if page.at != oldest {
                    self.lists[page.at][FILE].push_front(name);
                    self.sorted += 1;
                } else if self.protects && page.workingset && page.refs == 3 {
                    page.at = (oldest + 1) % 4;
                    page.forget();
                    self.lists[page.at][FILE].push_back(name);
                    self.sorted += 1;
                } else if self.by_kswapd && page.dirty {
                    page.at = (oldest + 1) % 4;
                    page.forget();
                    page.reclaim = true;
                    self.lists[page.at][FILE].push_front(name);
                    self.sorted += 1;
                } else {
                    isolated.push(name);
                }
            }
        }
        while self.max - self.min[FILE] >= 2 && self.lists[(self.min[FILE] % 4) as usize][FILE].is_empty() {
            self.min[FILE] += 1;
        }
        for name in isolated {
            let mut page = self.pages.remove(&name).expect("isolated");
            if !page.dirty {
                self.evicted += 1;
                continue;
            }
            if !page.referenced {
                page.forget();
            }
            page.reclaim = true;
            self.join(name, page, true, false);
        }
    }

    fn draw(&self) -> String {
        let mut out = format!("{:?}..{} ", self.min, self.max);
        for (at, kind) in (0..4).flat_map(|at| [(at, ANON), (at, FILE)]) {
            let _ = write!(out, "|");
            for name in &self.lists[at][kind] {
                let Page { at, refs, referenced, workingset, .. } = self.pages[name];
                let _ = write!(out, " {name}{at}{refs}{}{}", u8::from(referenced), u8::from(workingset));
            }
        }
        out
    }
}

fn draw(m: &Machine) -> String {
    let lrugen = m.mm.lru_gen(LRU);
    let mut out = format!("{:?}..{} ", lrugen.min_seq, lrugen.max_seq);
    for (at, kind) in (0..4).flat_map(|at| [(at, ANON), (at, FILE)]) {
        let _ = write!(out, "|");
        for list in &lrugen.lists[at][kind] {
            for pfn in list.iter(&m.mm.frames) {
                let frame = &m.mm.frames[pfn];
                let (at, refs) = (frame.lru_gen().expect("listed"), frame.lru_refs());
                let [referenced, workingset] = [Frame::REFERENCED, Frame::WORKINGSET].map(|f| u8::from(frame.has(f)));
                let _ = write!(out, " {}{at}{refs}{referenced}{workingset}", m.name(pfn));
            }
        }
    }
    out
}

fn apply(m: &mut Machine, name: char, op: Op) {
    let (env, pfn) = (m.env, m.page(name));
    match op {
        Op::Age => {
            let seq = m.mm.lru_gen(LRU).max_seq;
            assert!(m.mm.inc_max_seq(&env, LRU, seq, false));
        }
        Op::Evict => {
            let mut sc = ScanControl::kswapd(units::Order(0), crate::ZoneKind::Normal);
            m.mm.evict_pages(&env, LRU, 0, &mut sc);
        }
        _ if !m.mm.frames[pfn].is_lru_kind() => {}
        Op::Access => m.mm.mark_page_accessed(&env, pfn),
        Op::Promote => m.mm.lru_gen_promote(pfn),
        Op::Rotate => m.mm.rotate_reclaimable(pfn),
        Op::Deactivate => m.mm.deactivate_file_page(pfn),
        Op::Activate => m.mm.activate_page(pfn),
        Op::Putback => {
            assert!(m.mm.lru_isolate(pfn));
            m.mm.lru_putback(&env, pfn);
        }
        Op::Dirty => m.mm.frames[pfn].set(Frame::DIRTY),
    }
}

proptest! {
    #[test]
    fn generations_equal_those_of_a_model(
        steps in prop::collection::vec((0..OPS.len(), 0..NAMES.len()), 0..300),
        by_kswapd: bool,
        protects: bool,
    ) {
        let tunables = Tunables { lru_gen_enabled: LruGenCaps::ALL, ..Tunables::default() };
        let lru_policy = if by_kswapd { LruPolicy::MultiGenByKswapd } else { LruPolicy::MultiGen };
        let generation_start = if protects { GenerationStart::SecondOldest } else { GenerationStart::Oldest };
        let mut m = Machine::tuned(Rules { lru_policy, generation_start, ..Rules::newest() }, tunables);
        let mut model = Model {
            by_kswapd,
            protects,
            max: 3,
            min: [0; 2],
            lists: Default::default(),
            pages: BTreeMap::new(),
            evicted: 0,
            sorted: 0,
        };
        for name in NAMES.chars() {
            let kind = if name.is_uppercase() { ANON } else { FILE };
            m.add(&name.to_string(), if kind == ANON { Kind::Anon } else { Kind::File }, 0);
            prop_assert_eq!(usize::from(is_file_lru(m.frame(name))), kind);
            model.join(name, Page { kind, ..Page::default() }, false, false);
        }
        for (op, at) in steps {
            let (op, name) = (OPS[op], NAMES.as_bytes()[at] as char);
            apply(&mut m, name, op);
            model.apply(name, op);
            prop_assert_eq!(draw(&m), model.draw(), "after {:?} of {}", op, name);
            m.check();
        }
        prop_assert_eq!(m.mm.stat.event(VmEvent::PgstealFile), model.evicted);
        prop_assert_eq!(m.mm.stat.event(VmEvent::Pgrefill), model.sorted);
        let tally = &m.mm.lru_gen(LRU).feedback;
        prop_assert!(tally.refaulted[FILE].iter().sum::<u64>() == 0);
    }
}
