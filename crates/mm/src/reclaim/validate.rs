//! Recount of the LRU lists and of the generations' pages.

use units::{NodeId, Pfn};

use super::lru::lru_of;
use crate::stat::NodeStat;
use crate::{Frame, LruList, LruvecId, Mm, Violation, ZoneKind};

const PLACE: &str = "reclaim";
const LISTS: [LruList; LruList::COUNT] =
    [LruList::InactiveAnon, LruList::ActiveAnon, LruList::InactiveFile, LruList::ActiveFile, LruList::Unevictable];

impl Mm {
    /// Checks that every page with `LRU` is on the list of its node or zone that its flags name, and that sizes and gauges equal
    /// a recount.
    pub(crate) fn validate_reclaim(&self, violations: &mut Vec<Violation>) {
        let mut listed = 0;
        for node in (0..self.nodes.len()).map(|n| NodeId(n as u8)) {
            for lru in self.lruvecs_of(node) {
                listed += self.validate_generations(lru, &mut |pfn, what| note(violations, pfn, what));
            }
            for list in LISTS {
                let mut total = 0;
                for lru in self.lruvecs_of(node) {
                    listed += self.validate_list(lru, list, violations);
                    total += self.lru_size(lru, list);
                }
                let gauge = self.lru_node_gauge(node, list);
                if gauge != total {
                    note(violations, None, format!("{list:?} of node {}: gauge {gauge}, lists {total}", node.0));
                }
            }
        }
        self.validate_zone_gauges(violations);
        let (mut flagged, mut isolated) = (0, [0, 0]);
        for at in 0..self.frames.len() {
            let frame = &self.frames[Pfn(at as u32)];
            if !frame.is_lru_kind() {
                continue;
            }
            flagged += u64::from(frame.has(Frame::LRU));
            if !frame.has(Frame::LRU) && frame.lru_gen().is_some() {
                note(violations, Some(Pfn(at as u32)), "is in a generation and on no list".into());
            }
            if frame.has(Frame::ISOLATED) {
                isolated[usize::from(!frame.has(Frame::SWAPBACKED))] += u64::from(frame.nr_pages());
                if frame.has(Frame::LRU) {
                    note(violations, Some(Pfn(at as u32)), "is both isolated and on a list".into());
                }
            }
        }
        if flagged != listed {
            note(violations, None, format!("{flagged} frames have the LRU flag, {listed} are on lists"));
        }
        for (item, found) in [NodeStat::IsolatedAnon, NodeStat::IsolatedFile].into_iter().zip(isolated) {
            if self.stat.node_sum(item) != found {
                note(violations, None, format!("{} is {}, not {found}", item.name(), self.stat.node_sum(item)));
            }
        }
    }

    /// Checks that the gauges of every zone are what all lists together hold of it.
    fn validate_zone_gauges(&self, violations: &mut Vec<Violation>) {
        for zone in self.zones.iter().filter(|zone| zone.managed > 0) {
            for list in LISTS {
                let of_zone = |lruvec: &crate::Lruvec| lruvec.sizes[list as usize][zone.kind as usize];
                let lruvecs = &self.nodes[zone.node.index()].lruvecs;
                let total: u64 = match self.zone_with(zone.lru) {
                    Some(_) => of_zone(self.lruvec(zone.lru)),
                    None => lruvecs.iter().map(of_zone).sum(),
                };
                let gauge = self.lru_gauges(zone.id, list);
                if gauge != total {
                    note(violations, None, format!("{list:?} of zone {}: gauge {gauge}, lists {total}", zone.id.0));
                }
            }
        }
    }

    /// Walks one list; returns its entries.
    fn validate_list(&self, lru: LruvecId, list: LruList, violations: &mut Vec<Violation>) -> u64 {
        let lruvec = self.lruvec(lru);
        let (mut entries, mut sizes) = (0, [0; ZoneKind::COUNT]);
        let mut before = Pfn::NONE;
        for pfn in lruvec.lists[list as usize].iter(&self.frames) {
            let frame = &self.frames[pfn];
            let zone = &self.zones[self.zone_of(pfn).index()];
            if !frame.is_lru_kind() || !frame.has(Frame::LRU) || lru_of(frame) != list || self.lruvec_of(pfn) != lru {
                let kind = frame.kind();
                note(violations, Some(pfn), format!("{kind:?} does not belong on {list:?} of {lru:?}"));
            }
            if frame.prev != before {
                note(violations, Some(pfn), format!("previous is {:?}, not {before:?}", frame.prev));
            }
            before = pfn;
            entries += 1;
            sizes[zone.kind as usize] += u64::from(frame.nr_pages());
            if entries > self.frames.len() as u64 {
                note(violations, Some(pfn), format!("{list:?} of {lru:?} is a loop"));
                break;
            }
        }
        if u64::from(lruvec.lists[list as usize].len()) != entries {
            let len = lruvec.lists[list as usize].len();
            note(violations, None, format!("{list:?} of {lru:?} says {len} entries, has {entries}"));
        }
        if self.lru_gen_enabled() && list != LruList::Unevictable {
            if entries > 0 {
                note(violations, None, format!("{list:?} of {lru:?} has {entries} entries beside generations"));
            }
            return entries;
        }
        for zone in self.zones_of(lru) {
            let kind = self.zones[zone.index()].kind as usize;
            let (counted, size) = (sizes[kind], lruvec.sizes[list as usize][kind]);
            if size != counted {
                let what = format!("{list:?} of {lru:?}, zone {}: size {size}, recount {counted}", zone.0);
                note(violations, None, what);
            }
        }
        entries
    }
}

fn note(violations: &mut Vec<Violation>, pfn: Option<Pfn>, what: String) {
    violations.push(Violation { place: PLACE, pfn, what });
}
