//! `/proc/zoneinfo`: watermarks, sizes, counters and per-CPU lists of every zone.
//!
//! Source: `zoneinfo_show_print()`, mm/vmstat.c, 6.12, 4.20 and 4.4. Lines that an older kernel lacks (4.20: `boost`, `cma` and
//! `promo`; 6.1: `promo`) are `None`. Where zones are reclaimed one by one (until 4.7), `scanned` and `inactive_ratio` are
//! there, and the counters, which stand before `protection`, are all the zone's.

use std::fmt::Write;

use crate::text::{Line, Lines};
use crate::{Counters, ParseError};

/// All zones of all nodes, in the kernel's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Zoneinfo {
    /// The zones, populated or not.
    pub zones: Vec<ZoneSection>,
}

/// One zone. Sizes and watermarks in pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ZoneSection {
    /// NUMA node.
    pub node: u32,
    /// `DMA`, `DMA32`, `Normal`, `Movable`, `Device`.
    pub zone: String,
    /// The node's counters; printed with the node's first populated zone.
    pub node_stats: Option<Counters>,
    /// Free pages.
    pub free: u64,
    /// Watermark boost.
    pub boost: Option<u64>,
    /// Min watermark, boost included.
    pub min: u64,
    /// Low watermark, boost included.
    pub low: u64,
    /// High watermark, boost included.
    pub high: u64,
    /// Promotion watermark, boost included.
    pub promo: Option<u64>,
    /// Pages scanned since one was freed; printed until 4.7.
    pub scanned: Option<u64>,
    /// Page frames from the first to the last.
    pub spanned: u64,
    /// Page frames that exist.
    pub present: u64,
    /// Pages that the buddy allocator got; until 3.8, which print no such line, those that exist.
    pub managed: u64,
    /// Pages reserved for CMA.
    pub cma: Option<u64>,
    /// `lowmem_reserve`: pages kept from allocations that may use a higher zone.
    pub protection: Vec<u64>,
    /// What only a zone with memory has.
    pub populated: Option<PopulatedZone>,
}

/// The part of a zone's section that needs memory in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PopulatedZone {
    /// The zone's counters (`nr_free_pages`, ..., `numa_*`).
    pub stats: Counters,
    /// Per-CPU lists.
    pub pagesets: Vec<Pageset>,
    /// 1 if kswapd gave up on the node; until 4.7 (`all_unreclaimable`), if the zone was scanned in vain.
    pub node_unreclaimable: u64,
    /// First page frame.
    pub start_pfn: u64,
    /// How much larger the active list may be; printed until 4.7.
    pub inactive_ratio: Option<u64>,
}

/// One CPU's page lists in one zone. Sizes in pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pageset {
    /// The CPU.
    pub cpu: u32,
    /// Pages on the lists.
    pub count: u64,
    /// Above it pages go back to the buddy lists.
    pub high: u64,
    /// How many move at a time.
    pub batch: u64,
    /// Lower bound of `high`; printed by kernels after 6.12.
    pub high_min: Option<u64>,
    /// Upper bound of `high`; printed by kernels after 6.12.
    pub high_max: Option<u64>,
    /// How far a CPU's counter differs before it is folded; only SMP kernels print it.
    pub stat_threshold: Option<u64>,
}

impl Zoneinfo {
    /// Reads the text of `/proc/zoneinfo`; `file` only names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Zoneinfo, ParseError> {
        let mut lines = Lines::new(file, text);
        let mut zones = Vec::new();
        while let Some(line) = lines.take() {
            zones.push(parse_zone(line, &mut lines)?);
        }
        Ok(Zoneinfo { zones })
    }

    /// The text of `/proc/zoneinfo`.
    pub fn write(&self) -> String {
        let mut out = String::new();
        for zone in &self.zones {
            write_zone(&mut out, zone).expect("writing to a String cannot fail");
        }
        out
    }

    /// The section of a zone, by node and name.
    pub fn zone(&self, node: u32, zone: &str) -> Option<&ZoneSection> {
        self.zones.iter().find(|section| section.node == node && section.zone == zone)
    }
}

/// Lines of one indented counter start like this, and no others do.
const STAT_INDENT: &str = "      ";
/// The same until 4.7.
const ZONE_STAT_INDENT: &str = "    ";

fn parse_zone<'a>(head: Line<'a>, lines: &mut Lines<'a>) -> Result<ZoneSection, ParseError> {
    let (node, zone, rest) = head.node_zone()?;
    if !rest.trim().is_empty() {
        return Err(head.error("nothing after the zone's name"));
    }
    let mut section = ZoneSection { node, zone: zone.to_owned(), ..ZoneSection::default() };
    if lines.take_if(|text| text == "  per-node stats").is_some() {
        section.node_stats = Some(parse_stats(lines, STAT_INDENT)?);
    }
    section.free = required(lines, "pages free")?;
    section.boost = optional(lines, "boost")?;
    section.min = required(lines, "min")?;
    section.low = required(lines, "low")?;
    section.high = required(lines, "high")?;
    section.promo = optional(lines, "promo")?;
    section.scanned = optional(lines, "scanned")?;
    section.spanned = required(lines, "spanned")?;
    section.present = required(lines, "present")?;
    section.managed = optional(lines, "managed")?.unwrap_or(section.present);
    section.cma = optional(lines, "cma")?;
    let mut stats = Counters::default();
    if section.scanned.is_some() {
        stats = parse_stats(lines, ZONE_STAT_INDENT)?;
    }
    section.protection = parse_protection(lines)?;
    if section.scanned.is_none() {
        stats = parse_stats(lines, STAT_INDENT)?;
    }
    if !stats.0.is_empty() {
        section.populated = Some(parse_populated(stats, lines)?);
    }
    Ok(section)
}

fn parse_stats(lines: &mut Lines<'_>, indent: &str) -> Result<Counters, ParseError> {
    let is_stat = |text: &str| text.strip_prefix(indent).is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    // 4.17 to 4.19 print `nr_indirectly_reclaimable` without a name.
    let is_unnamed =
        |text: &str| text.starts_with(indent) && text.trim_start().bytes().all(|byte| byte.is_ascii_digit());
    let mut stats = Counters::default();
    while let Some(line) = lines.take_if(|text| is_stat(text) || is_unnamed(text)) {
        if is_unnamed(line.text) {
            continue;
        }
        let (name, value) = line.name_value("a counter's name and value")?;
        if stats.0.insert(name.to_owned(), value).is_some() {
            return Err(line.error(format!("{name} only once")));
        }
    }
    Ok(stats)
}

fn required(lines: &mut Lines<'_>, label: &str) -> Result<u64, ParseError> {
    lines.require(&format!("\"{label}\" and a number"))?.number_after(label)
}

fn optional(lines: &mut Lines<'_>, label: &str) -> Result<Option<u64>, ParseError> {
    let is_it = |text: &str| text.trim_start().starts_with(label);
    lines.take_if(is_it).map(|line| line.number_after(label)).transpose()
}

fn parse_protection(lines: &mut Lines<'_>) -> Result<Vec<u64>, ParseError> {
    let expected = "\"protection: (N, ...)\"";
    let line = lines.require(expected)?;
    let list = line.text.trim_start().strip_prefix("protection: (");
    let list = list.and_then(|rest| rest.strip_suffix(')')).ok_or_else(|| line.error(expected))?;
    list.split(", ").map(|field| line.number(field, "pages of protection")).collect()
}

fn parse_populated(stats: Counters, lines: &mut Lines<'_>) -> Result<PopulatedZone, ParseError> {
    let head = lines.require("\"pagesets\"")?;
    if head.text != "  pagesets" {
        return Err(head.error("\"pagesets\""));
    }
    let mut pagesets = Vec::new();
    while let Some(cpu) = lines.take_if(|text| text.starts_with("    cpu:")) {
        pagesets.push(Pageset {
            cpu: cpu.number_after("cpu:")?,
            count: required(lines, "count:")?,
            high: required(lines, "high:")?,
            batch: required(lines, "batch:")?,
            high_min: optional(lines, "high_min:")?,
            high_max: optional(lines, "high_max:")?,
            stat_threshold: optional(lines, "vm stats threshold:")?,
        });
    }
    let node_unreclaimable = match optional(lines, "all_unreclaimable:")? {
        Some(in_vain) => in_vain,
        None => required(lines, "node_unreclaimable:")?,
    };
    let start_pfn = required(lines, "start_pfn:")?;
    let inactive_ratio = optional(lines, "inactive_ratio:")?;
    Ok(PopulatedZone { stats, pagesets, node_unreclaimable, start_pfn, inactive_ratio })
}

fn write_zone(out: &mut String, section: &ZoneSection) -> std::fmt::Result {
    writeln!(out, "Node {}, zone {:>8}", section.node, section.zone)?;
    if let Some(stats) = &section.node_stats {
        writeln!(out, "  per-node stats")?;
        write_stats(out, stats, STAT_INDENT)?;
    }
    let lines = [
        ("  pages free     ", Some(section.free)),
        ("        boost    ", section.boost),
        ("        min      ", Some(section.min)),
        ("        low      ", Some(section.low)),
        ("        high     ", Some(section.high)),
        ("        promo    ", section.promo),
        ("        scanned  ", section.scanned),
        ("        spanned  ", Some(section.spanned)),
        ("        present  ", Some(section.present)),
        ("        managed  ", Some(section.managed)),
        ("        cma      ", section.cma),
    ];
    for (label, value) in lines {
        if let Some(value) = value {
            writeln!(out, "{label}{value}")?;
        }
    }
    let protection: Vec<String> = section.protection.iter().map(u64::to_string).collect();
    let protection = format!("        protection: ({})", protection.join(", "));
    let populated = section.populated.as_ref();
    let stats = |out: &mut String, indent| populated.map_or(Ok(()), |zone| write_stats(out, &zone.stats, indent));
    if section.scanned.is_some() {
        stats(out, ZONE_STAT_INDENT)?;
        writeln!(out, "{protection}")?;
    } else {
        writeln!(out, "{protection}")?;
        stats(out, STAT_INDENT)?;
    }
    populated.map_or(Ok(()), |populated| write_populated(out, populated))
}

fn write_stats(out: &mut String, stats: &Counters, indent: &str) -> std::fmt::Result {
    stats.iter().try_for_each(|(name, value)| writeln!(out, "{indent}{name:<12} {value}"))
}

fn write_populated(out: &mut String, populated: &PopulatedZone) -> std::fmt::Result {
    writeln!(out, "  pagesets")?;
    populated.pagesets.iter().try_for_each(|pageset| write_pageset(out, pageset))?;
    let PopulatedZone { node_unreclaimable, start_pfn, .. } = populated;
    match populated.inactive_ratio {
        Some(ratio) => {
            writeln!(out, "  all_unreclaimable: {node_unreclaimable}")?;
            writeln!(out, "  start_pfn:         {start_pfn}")?;
            writeln!(out, "  inactive_ratio:    {ratio}")
        }
        None => {
            writeln!(out, "  node_unreclaimable:  {node_unreclaimable}")?;
            writeln!(out, "  start_pfn:           {start_pfn}")
        }
    }
}

fn write_pageset(out: &mut String, pageset: &Pageset) -> std::fmt::Result {
    writeln!(out, "    cpu: {}", pageset.cpu)?;
    // Labels are padded to the longest that the kernel prints.
    let width = if pageset.high_min.is_some() { 10 } else { 7 };
    let lines = [
        ("count:", Some(pageset.count)),
        ("high:", Some(pageset.high)),
        ("batch:", Some(pageset.batch)),
        ("high_min:", pageset.high_min),
        ("high_max:", pageset.high_max),
    ];
    for (label, value) in lines {
        if let Some(value) = value {
            writeln!(out, "              {label:<width$}{value}")?;
        }
    }
    match pageset.stat_threshold {
        Some(threshold) => writeln!(out, "  vm stats threshold: {threshold}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_3_9_the_allocator_has_what_is_present() {
        let text = "Node 0, zone      DMA\n  pages free     5\n        min      1\n        low      2\n        high     3\n        \
            scanned  0\n        spanned  4080\n        present  3920\n    nr_free_pages 5\n        protection: (0, 0)\n  \
            pagesets\n  all_unreclaimable: 0\n  start_pfn:         16\n  inactive_ratio:    1\n";
        let zones = Zoneinfo::parse("zoneinfo", text).unwrap().zones;
        assert_eq!((zones[0].present, zones[0].managed), (3920, 3920));
    }

    #[test]
    fn a_counter_without_a_name_is_passed_over() {
        let text = "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 7\n                   40\n  pages free     0\n        \
            min      0\n        low      0\n        high     0\n        spanned  0\n        present  0\n        managed  0\n        \
            protection: (0, 0)\n";
        let zones = Zoneinfo::parse("zoneinfo", text).unwrap().zones;
        let stats = zones[0].node_stats.as_ref().unwrap();
        assert_eq!(
            stats.0.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>(),
            [("nr_inactive_anon", 7)]
        );
    }

    #[test]
    fn an_unpopulated_zone_of_4_20_has_neither_boost_nor_counters() {
        let text = "Node 1, zone  Movable\n  pages free     0\n        min      0\n        low      0\n        \
                    high     0\n        spanned  0\n        present  0\n        managed  0\n        \
                    protection: (0, 0)\n";
        let info = Zoneinfo::parse("zoneinfo", text).unwrap();
        let zone = info.zone(1, "Movable").unwrap();
        assert_eq!((zone.boost, zone.promo, zone.cma), (None, None, None));
        assert!(zone.populated.is_none());
        assert_eq!(info.write(), text);
    }

    #[test]
    fn pagesets_of_newer_kernels_have_bounds_and_wider_labels() {
        let text = "Node 0, zone      DMA\n  pages free     1\n        min      0\n        low      0\n        \
                    high     0\n        spanned  1\n        present  1\n        managed  1\n        \
                    protection: (0, 0)\n      nr_free_pages 1\n  pagesets\n    cpu: 0\n\
                    \x20             count:    0\n              high:     0\n              batch:    1\n\
                    \x20             high_min: 21\n              high_max: 240\n  vm stats threshold: 4\n\
                    \x20 node_unreclaimable:  0\n  start_pfn:           1\n";
        let info = Zoneinfo::parse("zoneinfo", text).unwrap();
        let pageset = &info.zones[0].populated.as_ref().unwrap().pagesets[0];
        assert_eq!((pageset.high_min, pageset.high_max), (Some(21), Some(240)));
        assert_eq!(info.write(), text);
    }

    #[test]
    fn zones_that_are_reclaimed_one_by_one_have_their_counters_before_their_protection() {
        let text = "Node 0, zone      DMA\n  pages free     3808\n        min      58\n        low      72\n        \
                    high     87\n        scanned  3\n        spanned  4095\n        present  3998\n        \
                    managed  3977\n    nr_free_pages 3808\n    nr_inactive_anon 9\n        protection: (0, 500)\n  \
                    pagesets\n    cpu: 0\n              count: 0\n              high:  0\n              batch: 1\n  \
                    vm stats threshold: 4\n  all_unreclaimable: 1\n  start_pfn:         1\n  inactive_ratio:    1\n";
        let info = Zoneinfo::parse("zoneinfo", text).unwrap();
        let populated = info.zones[0].populated.as_ref().unwrap();
        assert_eq!(
            (info.zones[0].scanned, populated.inactive_ratio, populated.node_unreclaimable),
            (Some(3), Some(1), 1)
        );
        assert_eq!(populated.stats.get("nr_inactive_anon"), Some(9));
        assert_eq!(info.write(), text);
    }

    #[test]
    fn a_missing_line_is_named() {
        let text = "Node 0, zone      DMA\n  pages free     3808\n        low      36\n";
        let error = Zoneinfo::parse("before/zoneinfo", text).unwrap_err();
        let shown = r#"before/zoneinfo:3: expected "min" and a number, found "        low      36""#;
        assert_eq!(error.to_string(), shown);
    }
}
