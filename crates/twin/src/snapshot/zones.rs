//! `/proc/zoneinfo`.

use mm::stat::{NodeStat, ZoneStat};
use mm::zone::Wmark;
use mm::{Mm, Node};
use observe::{Counters, Pageset, PopulatedZone, ZoneSection, Zoneinfo};
use rules::Era;
use units::ZoneId;

pub(super) fn zoneinfo(mm: &Mm, era: Era) -> Zoneinfo {
    let mut zones = Vec::new();
    for node in &mm.nodes {
        for (nth, zone) in node.zones.iter().enumerate() {
            zones.push(section(mm, era, node, *zone, nth == 0));
        }
    }
    Zoneinfo { zones }
}

fn section(mm: &Mm, era: Era, node: &Node, id: ZoneId, first: bool) -> ZoneSection {
    let zone = &mm.zones[id.index()];
    let newer = era == Era::V6_12;
    let pagesets = (0..mm.nr_cpus()).map(|cpu| {
        let (count, high) = mm.pcps.count_and_high(units::CpuId(cpu as u16), id);
        let batch = u64::from(zone.pcp_limits.batch);
        Pageset { cpu: cpu as u32, count: u64::from(count), high: u64::from(high), batch, ..Pageset::default() }
    });
    let stats = ZoneStat::ALL.iter().map(|item| (item.name(), mm.stat.zone(id, *item)));
    ZoneSection {
        node: u32::from(node.id.0),
        zone: zone.kind.name().to_string(),
        node_stats: first.then(|| {
            let stats: Counters = NodeStat::ALL.iter().map(|i| (i.name(), mm.stat.node(node.id, *i))).collect();
            stats.ordered(era)
        }),
        free: zone.free_pages,
        boost: newer.then_some(zone.boost),
        min: mm.wmark(id, Wmark::Min),
        low: mm.wmark(id, Wmark::Low),
        high: mm.wmark(id, Wmark::High),
        promo: newer.then(|| mm.wmark(id, Wmark::Promo)),
        scanned: None,
        spanned: zone.spanned,
        present: zone.present,
        managed: zone.managed,
        cma: newer.then_some(0),
        protection: zone.lowmem_reserve.to_vec(),
        populated: Some(PopulatedZone {
            stats: stats.collect::<Counters>().ordered(era),
            pagesets: pagesets.collect(),
            node_unreclaimable: u64::from(node.kswapd.failures >= mm::zone::MAX_RECLAIM_RETRIES),
            start_pfn: u64::from(zone.start.0),
            inactive_ratio: None,
        }),
    }
}
