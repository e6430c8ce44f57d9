//! What becomes of pages on per-CPU lists that nobody uses.

use rules::{PcpLists, Rules};
use units::{CpuId, Gfp, NodeId, Order, ZoneId};

use crate::zone::testing::{env, layout, machine, rules_4_20, span};
use crate::{AllocRequest, Mm, ZoneKind};

/// 131,072 pages: zone_batchsize() makes it 31 (128 / 4 = 32, with half of it 48, down to 32, less one).
const BLOCKS: u32 = 256;
const BATCH: u32 = 31;
const LOCAL: ZoneId = ZoneId(0);
const REMOTE: ZoneId = ZoneId(1);

fn two_nodes(pcp_lists: PcpLists) -> Mm {
    let nodes = (0..2).map(|n| vec![span(ZoneKind::Normal, n * BLOCKS, BLOCKS)]).collect();
    machine(&layout(nodes), Rules { pcp_lists, ..rules_4_20() })
}

/// CPU 0 allocates pages of a node and frees them.
fn use_pages(mm: &mut Mm, node: u8, pages: usize) {
    let request = AllocRequest { gfp: Gfp::KERNEL, order: Order(0), node: NodeId(node) };
    let taken: Vec<_> = (0..pages).map(|_| mm.alloc_pages(&env(0), request).expect("there is room")).collect();
    for pfn in taken {
        mm.free_pages(&env(0), pfn, Order(0));
    }
}

fn count(mm: &Mm, zone: ZoneId) -> u32 {
    mm.pcps.count_and_high(CpuId(0), zone).0
}

#[test]
fn a_batch_of_a_remote_node_goes_back_at_the_third_look_without_use() {
    let mut mm = two_nodes(PcpLists::HighOrder);
    use_pages(&mut mm, 1, 40);
    let before = count(&mm, REMOTE);
    assert!(before >= 2 * BATCH, "{before}");
    for left in [before, before, before - BATCH, before - BATCH, before - BATCH, before - 2 * BATCH] {
        mm.vmstat_update();
        assert_eq!(count(&mm, REMOTE), left);
    }
    use_pages(&mut mm, 1, 40);
    let before = count(&mm, REMOTE);
    for _ in 0..10 {
        mm.vmstat_update();
        use_pages(&mut mm, 1, 1);
    }
    assert_eq!(count(&mm, REMOTE), before, "lists in use keep their pages");
    assert!(mm.validate().is_empty());
}

#[test]
fn in_4_20_the_count_stands_still_on_a_cpu_that_does_nothing() {
    let mut mm = two_nodes(PcpLists::OrderZero);
    use_pages(&mut mm, 1, 40);
    let before = count(&mm, REMOTE);
    for _ in 0..10 {
        mm.vmstat_update();
    }
    assert_eq!(count(&mm, REMOTE), before);
    // Two looks more, on a CPU that works with its own node: the first look counted 3 down to 2 already.
    for left in [before, before - BATCH] {
        use_pages(&mut mm, 0, 1);
        mm.vmstat_update();
        assert_eq!(count(&mm, REMOTE), left);
    }
}

#[test]
fn pages_of_the_own_node_stay() {
    for rule in [PcpLists::OrderZero, PcpLists::HighOrder] {
        let mut mm = two_nodes(rule);
        use_pages(&mut mm, 0, 40);
        let before = count(&mm, LOCAL);
        for _ in 0..10 {
            mm.vmstat_update();
        }
        assert_eq!(count(&mm, LOCAL), before);
    }
}

#[test]
fn tuned_lists_shrink_by_an_eighth_a_look() {
    let mut mm = two_nodes(PcpLists::AutoTuned);
    use_pages(&mut mm, 0, 4000);
    let least = mm.zones[0].pcp_limits.high_min;
    let (mut pages, mut high) = mm.pcps.count_and_high(CpuId(0), LOCAL);
    assert!(high > 2 * least, "high is {high}, the least {least}");
    for _ in 0..40 {
        mm.vmstat_update();
        high = pages.saturating_sub(BATCH << 5).max(high - high / 8).max(least);
        pages = pages.min(high);
        assert_eq!(mm.pcps.count_and_high(CpuId(0), LOCAL), (pages, high));
    }
    assert_eq!(high, least, "an eighth less 40 times is a two-hundredth");
    assert!(mm.validate().is_empty());
}
