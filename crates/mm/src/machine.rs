//! What the mechanisms must know of a machine: nodes and the zones in them.

use units::{NodeId, Pages, Pfn};

/// Kind of a zone (`enum zone_type`), lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum ZoneKind {
    /// Below 16 MiB.
    Dma = 0,
    /// Below 4 GiB.
    Dma32 = 1,
    /// Everything else.
    Normal = 2,
    /// Movable pages only.
    Movable = 3,
}

impl ZoneKind {
    /// Kinds.
    pub const COUNT: usize = 4;
    /// All, lowest first.
    pub const ALL: [ZoneKind; ZoneKind::COUNT] = [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable];

    /// Name as in `/proc/zoneinfo`.
    pub fn name(self) -> &'static str {
        ["DMA", "DMA32", "Normal", "Movable"][self as usize]
    }
}

/// One populated zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneSpan {
    /// Kind.
    pub kind: ZoneKind,
    /// First frame.
    pub start: Pfn,
    /// Frames from the first to the last, holes included.
    pub spanned: Pages,
    /// Frames that exist: spanned without holes.
    pub present: Pages,
    /// Frames given to the page allocator: present without firmware, memmap and kernel image. The frames
    /// that are present but not managed are the first of the zone.
    pub managed: Pages,
    /// First frame and length of a hole inside the span, if any.
    pub hole: Option<(Pfn, Pages)>,
}

/// One NUMA node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSpec {
    /// Populated zones, lowest kind first.
    pub zones: Vec<ZoneSpan>,
    /// Distance to every node, as in the ACPI SLIT: 10 is local.
    pub distance: Vec<u8>,
}

/// The memory of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryLayout {
    /// Nodes.
    pub nodes: Vec<NodeSpec>,
    /// Node of each CPU.
    pub cpu_nodes: Vec<NodeId>,
}

impl MemoryLayout {
    /// One past the highest frame.
    pub fn end_pfn(&self) -> u32 {
        let ends = self.nodes.iter().flat_map(|n| &n.zones).map(|z| z.start.0 + z.spanned.0 as u32);
        ends.max().unwrap_or(0)
    }

    /// Frames in all zones, without holes.
    pub fn present(&self) -> Pages {
        Pages(self.nodes.iter().flat_map(|n| &n.zones).map(|z| z.present.0).sum())
    }

    /// Frames given to the page allocator in all zones.
    pub fn managed(&self) -> Pages {
        Pages(self.nodes.iter().flat_map(|n| &n.zones).map(|z| z.managed.0).sum())
    }
}
