//! `/proc/pagetypeinfo`: free blocks by mobility, and pageblocks by mobility.
//!
//! Source: `pagetypeinfo_show()` and what it calls, mm/vmstat.c, 6.12. The kernel stops counting a free list at 100,000
//! and prints `>100000`. Omitted: the section "Number of mixed blocks", which needs page_owner; it is read over.

use std::fmt::Write;

use crate::ParseError;
use crate::text::{Line, Lines};

/// Where the kernel stops counting a free list, in blocks.
const FREE_COUNT_MAX: u64 = 100_000;

/// Free blocks of one zone and mobility.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PagetypeFree {
    /// NUMA node.
    pub node: u32,
    /// Zone name.
    pub zone: String,
    /// `Unmovable`, `Movable`, `Reclaimable`, `HighAtomic`, `CMA`, `Isolate`.
    pub migratetype: String,
    /// Free blocks of each order, from order 0; a reader sees at most 100,000.
    pub blocks: Vec<u64>,
}

/// Pageblocks of one zone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PagetypeZone {
    /// NUMA node.
    pub node: u32,
    /// Zone name.
    pub zone: String,
    /// Pageblocks of each mobility, in the order of [`PagetypeNode::migratetypes`].
    pub pageblocks: Vec<u64>,
}

/// One node's part of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PagetypeNode {
    /// Order of a pageblock.
    pub pageblock_order: u32,
    /// Pages of a pageblock.
    pub pageblock_pages: u64,
    /// Number of orders in the head line.
    pub orders: usize,
    /// Mobilities in the kernel's order.
    pub migratetypes: Vec<String>,
    /// Free blocks, zone by zone and mobility by mobility.
    pub free: Vec<PagetypeFree>,
    /// Pageblocks, zone by zone.
    pub zones: Vec<PagetypeZone>,
}

/// The file: one part per node with memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pagetypeinfo {
    /// The nodes' parts.
    pub nodes: Vec<PagetypeNode>,
}

const FREE_HEAD: &str = "Free pages count per migrate type at order ";
const BLOCKS_HEAD: &str = "Number of blocks type ";
const MIXED_HEAD: &str = "Number of mixed blocks ";

impl Pagetypeinfo {
    /// Reads the text of `/proc/pagetypeinfo`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Pagetypeinfo, ParseError> {
        let mut lines = Lines::new(file, text);
        let mut nodes = Vec::new();
        while let Some(line) = lines.take_if(|_| true) {
            nodes.push(parse_node(line, &mut lines)?);
        }
        Ok(Pagetypeinfo { nodes })
    }

    /// The text of `/proc/pagetypeinfo`.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for node in &self.nodes {
            write_node(&mut out, node).expect("writing to a String cannot fail");
        }
        out
    }
}

fn parse_node<'a>(first: Line<'a>, lines: &mut Lines<'a>) -> Result<PagetypeNode, ParseError> {
    let mut node = PagetypeNode {
        pageblock_order: first.number_after("Page block order:")?,
        pageblock_pages: lines.require("\"Pages per block:\"")?.number_after("Pages per block:")?,
        ..PagetypeNode::default()
    };
    blank(lines)?;
    let head = lines.require(FREE_HEAD)?;
    let orders = head.text.strip_prefix(FREE_HEAD).ok_or_else(|| head.error(FREE_HEAD))?;
    node.orders = head.numbers(orders, "an order")?.len();
    while let Some(line) = lines.take_if(|text| text.starts_with("Node ")) {
        node.free.push(parse_free(line, node.orders)?);
    }
    blank(lines)?;
    let head = lines.require(BLOCKS_HEAD)?;
    let types = head.text.strip_prefix(BLOCKS_HEAD).ok_or_else(|| head.error(BLOCKS_HEAD))?;
    node.migratetypes = types.split_ascii_whitespace().map(str::to_owned).collect();
    while let Some(line) = lines.take_if(|text| text.starts_with("Node ")) {
        node.zones.push(parse_zone(line, node.migratetypes.len())?);
    }
    skip_mixed_blocks(lines)?;
    Ok(node)
}

fn blank(lines: &mut Lines<'_>) -> Result<(), ParseError> {
    let line = lines.require("an empty line")?;
    if line.text.is_empty() { Ok(()) } else { Err(line.error("an empty line")) }
}

fn parse_free(line: Line<'_>, orders: usize) -> Result<PagetypeFree, ParseError> {
    let (node, zone, rest) = line.node_zone()?;
    let rest = rest.strip_prefix(", type ").ok_or_else(|| line.error("\", type NAME\""))?;
    let rest = rest.trim_start();
    let (migratetype, counts) = rest.split_once(' ').ok_or_else(|| line.error("counts"))?;
    let counts = counts
        .split_ascii_whitespace()
        .map(|field| line.number(field.strip_prefix('>').unwrap_or(field), "the free blocks of an order"));
    let blocks: Vec<u64> = counts.collect::<Result<_, _>>()?;
    if blocks.len() != orders {
        return Err(line.error(format!("{orders} counts, one per order")));
    }
    let (zone, migratetype) = (zone.to_owned(), migratetype.to_owned());
    Ok(PagetypeFree { node, zone, migratetype, blocks })
}

fn parse_zone(line: Line<'_>, migratetypes: usize) -> Result<PagetypeZone, ParseError> {
    let (node, zone, rest) = line.node_zone()?;
    let pageblocks = line.numbers(rest, "the pageblocks of a migrate type")?;
    if pageblocks.len() != migratetypes {
        return Err(line.error(format!("{migratetypes} counts, one per migrate type")));
    }
    Ok(PagetypeZone { node, zone: zone.to_owned(), pageblocks })
}

fn skip_mixed_blocks(lines: &mut Lines<'_>) -> Result<(), ParseError> {
    if lines.take_if(str::is_empty).is_none() {
        return Ok(());
    }
    let head = lines.require(MIXED_HEAD)?;
    if !head.text.starts_with(MIXED_HEAD.trim_end()) {
        return Err(head.error(MIXED_HEAD));
    }
    while lines.take_if(|text| text.starts_with("Node ")).is_some() {}
    Ok(())
}

fn write_node(out: &mut String, node: &PagetypeNode) -> std::fmt::Result {
    writeln!(out, "Page block order: {}", node.pageblock_order)?;
    writeln!(out, "Pages per block:  {}\n", node.pageblock_pages)?;
    write!(out, "{FREE_HEAD:<43} ")?;
    for order in 0..node.orders {
        write!(out, "{order:>6} ")?;
    }
    out.push('\n');
    for free in &node.free {
        let PagetypeFree { node, zone, migratetype, blocks } = free;
        write!(out, "Node {node:>4}, zone {zone:>8}, type {migratetype:>12} ")?;
        for &count in blocks {
            let overflow = if count >= FREE_COUNT_MAX { ">" } else { "" };
            write!(out, "{overflow}{:>6} ", count.min(FREE_COUNT_MAX))?;
        }
        out.push('\n');
    }
    write!(out, "\n{BLOCKS_HEAD:<23}")?;
    for migratetype in &node.migratetypes {
        write!(out, "{migratetype:>12} ")?;
    }
    out.push('\n');
    for zone in &node.zones {
        write!(out, "Node {}, zone {:>8} ", zone.node, zone.zone)?;
        for count in &zone.pageblocks {
            write!(out, "{count:>12} ")?;
        }
        out.push('\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Page block order: 9\nPages per block:  512\n\n\
        Free pages count per migrate type at order       0      1 \n";

    #[test]
    fn lists_stop_at_a_hundred_thousand() {
        let text = format!(
            "{HEAD}Node    0, zone   Normal, type      Movable >100000      7 \n\n\
             Number of blocks type       Movable \nNode 0, zone   Normal          300 \n"
        );
        let mut info = Pagetypeinfo::parse("pagetypeinfo", &text).unwrap();
        assert_eq!(info.nodes[0].free[0].blocks, [100_000, 7]);
        assert_eq!(info.write(), text);
        info.nodes[0].free[0].blocks[0] = 123_456;
        assert_eq!(info.write(), text);
    }

    #[test]
    fn the_mixed_section_is_read_over() {
        let text = format!(
            "{HEAD}\nNumber of blocks type      Movable \n\nNumber of mixed blocks     Movable \n\
             Node 0, zone   Normal            3 \n"
        );
        assert_eq!(Pagetypeinfo::parse("pagetypeinfo", &text).unwrap().nodes.len(), 1);
    }

    #[test]
    fn a_missing_count_is_an_error_with_its_line() {
        let text = format!("{HEAD}Node    0, zone   Normal, type      Movable      7 \n");
        let error = Pagetypeinfo::parse("pagetypeinfo", &text).unwrap_err();
        assert_eq!((error.line, error.expected.as_str()), (5, "2 counts, one per order"));
    }
}
