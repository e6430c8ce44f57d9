//! `/proc/buddyinfo` and `/proc/pagetypeinfo`.

use mm::{MigrateType, Mm};
use observe::{BuddyZone, Buddyinfo, PagetypeFree, PagetypeNode, PagetypeZone, Pagetypeinfo};
use units::{Order, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES};

pub(super) fn buddyinfo(mm: &Mm) -> Buddyinfo {
    let zones = mm.zones.iter().map(|zone| BuddyZone {
        node: u32::from(zone.node.0),
        zone: zone.kind.name().to_string(),
        blocks: mm.free_counts(zone.id).iter().map(|types| types.iter().sum()).collect(),
    });
    Buddyinfo { zones: zones.collect() }
}

pub(super) fn pagetypeinfo(mm: &Mm) -> Pagetypeinfo {
    let nodes = mm.nodes.iter().map(|node| {
        let mut part = PagetypeNode {
            pageblock_order: u32::from(PAGEBLOCK_ORDER.0),
            pageblock_pages: u64::from(PAGEBLOCK_PAGES),
            orders: Order::MAX.index() + 1,
            migratetypes: MigrateType::ALL.iter().map(|t| t.name().to_string()).collect(),
            ..PagetypeNode::default()
        };
        for zone in &node.zones {
            let name = mm.zones[zone.index()].kind.name();
            let counts = mm.free_counts(*zone);
            for migratetype in MigrateType::ALL {
                part.free.push(PagetypeFree {
                    node: u32::from(node.id.0),
                    zone: name.to_string(),
                    migratetype: migratetype.name().to_string(),
                    blocks: counts.iter().map(|types| types[migratetype as usize]).collect(),
                });
            }
            part.zones.push(PagetypeZone {
                node: u32::from(node.id.0),
                zone: name.to_string(),
                pageblocks: mm.block_type_counts(*zone).to_vec(),
            });
        }
        part
    });
    Pagetypeinfo { nodes: nodes.collect() }
}
