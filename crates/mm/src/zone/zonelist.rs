//! Zones and nodes of a machine, and the order in which an allocation tries them.
//!
//! Rule: an allocation tries its node's zones from the highest kind down, then those of the next nearest node
//! (`build_zonelists_in_node_order()`). Among nodes at one distance, one with a higher number than the local node
//! comes before a lower one, one without CPUs before one with, and each first one is taken in turn, so that the
//! nodes do not all overflow into the same neighbour.
//! Source: `find_next_best_node()`, `build_zonelists()` (mm/page_alloc.c, 4.20 and 6.12).
//! Omitted: cpusets and memory policies; hot-plug.

use units::{NodeId, ZoneId};

use crate::memcg::Fifo;
use crate::node::{Kcompactd, Kswapd};
use crate::{Lruvec, LruvecId, MemoryLayout, MigrateType, Node, ZoneKind};

use super::{CompactState, FreeArea, PcpLimits, Watermarks, Zone};

/// Preference for nodes without CPUs (`PENALTY_FOR_NODE_WITH_CPUS`).
const PENALTY_FOR_CPUS: u64 = 1;
/// Distances weigh more than any load (`MAX_NODE_LOAD * MAX_NUMNODES`, the former the number of nodes online).
const DISTANCE_WEIGHT: u64 = 1 << 20;

impl Zone {
    /// All populated zones, numbered node by node and lowest kind first within one.
    pub fn all(layout: &MemoryLayout) -> Vec<Zone> {
        let mut zones = Vec::new();
        for (node, spec) in layout.nodes.iter().enumerate() {
            for span in &spec.zones {
                assert!(span.managed.0 <= span.present.0 && span.present.0 <= span.spanned.0);
                zones.push(Zone {
                    id: ZoneId(u8::try_from(zones.len()).expect("at most 255 zones")),
                    node: NodeId(u8::try_from(node).expect("at most 255 nodes")),
                    kind: span.kind,
                    start: span.start,
                    spanned: span.spanned.0,
                    present: span.present.0,
                    managed: span.managed.0,
                    watermarks: Watermarks::default(),
                    boost: 0,
                    boosted_flag: false,
                    lowmem_reserve: [0; ZoneKind::COUNT],
                    free_area: std::array::from_fn(|_| FreeArea::default()),
                    free_pages: 0,
                    highatomic_reserved: 0,
                    compact: CompactState::default(),
                    capture: None,
                    strict_types: false,
                    below_high: false,
                    reclaim_active: false,
                    pcp_limits: PcpLimits::default(),
                    lru: LruvecId::of_node(NodeId(node as u8)),
                    alloc_batch: 0,
                    fair_depleted: false,
                    pages_scanned: 0,
                    all_unreclaimable: false,
                    migrate_reserve: 0,
                });
            }
        }
        debug_assert!(MigrateType::COUNT == FreeArea::default().lists.len());
        zones
    }
}

impl Node {
    /// All nodes with their zonelists; kswapd sleeps.
    pub fn all(layout: &MemoryLayout) -> Vec<Node> {
        let zones = Zone::all(layout);
        let mut loads = vec![0u64; layout.nodes.len()];
        (0..layout.nodes.len()).map(|n| Node::new(layout, &zones, n, &mut loads)).collect()
    }

    fn new(layout: &MemoryLayout, zones: &[Zone], local: usize, loads: &mut [u64]) -> Node {
        let of = |node: usize| zones.iter().filter(move |z| z.node.index() == node).map(|z| z.id);
        let mut zonelist = Vec::with_capacity(zones.len());
        for node in node_order(layout, local, loads) {
            let highest_first: Vec<ZoneId> = of(node).collect();
            zonelist.extend(highest_first.iter().rev());
        }
        Node {
            fifo: Fifo::default(),
            id: NodeId(local as u8),
            zones: of(local).collect(),
            preferred: std::array::from_fn(|highest| {
                zonelist.iter().copied().find(|z: &ZoneId| zones[z.index()].kind as usize <= highest)
            }),
            zonelist,
            lruvecs: vec![Lruvec::default()],
            kswapd: Kswapd { asleep: true, ..Kswapd::default() },
            kcompactd: Kcompactd::default(),
        }
    }
}

/// The nodes in the order in which `local` falls back to them, itself first.
fn node_order(layout: &MemoryLayout, local: usize, loads: &mut [u64]) -> Vec<usize> {
    let count = layout.nodes.len();
    let distances = &layout.nodes[local].distance;
    let distance = |to: usize| u64::from(distances.get(to).copied().unwrap_or(if to == local { 10 } else { 20 }));
    let mut order = vec![local];
    let mut load = count as u64 - 1;
    while order.len() < count {
        let cost = |to: usize| {
            let has_cpus = layout.cpu_nodes.iter().any(|n| n.index() == to);
            let near = distance(to) + u64::from(to < local) + if has_cpus { PENALTY_FOR_CPUS } else { 0 };
            near * DISTANCE_WEIGHT + loads[to]
        };
        let best = (0..count).filter(|n| !order.contains(n)).min_by_key(|&n| cost(n)).expect("a node is left");
        let previous = *order.last().expect("the local node is first");
        // The first of a group at one distance gets a load, so that the next node prefers another of the group.
        if distance(best) != distance(previous) {
            loads[best] = load;
        }
        order.push(best);
        load -= 1;
    }
    order
}
