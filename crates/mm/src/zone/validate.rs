//! Recount of everything the page allocator keeps.

use units::{Order, Pfn, ZoneId};

use crate::stat::ZoneStat;
use crate::{Frame, Kind, MigrateType, Mm, Violation};

use super::Zone;

const PLACE: &str = "zone";

impl Mm {
    /// Checks that every free block is on exactly one list, aligned, merged as far as it goes and counted, and that all
    /// managed frames are headed by exactly one block.
    pub(crate) fn validate_zone(&self, violations: &mut Vec<Violation>) {
        for zone in &self.zones {
            self.validate_lists(zone, violations);
            self.validate_pcps(zone, violations);
            self.validate_frames(zone, violations);
            validate_levels(zone, violations);
        }
    }

    fn validate_lists(&self, zone: &Zone, violations: &mut Vec<Violation>) {
        let mut free = 0;
        for (order, area) in zone.free_area.iter().enumerate() {
            for (index, list) in area.lists.iter().enumerate() {
                let migratetype = MigrateType::from_index(index);
                let mut entries = 0;
                for pfn in list.iter(&self.frames) {
                    entries += 1;
                    self.validate_free_block(zone, pfn, Order(order as u8), migratetype, violations);
                    if entries > list.len() {
                        break;
                    }
                }
                let what = format!("order {order} {}: {} entries, counted {entries}", migratetype.name(), list.len());
                expect(violations, entries == list.len(), None, what);
                free += u64::from(entries) << order;
            }
        }
        let gauge = self.stat.zone(zone.id, ZoneStat::FreePages);
        let what = format!("zone {}: {} free pages, gauge {gauge}, counted {free}", zone.id.0, zone.free_pages);
        expect(violations, zone.free_pages == free && gauge == free, None, what);
    }

    fn validate_free_block(
        &self,
        zone: &Zone,
        pfn: Pfn,
        order: Order,
        migratetype: MigrateType,
        violations: &mut Vec<Violation>,
    ) {
        let frame = &self.frames[pfn];
        let right = frame.kind() == Kind::Buddy && frame.order() == order && frame.migratetype() == migratetype;
        let what =
            format!("is {:?} order {} on list {} {}", frame.kind(), frame.order().0, order.0, migratetype.name());
        expect(violations, right, Some(pfn), what);
        let placed = pfn.0 & (order.pages() - 1) == 0 && self.zone_of(pfn) == zone.id;
        expect(violations, placed, Some(pfn), format!("misaligned or not in zone {}", zone.id.0));
        let agrees = !zone.strict_types || self.blocks.migratetype(pfn) == migratetype;
        expect(violations, agrees, Some(pfn), format!("{} in a block of another type", migratetype.name()));
        let buddy = Pfn(pfn.0 ^ order.pages());
        let has_buddy = order < Order::MAX && buddy.index() < self.frames.len() && self.zone_of(buddy) == zone.id;
        if has_buddy && pfn < buddy {
            let other = &self.frames[buddy];
            let both = other.kind() == Kind::Buddy && other.order() == order;
            let apart = zone.strict_types && self.blocks.migratetype(buddy) != migratetype;
            expect(violations, !both || apart, Some(pfn), format!("not merged with {}", buddy.0));
        }
    }

    fn validate_pcps(&self, zone: &Zone, violations: &mut Vec<Violation>) {
        for (cpu, pcp) in self.pcps.of_zone(zone.id).iter().enumerate() {
            let mut pages = 0;
            for list in &pcp.lists {
                for pfn in list.iter() {
                    let frame = &self.frames[pfn];
                    expect(violations, frame.kind() == Kind::Pcp, Some(pfn), format!("on a list of CPU {cpu}"));
                    pages += frame.nr_pages();
                }
            }
            let what = format!("zone {} CPU {cpu}: {} pages, counted {pages}", zone.id.0, pcp.count);
            expect(violations, pages == pcp.count, None, what);
        }
    }

    /// Every managed frame is the head of a block or one of its tails, and all of them add up.
    fn validate_frames(&self, zone: &Zone, violations: &mut Vec<Violation>) {
        let end = zone.start.0 + zone.spanned as u32;
        let (mut at, mut buddy, mut pcp, mut reserved) = (zone.start.0, 0, 0, 0);
        while at < end {
            let frame: &Frame = &self.frames[Pfn(at)];
            let pages = u64::from(frame.nr_pages());
            let step = match frame.kind() {
                Kind::Reserved | Kind::Tail => 1,
                _ => frame.nr_pages(),
            };
            match frame.kind() {
                Kind::Reserved => reserved += 1,
                Kind::Tail => expect(violations, false, Some(Pfn(at)), "is a tail that no block covers".to_string()),
                Kind::Buddy => buddy += pages,
                Kind::Pcp => pcp += pages,
                _ => {}
            }
            let tails = (at + 1..(at + step).min(end)).map(Pfn);
            for pfn in tails.filter(|&p| self.frames[p].kind() != Kind::Tail) {
                expect(violations, false, Some(pfn), format!("heads a block inside that of {at}"));
            }
            at += step;
        }
        let counted = (zone.free_pages, self.pcp_pages(zone.id), zone.spanned - zone.managed);
        let what = format!(
            "zone {}: {counted:?} pages free, on CPUs, reserved; frames say {buddy} {pcp} {reserved}",
            zone.id.0
        );
        expect(violations, counted == (buddy, pcp, reserved), None, what);
    }

    /// Free blocks of a zone by order and migratetype (`/proc/pagetypeinfo`).
    pub fn free_counts(&self, zone: ZoneId) -> [[u64; MigrateType::COUNT]; 11] {
        let areas = &self.zones[zone.index()].free_area;
        std::array::from_fn(|order| std::array::from_fn(|t| u64::from(areas[order].lists[t].len())))
    }

    /// Pageblocks of a zone by migratetype (`/proc/pagetypeinfo`, "Number of blocks type").
    pub fn block_type_counts(&self, zone: ZoneId) -> [u64; MigrateType::COUNT] {
        let state = &self.zones[zone.index()];
        let (start, end) = (state.start.0, state.start.0 + state.spanned as u32);
        let mut counts = [0; MigrateType::COUNT];
        let first = Pfn(start).align_down(units::PAGEBLOCK_ORDER).0;
        for pfn in (first..end).step_by(units::PAGEBLOCK_PAGES as usize) {
            counts[self.blocks.migratetype(Pfn(pfn)) as usize] += 1;
        }
        counts
    }
}

fn validate_levels(zone: &Zone, violations: &mut Vec<Violation>) {
    let marks = zone.watermarks;
    let ordered = marks.min <= marks.low && marks.low <= marks.high && marks.high <= marks.promo;
    expect(violations, ordered, None, format!("zone {}: watermarks out of order {marks:?}", zone.id.0));
}

fn expect(violations: &mut Vec<Violation>, holds: bool, pfn: Option<Pfn>, what: String) {
    if !holds {
        violations.push(Violation { place: PLACE, pfn, what });
    }
}
