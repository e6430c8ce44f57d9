//! The life of swap slots against a reference map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rules::SwapShadows;
use units::{NodeId, Pfn};

use super::{Swap, SwapEntry, SwapSpec};

const NUMA: NodeId = NodeId(0);

/// What holds a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Holders {
    page: Option<u32>,
    entry: bool,
    shadow: Option<u32>,
}

/// Nodes of 64 slots that have a shadow and no page.
fn nodes_with_only_shadows(slots: &BTreeMap<SwapEntry, Holders>) -> u64 {
    let mut nodes: BTreeMap<u32, (bool, bool)> = BTreeMap::new();
    for (entry, holders) in slots {
        let node = nodes.entry(entry.0 / 64).or_default();
        *node = (node.0 || holders.page.is_some(), node.1 || holders.shadow.is_some());
    }
    nodes.values().filter(|(page, shadow)| *shadow && !page).count() as u64
}

/// Frees the oldest node with only shadows in both.
fn free_oldest_shadows(swap: &mut Swap, slots: &mut BTreeMap<SwapEntry, Holders>) {
    let listed = nodes_with_only_shadows(slots);
    assert_eq!(swap.free_shadow_node(NUMA), listed > 0);
    for (entry, holders) in slots.iter_mut() {
        if holders.shadow.is_some() && swap.shadow(*entry).is_none() {
            holders.shadow = None;
        }
    }
    assert_eq!(nodes_with_only_shadows(slots), listed.saturating_sub(1), "all shadows of one node go");
}

#[test]
fn the_node_that_lost_its_last_page_first_is_freed_first() {
    let mut swap = Swap::new(SwapShadows::Listed);
    swap.add_device(&SwapSpec { device: 0, start_sector: 0, pages: 1024, priority: 0, rotational: true });
    let entries: Vec<SwapEntry> = (0..130)
        .map(|n| {
            let entry = swap.alloc(0, |_| false).expect("much is free");
            swap.occupy(entry, 0, n);
            swap.set_cached(entry, Pfn(n), NUMA);
            swap.get(entry);
            entry
        })
        .collect();
    // Slots 1 to 63 share a node, 64 to 127 the next, 128 to 130 the third.
    entries[63..].iter().for_each(|entry| assert!(!swap.uncache(*entry, Some(7))));
    assert_eq!(swap.shadow_nodes(NUMA), 2);
    assert!(!swap.uncache(entries[0], Some(7)));
    assert_eq!(swap.shadow_nodes(NUMA), 2, "the first has pages left");
    assert!(swap.free_shadow_node(NUMA));
    let with_shadow: Vec<u32> = entries.iter().filter(|e| swap.shadow(**e).is_some()).map(|e| e.0).collect();
    assert_eq!(with_shadow, [1, 128, 129, 130]);
}

proptest! {
    #[test]
    fn slots_live_as_long_as_somebody_holds_them(
        ops in prop::collection::vec((0u8..6, any::<prop::sample::Index>(), 0usize..3), 1..600),
        sizes in prop::collection::vec((3u32..900, any::<bool>(), -1i16..1), 1..4),
    ) {
        let mut swap = Swap::new(SwapShadows::Listed);
        for (n, (pages, rotational, priority)) in sizes.iter().enumerate() {
            let spec = SwapSpec { device: n as u16, start_sector: 0, pages: *pages, priority: *priority, rotational: *rotational };
            swap.add_device(&spec);
        }
        let total: u64 = sizes.iter().map(|(pages, ..)| u64::from(pages - 1)).sum();
        let mut reference: BTreeMap<SwapEntry, Holders> = BTreeMap::new();
        for (n, (op, pick, cpu)) in ops.into_iter().enumerate() {
            let page = n as u32;
            if op == 0 || reference.is_empty() {
                match swap.alloc(cpu, |_| false) {
                    Some(entry) => {
                        prop_assert!(!reference.contains_key(&entry), "{entry:?} is given out twice");
                        swap.occupy(entry, cpu, page);
                        swap.set_cached(entry, Pfn(page), NUMA);
                        reference.insert(entry, Holders { page: Some(page), ..Holders::default() });
                    }
                    None => prop_assert_eq!(reference.len() as u64, total, "only a full swap gives none"),
                }
            } else {
                if op == 5 {
                    free_oldest_shadows(&mut swap, &mut reference);
                }
                let nth = pick.index(reference.len());
                let (&entry, holders) = reference.iter_mut().nth(nth).expect("it is one of these");
                match (op, holders.page, holders.entry) {
                    (1, Some(_), false) => {
                        swap.get(entry);
                        holders.entry = true;
                    }
                    (2, _, true) => {
                        swap.put(entry);
                        holders.entry = false;
                    }
                    (3, Some(_), _) => {
                        swap.uncache(entry, Some(page));
                        (holders.page, holders.shadow) = (None, Some(page));
                    }
                    (4, None, true) => {
                        swap.set_cached(entry, Pfn(page), NUMA);
                        (holders.page, holders.shadow) = (Some(page), None);
                    }
                    _ => {}
                }
                if holders.page.is_none() && !holders.entry {
                    reference.remove(&entry);
                    prop_assert_eq!((swap.cached(entry), swap.shadow(entry)), (None, None));
                }
            }
            prop_assert_eq!(swap.free_pages(), total - reference.len() as u64);
            prop_assert_eq!(swap.shadow_nodes(NUMA), nodes_with_only_shadows(&reference));
        }
        for (entry, holders) in &reference {
            prop_assert_eq!(swap.is_used(*entry), holders.entry);
            prop_assert_eq!(swap.cached(*entry), holders.page.map(Pfn));
            prop_assert_eq!(swap.shadow(*entry), holders.shadow);
        }
        for device in swap.devices() {
            prop_assert_eq!(device.recount(), Some(device.used_pages()));
        }
    }
}

#[test]
fn a_cluster_that_became_free_while_a_cpu_filled_it_is_left_alone() {
    let mut swap = Swap::default();
    swap.add_device(&SwapSpec { device: 0, start_sector: 0, pages: 5 * 256, priority: 0, rotational: false });
    let take = |swap: &mut Swap, cpu| {
        let entry = swap.alloc(cpu, |_| false).expect("much is free");
        swap.occupy(entry, cpu, 0);
        swap.set_cached(entry, Pfn(0), NUMA);
        entry
    };
    let first = take(&mut swap, 0);
    assert_eq!(first, SwapEntry(256));
    swap.uncache(first, None);
    // Cluster 1 is at the end of the free list now; the next one in it is cluster 2.
    assert_eq!(take(&mut swap, 0), SwapEntry(2 * 256));
}
