//! Shortcuts that move many pages at once leave the lists as page by page would, order on the lists included.

use proptest::prelude::*;
use units::{Order, Pfn, ZoneId};

use crate::zone::buddy::Place;
use crate::zone::testing::{env, one_zone, rules_4_20, take, violations};
use crate::{Kind, MigrateType, Mm};

const MOVABLE: MigrateType = MigrateType::Movable;

/// A machine after some allocations (order) and frees (of the n-th block in use); orders above 0 pass by the per-CPU
/// lists under these rules.
fn after(history: &[(bool, u8, usize)]) -> (Mm, Vec<(Pfn, Order)>) {
    let mut mm = one_zone(8, rules_4_20());
    let mut used = Vec::new();
    for &(alloc, order, which) in history {
        if alloc {
            used.extend(take(&mut mm, MOVABLE, order).map(|pfn| (pfn, Order(order))));
        } else if !used.is_empty() {
            let (pfn, order) = used.swap_remove(which % used.len());
            mm.free_pages(&env(0), pfn, order);
        }
    }
    (mm, used)
}

/// All free lists in their order.
fn lists(mm: &Mm) -> Vec<Vec<Pfn>> {
    let all = mm.zones[0].free_area.iter().flat_map(|area| &area.lists);
    all.map(|list| list.iter(&mm.frames).collect()).collect()
}

fn history() -> impl Strategy<Value = Vec<(bool, u8, usize)>> {
    prop::collection::vec((prop::bool::weighted(0.6), 1..=6u8, any::<usize>()), 0..60)
}

proptest! {
    #[test]
    fn a_refill_takes_what_single_allocations_would(history in history(), order in 0..=3u8, count in 1..200u32) {
        let (mut by_run, _) = after(&history);
        let (mut by_one, _) = after(&history);
        let mut taken = Vec::new();
        while (taken.len() as u32) < count {
            let left = count - taken.len() as u32;
            let zone = &mut by_run.zones[0];
            let Some((first, n)) = zone.rmqueue_run(&mut by_run.frames, Order(order), MOVABLE, left) else { break };
            taken.extend((0..n).map(|n| first.offset(n << order)));
        }
        let single = (0..count).map_while(|_| by_one.zones[0].rmqueue_smallest(&mut by_one.frames, Order(order), MOVABLE));
        prop_assert_eq!(&taken, &single.collect::<Vec<Pfn>>());
        prop_assert_eq!(lists(&by_run), lists(&by_one));
        prop_assert_eq!(by_run.zones[0].free_pages, by_one.zones[0].free_pages);
    }

    #[test]
    fn a_drain_leaves_what_single_frees_would(history in history(), cuts in prop::collection::vec(0..64usize, 0..4)) {
        let (mut by_run, used) = after(&history);
        let (mut by_one, _) = after(&history);
        // The pages of blocks in use, in ascending runs that begin and end anywhere.
        let mut pages: Vec<Pfn> = used.iter().flat_map(|&(pfn, order)| (0..order.pages()).map(move |n| pfn.offset(n))).collect();
        for cut in cuts {
            let at = cut % pages.len().max(1);
            pages.rotate_left(at);
        }
        for &(pfn, _) in &used {
            by_run.split_held(pfn);
            by_one.split_held(pfn);
        }
        // High keeps the lists from being trimmed before the drain.
        by_run.pcps.set_high(u32::MAX);
        for &pfn in &pages {
            by_run.free_pages(&env(0), pfn, Order(0));
        }
        by_run.drain_pcp_all();
        for &pfn in &pages {
            prop_assert!(by_one.frames[pfn].kind() == Kind::Held);
            let zone = &mut by_one.zones[0];
            zone.free_one_page(&mut by_one.frames, &mut by_one.blocks, pfn, Order(0), MOVABLE, Place::Auto);
        }
        prop_assert_eq!(lists(&by_run), lists(&by_one));
        prop_assert_eq!(violations(&by_run), []);
        prop_assert_eq!(by_run.pcp_pages(ZoneId(0)), 0);
    }
}
