//! Random zones: nothing is lost, nothing immovable moves, every run ends; and a slow model of one full compaction.

use proptest::prelude::*;

use super::*;

const BLOCKS: u32 = 8;

/// Blocks of random density, with pages that cannot be moved here and there.
pub(super) fn cells() -> impl Strategy<Value = Vec<Cell>> {
    let block = (0u32..=100, 0u32..=4, any::<u64>()).prop_map(|(density, stuck, seed)| {
        let mut state = seed | 1;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        (0..BLOCK)
            .map(|_| {
                if draw(100) >= density {
                    Cell::Free
                } else if draw(200) < stuck {
                    Cell::Stuck
                } else {
                    Cell::Page([0, 0, 0, Frame::ACTIVE, Frame::DIRTY, Frame::PINNED][draw(6) as usize])
                }
            })
            .collect::<Vec<_>>()
    });
    proptest::collection::vec(block, BLOCKS as usize).prop_map(|blocks| blocks.concat())
}

fn control() -> impl Strategy<Value = CompactControl> {
    let priorities = [CompactPriority::Async, CompactPriority::SyncLight, CompactPriority::SyncFull];
    let direct = (0usize..3, 1u8..=10, any::<bool>()).prop_map(move |(priority, order, movable)| CompactControl {
        gfp: if movable { Gfp::TRANSHUGE } else { Gfp::KERNEL },
        order: Some(Order(order)),
        ..direct(priorities[priority])
    });
    let daemon = (1u8..=10).prop_map(|order| CompactControl::daemon(Order(order), ZoneKind::Normal));
    prop_oneof![direct, daemon, Just(CompactControl::everything())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Under the rules of 6.1 and 6.12 too: from any hints and any remembered places, what is captured included.
    #[test]
    fn every_page_survives_a_search_of_the_free_lists(
        cells in cells(),
        controls in proptest::collection::vec((control(), 0usize..400), 1..4),
        newest in any::<bool>(),
        hints in any::<u8>(),
        places in (0u32..BLOCKS * BLOCK, 0u32..BLOCKS * BLOCK, 0u32..BLOCKS * BLOCK),
    ) {
        let mut mm = zone_of_cells(&cells, if newest { rules_6_12() } else { rules_6_1() });
        mm.tunables.extfrag_threshold = 0;
        (0..BLOCKS).for_each(|n| mm.blocks.set_skip(Pfn(n * BLOCK), hints >> n & 1 == 1));
        let compact = &mut mm.zones[0].compact;
        compact.migrate_pfn = [Some(Pfn(places.0)), Some(Pfn(places.1))];
        (compact.free_pfn, compact.blockskip_flush) = (Some(Pfn(places.2)), hints & 1 == 1);
        let env = env(0);
        let before: Vec<u32> = super::places(&mm).iter().map(|p| p.0).collect();
        for (control, abandon_after) in controls {
            let Ok(mut run) = CompactRun::start(&mut mm, &env, ZONE, control) else { continue };
            let order = control.order.unwrap_or(Order(0));
            let captures = control.who == Compactor::Direct;
            let (mut steps, mut captured) = (0, None);
            loop {
                if captures {
                    mm.begin_capture(ZONE, order, run.migratetype, captured);
                }
                let step = run.step(&mut mm, &env);
                captured = mm.end_capture(ZONE, captured);
                prop_assert!(run.cluster.is_empty());
                if step != CompactStep::More || steps == abandon_after {
                    break;
                }
                steps += 1;
            }
            prop_assert!(steps <= 16 * BLOCK as usize);
            let _ = run.finish(&mut mm, &env);
            if let Some(pfn) = captured {
                prop_assert_eq!(mm.frames[pfn].order(), order);
                mm.free_pages(&env, pfn, order);
            }
            let after: Vec<u32> = super::places(&mm).iter().map(|p| p.0).collect();
            prop_assert_eq!(&after, &before);
            check(&mut mm);
        }
        for (at, cell) in cells.iter().enumerate() {
            prop_assert_eq!(*cell == Cell::Stuck, mm.frames[Pfn(at as u32)].kind() == Kind::Kernel);
        }
    }

    #[test]
    fn every_page_survives_and_every_run_ends(
        cells in cells(),
        controls in proptest::collection::vec((control(), 0usize..400), 1..4),
    ) {
        let mut mm = zone_of_cells(&cells, rules_4_20());
        mm.tunables.extfrag_threshold = 0;
        let env = env(0);
        let before: Vec<u32> = places(&mm).iter().map(|p| p.0).collect();
        for (control, abandon_after) in controls {
            let Ok(mut run) = CompactRun::start(&mut mm, &env, ZONE, control) else { continue };
            let (mut steps, mut last) = (0, run.scanners);
            while run.step(&mut mm, &env) == CompactStep::More && steps < abandon_after {
                steps += 1;
                prop_assert!(run.scanners.migrate >= last.migrate && run.scanners.free <= block_top(last.free));
                prop_assert!(run.scanners.migrate <= run.scanners.end && run.scanners.free < run.scanners.end);
                prop_assert!(run.cluster.is_empty());
                last = run.scanners;
            }
            // 32 frames at least are passed in a step that does not move to the next block.
            prop_assert!(steps <= 8 * BLOCK as usize);
            let _ = run.finish(&mut mm, &env);
            let after: Vec<u32> = places(&mm).iter().map(|p| p.0).collect();
            prop_assert_eq!(&after, &before);
            check(&mut mm);
        }
        for (at, cell) in cells.iter().enumerate() {
            let kind = mm.frames[Pfn(at as u32)].kind();
            prop_assert_eq!(*cell == Cell::Stuck, kind == Kind::Kernel);
            if *cell == Cell::Page(Frame::PINNED) {
                prop_assert_eq!(mm.frames[Pfn(at as u32)].place, at as u32);
            }
        }
    }

    #[test]
    fn a_full_compaction_equals_the_slow_model(cells in cells()) {
        // Two free blocks at the bottom keep the watermarks out of it.
        let cells: Vec<Cell> = std::iter::repeat_n(Cell::Free, 2 * BLOCK as usize).chain(cells).collect();
        let mut mm = zone_of_cells(&cells, rules_4_20());
        prop_assert_eq!(run(&mut mm, CompactControl::everything()), CompactResult::Complete);
        let moves = |from: u32| cells[from as usize] != Cell::Page(Frame::PINNED);
        let mut model = Model::new(&cells).compact();
        model.sort_unstable();
        let places: Vec<(u32, u32)> = places(&mm).iter().map(|p| (p.0, p.1.0)).filter(|p| moves(p.0)).collect();
        prop_assert_eq!(places, model);
        check(&mut mm);
    }
}

/// The free scanner goes up within its block and down between blocks.
fn block_top(pfn: Pfn) -> Pfn {
    Pfn(pfn.0 | (BLOCK - 1))
}

/// One full compaction of a zone of Movable blocks, frame by frame with plain vectors.
struct Model {
    /// Page that a frame holds: where it began; `None` if there is none that can move.
    page: Vec<Option<u32>>,
    /// Order of the free block that a frame heads.
    head: Vec<Option<u8>>,
    targets: Vec<usize>,
    migrate: usize,
    free: usize,
}

impl Model {
    fn new(cells: &[Cell]) -> Model {
        let movable = |c: &Cell| matches!(c, Cell::Page(flags) if flags & Frame::PINNED == 0);
        let page = cells.iter().enumerate().map(|(n, c)| movable(c).then_some(n as u32)).collect();
        let mut head = vec![None; cells.len()];
        let mut at = 0;
        while at < cells.len() {
            let whole = |order: &u8| {
                let size = 1usize << order;
                at % size == 0 && at + size <= cells.len() && cells[at..at + size].iter().all(|c| *c == Cell::Free)
            };
            let order = (0..=10u8).rev().find(whole);
            head[at] = order;
            at += order.map_or(1, |o| 1 << o);
        }
        Model { page, head, targets: Vec::new(), migrate: 0, free: cells.len() - BLOCK as usize }
    }

    /// Where each page that can move ends.
    fn compact(mut self) -> Vec<(u32, u32)> {
        let block = BLOCK as usize;
        while self.free / block > self.migrate / block {
            let end = (self.migrate / block + 1) * block;
            let mut cluster = Vec::new();
            while self.migrate < end && cluster.len() < 32 {
                cluster.extend(self.page[self.migrate].map(|_| self.migrate));
                self.migrate += 1;
            }
            let wanted = cluster.len();
            while let Some(from) = cluster.pop() {
                if self.targets.is_empty() {
                    self.find_targets(wanted);
                }
                let Some(to) = self.targets.pop() else { break };
                self.page[to] = self.page[from].take();
            }
        }
        let held = self.page.iter().enumerate().filter_map(|(at, page)| Some(((*page)?, at as u32)));
        held.collect()
    }

    fn find_targets(&mut self, wanted: usize) {
        let block = BLOCK as usize;
        let low = (self.migrate / block + 1) * block;
        while self.free / block * block >= low && self.targets.len() < wanted {
            let end = (self.free / block + 1) * block;
            while self.free < end && self.targets.len() < wanted {
                self.free += self.take(self.free);
            }
            if self.free == end {
                self.free = end - 2 * block;
            }
        }
    }

    /// Takes the free block at a frame if it is smaller than a pageblock; frames passed.
    fn take(&mut self, at: usize) -> usize {
        match self.head[at].take_if(|order| *order < 9) {
            Some(order) => {
                self.targets.extend(at..at + (1 << order));
                1 << order
            }
            None => 1,
        }
    }
}
