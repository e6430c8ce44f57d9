//! `/proc/buddyinfo`: free blocks of each order, per zone. Source: `frag_show_print()`, mm/vmstat.c, 6.12.

use std::fmt::Write;

use crate::ParseError;
use crate::text::Lines;

/// One zone's free blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BuddyZone {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, `Movable`, ...
    pub zone: String,
    /// Free blocks of each order, from order 0.
    pub blocks: Vec<u64>,
}

impl BuddyZone {
    /// Free pages in blocks of `order` and above.
    pub fn free_pages(&self, order: usize) -> u64 {
        self.blocks
            .iter()
            .enumerate()
            .skip(order)
            .map(|(order, blocks)| blocks.saturating_mul(2u64.saturating_pow(order as u32)))
            .fold(0, u64::saturating_add)
    }
}

/// All populated zones, in the kernel's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Buddyinfo {
    /// The zones.
    pub zones: Vec<BuddyZone>,
}

impl Buddyinfo {
    /// Reads the text of `/proc/buddyinfo`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Buddyinfo, ParseError> {
        let mut zones: Vec<BuddyZone> = Vec::new();
        let mut lines = Lines::new(file, text);
        while let Some(line) = lines.take() {
            let (node, zone, rest) = line.node_zone()?;
            let blocks = line.numbers(rest, "the free blocks of an order")?;
            let orders = zones.first().map_or(blocks.len(), |first| first.blocks.len());
            if blocks.is_empty() || blocks.len() != orders {
                return Err(line.error(format!("{} counts, one per order", orders.max(1))));
            }
            zones.push(BuddyZone { node, zone: zone.to_owned(), blocks });
        }
        Ok(Buddyinfo { zones })
    }

    /// The text of `/proc/buddyinfo`.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for zone in &self.zones {
            write!(out, "Node {}, zone {:>8} ", zone.node, zone.zone).expect("a String");
            for blocks in &zone.blocks {
                write!(out, "{blocks:>6} ").expect("a String");
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_orders() {
        let zone = BuddyZone { blocks: vec![3, 2, 1], ..BuddyZone::default() };
        // 3*1 + 2*2 + 1*4; from order 1: 2*2 + 1*4.
        assert_eq!((zone.free_pages(0), zone.free_pages(1), zone.free_pages(9)), (11, 8, 0));
    }

    #[test]
    fn a_line_with_other_orders_is_an_error() {
        let text = "Node 0, zone      DMA      0      1 \nNode 0, zone    DMA32      3 \n";
        let error = Buddyinfo::parse("buddyinfo", text).unwrap_err();
        assert_eq!((error.line, error.expected.as_str()), (2, "2 counts, one per order"));
    }
}
