//! From a machine's description to its memory map.
//!
//! Source: the e820 map and `Memory: ...K available` lines of x86-64 machines; arch/x86/mm/init.c
//! (`zone_sizes_init`). Below 1 MiB, 97 pages are not RAM; below 4 GiB there is a hole for PCI, and the memory that it
//! hides stands above 4 GiB. The memory map itself takes 1/64 of a node's memory (64 of 4096 bytes); kernel image, hash
//! tables and early allocations take about as much as 1/512 of it, at most 256 MiB. Both come from the highest zone
//! of the node, as memblock allocates from the top. With memory above 4 GiB, ZONE_DMA32 has the buffers through which devices
//! reach it that cannot address so much (`pci_swiotlb_detect_4gb()`, arch/x86/kernel/pci-swiotlb.c, 3.19;
//! `IO_TLB_DEFAULT_SIZE`, include/linux/swiotlb.h): in a guest of 6.12 with 4 GiB, 2 of them above, 25 798 pages of
//! ZONE_DMA32 are not managed, with all memory below some 9000.
//! Omitted: an IOMMU, with which the kernel gives these buffers back.

use mm::{MemoryLayout, NodeSpec, ZoneKind, ZoneSpan};
use profile::{Machine, Size, ZoneDef};
use units::{Bytes, NodeId, PAGE_SIZE, PAGEBLOCK_PAGES, Pages, Pfn};

const DMA_END: u32 = 4096;
const DMA32_END: u32 = 1 << 20;
/// Pages of 0xa0000 to 0xfffff and of the EBDA: 3998 of 4095 pages exist on nearly every machine.
const BIOS_HOLE: (Pfn, Pages) = (Pfn(159), Pages(97));
/// Pages that early boot takes of ZONE_DMA and ZONE_DMA32, as `/proc/zoneinfo` of such machines shows.
const DMA_RESERVED: u64 = 24;
const DMA32_RESERVED: u64 = 4096;
/// Pages of ZONE_DMA32 that devices' data is bounced through where there is memory above it: 64 MiB.
const SWIOTLB: u64 = Bytes::mib(64).0 / PAGE_SIZE;
const DEFAULT_PCI_HOLE: Bytes = Bytes::gib(2);

/// The memory map of a machine.
pub(crate) fn memory_layout(machine: &Machine) -> MemoryLayout {
    let hole = machine.pci_hole.as_ref().map_or(DEFAULT_PCI_HOLE, |h| h.get_ref().0);
    let mut next = Pfn(0);
    let nodes = machine
        .nodes
        .iter()
        .enumerate()
        .map(|(number, def)| {
            let Size(memory) = *def.memory.get_ref();
            let pages = memory.pages_down().0 / u64::from(PAGEBLOCK_PAGES) * u64::from(PAGEBLOCK_PAGES);
            let zones = if machine.zones_of(number).next().is_some() {
                machine.zones_of(number).map(described).collect()
            } else if number == 0 {
                first_node(pages, hole)
            } else {
                vec![normal(next, pages, pages)]
            };
            let last = zones.last().expect("a node has a zone");
            next = Pfn(last.start.0 + last.spanned.0 as u32);
            NodeSpec { zones, distance: distances(machine, number) }
        })
        .collect();
    MemoryLayout { nodes, cpu_nodes: cpu_nodes(machine) }
}

fn distances(machine: &Machine, number: usize) -> Vec<u8> {
    let default = || (0..machine.nodes.len()).map(|other| if other == number { 10 } else { 21 }).collect();
    machine.nodes[number].distance.as_ref().map_or_else(default, |d| d.get_ref().clone())
}

/// CPUs in blocks of equal size, a block a node.
pub(crate) fn cpu_nodes(machine: &Machine) -> Vec<NodeId> {
    let cpus = *machine.cpus.count.get_ref() as usize;
    let nodes = machine.nodes.len();
    (0..cpus).map(|cpu| NodeId((cpu * nodes / cpus) as u8)).collect()
}

/// A zone that the machine describes. What is missing of ZONE_DMA is what lies right below 1 MiB: beside the BIOS's hole what firmware keeps
/// at the end of what is RAM there; another zone's hole is taken to be its end.
fn described(zone: &ZoneDef) -> ZoneSpan {
    let kind = match zone.name.as_str() {
        "DMA" => ZoneKind::Dma,
        "DMA32" => ZoneKind::Dma32,
        "Movable" => ZoneKind::Movable,
        _ => ZoneKind::Normal,
    };
    let missing = Pages(zone.spanned - zone.present);
    let bios_end = u64::from(BIOS_HOLE.0.0) + BIOS_HOLE.1.0;
    let below_1_mib =
        kind == ZoneKind::Dma && zone.start_pfn + missing.0 <= bios_end && zone.start_pfn + zone.spanned >= bios_end;
    let hole = (missing.0 > 0 && below_1_mib).then(|| (Pfn((bios_end - missing.0) as u32), missing));
    let spanned = if hole.is_some() { zone.spanned } else { zone.present };
    ZoneSpan {
        kind,
        start: Pfn(zone.start_pfn as u32),
        spanned: Pages(spanned),
        present: Pages(zone.present),
        managed: Pages(zone.managed),
        hole,
    }
}

/// DMA, DMA32 with the PCI hole at its end, Normal with the rest.
fn first_node(pages: u64, hole: Bytes) -> Vec<ZoneSpan> {
    let low_end = u64::from(DMA32_END) - hole.pages_down().0;
    let mut zones = vec![ZoneSpan {
        kind: ZoneKind::Dma,
        start: Pfn(1),
        spanned: Pages(u64::from(DMA_END) - 1),
        present: Pages(u64::from(DMA_END) - 1 - BIOS_HOLE.1.0),
        managed: Pages(u64::from(DMA_END) - 1 - BIOS_HOLE.1.0 - DMA_RESERVED),
        hole: Some(BIOS_HOLE),
    }];
    let dma32 = pages.min(low_end) - u64::from(DMA_END);
    let reserved = if pages > low_end { reserved_below_4_gib(dma32) } else { reserved_of(pages) };
    zones.push(ZoneSpan {
        kind: ZoneKind::Dma32,
        start: Pfn(DMA_END),
        spanned: Pages(dma32),
        present: Pages(dma32),
        managed: Pages(dma32 - reserved),
        hole: None,
    });
    if pages > low_end {
        zones.push(normal(Pfn(DMA32_END), pages - low_end, pages));
    }
    zones
}

/// ZONE_NORMAL of `pages` pages on a node of `node_pages`.
fn normal(start: Pfn, pages: u64, node_pages: u64) -> ZoneSpan {
    let reserved = reserved_of(node_pages).min(pages / 2);
    ZoneSpan {
        kind: ZoneKind::Normal,
        start,
        spanned: Pages(pages),
        present: Pages(pages),
        managed: Pages(pages - reserved),
        hole: None,
    }
}

/// What boot takes of ZONE_DMA32 where memory lies above it. The buffers are left out where they do not fit.
fn reserved_below_4_gib(dma32: u64) -> u64 {
    let early = DMA32_RESERVED.min(dma32 / 64);
    if dma32 - early > SWIOTLB { early + SWIOTLB } else { early }
}

fn reserved_of(node_pages: u64) -> u64 {
    node_pages / 64 + (node_pages / 512).min(Bytes::mib(256).pages_down().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_16_gib_has_three_zones_and_loses_what_the_pci_hole_hides_to_none_of_them() {
        let layout = memory_layout(&Machine::load("skylake-1s").expect("built in"));
        let zones = &layout.nodes[0].zones;
        assert_eq!(
            zones.iter().map(|z| z.kind).collect::<Vec<_>>(),
            [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal]
        );
        assert_eq!(zones[0].present, Pages(3998));
        // 2 GiB hole: DMA32 ends at 2 GiB.
        assert_eq!(zones[1].present, Pages((2 << 18) - 4096));
        // Everything but page 0 and the 97 BIOS pages is present somewhere.
        let present: u64 = zones.iter().map(|z| z.present.0).sum();
        assert_eq!(present, (16 << 18) - 1 - 97);
    }

    #[test]
    fn memory_above_4_gib_costs_zone_dma32_64_mib_of_buffers() {
        // Managed pages of a guest of 6.12 with 4 GiB, half of them above: 494,362 and 506,052.
        let half_above = first_node(4 << 18, Bytes::gib(2));
        let managed: Vec<u64> = half_above.iter().map(|z| z.managed.0).collect();
        assert!(managed[1].abs_diff(494_362) < 6_000 && managed[2].abs_diff(506_052) < 6_000, "{managed:?}");
        let all_below = first_node(2 << 18, Bytes::gib(2));
        assert!(all_below[1].managed.0 > half_above[1].managed.0 + 10_000, "the same zone with nothing above it");
        // A zone of 16 MiB has no room for them.
        let small = first_node((64 << 8) + (1 << 18), Bytes::mib(4096 - 32));
        assert!(small[1].managed.0 > small[1].present.0 / 2, "{:?}", small[1]);
    }

    /// A guest of 3.1: 102 pages are not RAM, and its free blocks say that 152 and 153 are, and 256.
    #[test]
    fn what_firmware_keeps_below_1_mib_lies_right_below_it() {
        let hole = |start_pfn, present| {
            let zone =
                ZoneDef { name: "DMA".into(), start_pfn, spanned: 4096 - start_pfn, present, ..ZoneDef::default() };
            described(&zone).hole
        };
        assert_eq!(hole(16, 3978), Some((Pfn(154), Pages(102))));
        assert_eq!(hole(1, 3998), Some(BIOS_HOLE));
        assert_eq!(hole(1, 4095), None);
        // More than lies there.
        assert_eq!(hole(16, 3800), None);
    }

    #[test]
    fn cpus_are_spread_over_the_nodes() {
        let nodes = cpu_nodes(&Machine::load("haswell-2s").expect("built in"));
        assert_eq!(nodes.len(), 48);
        assert_eq!(nodes.iter().filter(|n| **n == NodeId(1)).count(), 24);
        assert_eq!(nodes[23], NodeId(0));
        assert_eq!(nodes[24], NodeId(1));
    }
}
