//! `mmtwin machine`: a machine as it is, or as it was when a run started, as a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use observe::{Counters, Manifest, PagetypeNode, Snapshot, ZoneSection, chosen_word, parse_settings};
use profile::{MIGRATE_TYPES, Machine, MachineState, PcpDef, ZoneDef};
use rules::{TUNABLES, Tunables};

use crate::args::{MachineArgs, MachineSource};
use crate::failure::Failure;
use crate::output;
use crate::validating::RealRun;

/// Where the kernel shows sysctls.
const PROC_SYS: &str = "/proc/sys";

pub(crate) fn machine(args: &MachineArgs) -> Result<(), Failure> {
    let machine = match &args.from {
        MachineSource::FromRun { run } => RealRun::read(run)?.machine,
        MachineSource::FromHost { disks } => from_host(disks)?,
    };
    output::print(&machine.text)
}

/// This host, with the disks, the swap and the mount of another machine.
fn from_host(disks: &str) -> Result<Machine, Failure> {
    let snapshot = Snapshot::read(Path::new("/proc")).map_err(Failure::bad_input)?;
    let sysctls = TUNABLES.iter().filter_map(|tunable| {
        let path = Path::new(PROC_SYS).join(tunable.name.replace('.', "/"));
        Some((tunable.name.to_string(), fs::read_to_string(path).ok()?.trim().to_string()))
    });
    let description = format!("This host as it was, with the disks of {disks}.");
    let uptime_s = snapshot.uptime.map(|uptime| uptime.up_s);
    let name = "host".to_string();
    let sysctls = sysctls.collect();
    let state =
        Captured { name, description, snapshot: &snapshot, uptime_s, workload_group: false, bare_boot: false, sysctls };
    Ok(Machine::load(disks)?.started_from(&state.machine()?)?)
}

/// What was seen of a machine.
pub(crate) struct Captured<'a> {
    /// Name to give it.
    pub(crate) name: String,
    /// Where it was seen.
    pub(crate) description: String,
    /// The kernel's files.
    pub(crate) snapshot: &'a Snapshot,
    /// Seconds since boot.
    pub(crate) uptime_s: Option<f64>,
    /// Whether the workload runs in a cgroup with the cpu controller.
    pub(crate) workload_group: bool,
    /// Whether it is a guest with no more than the workload needs.
    pub(crate) bare_boot: bool,
    /// Settings in force; what the model does not know is left out.
    pub(crate) sysctls: Vec<(String, String)>,
}

impl Captured<'_> {
    /// The state of the machine.
    pub(crate) fn machine(self) -> Result<MachineState, Failure> {
        let lacks = |file: &str| Failure::bad_input(format!("{}: expected a readable {file}", self.description));
        let zoneinfo = self.snapshot.zoneinfo.as_ref().ok_or_else(|| lacks("zoneinfo"))?;
        let pagetypes = self.snapshot.pagetypeinfo.as_ref().ok_or_else(|| lacks("pagetypeinfo (root may read it)"))?;
        let populated = zoneinfo.zones.iter().filter(|zone| zone.populated.is_some() && zone.managed > 0);
        let mut zones: Vec<ZoneDef> = populated.map(|zone| zone_of(zone, &pagetypes.nodes)).collect();
        map_anon(&mut zones, &zoneinfo.zones);
        zones.sort_by_key(|zone| zone.start_pfn);
        let cpus = zones.iter().map(|zone| zone.pcp.len()).max().unwrap_or(1) as u32;
        let known = |(name, value): &(String, String)| Tunables::default().set(name, value).is_ok();
        let sysctls = self.sysctls.into_iter().filter(known).collect();
        Ok(MachineState {
            name: self.name,
            description: self.description,
            cpus,
            workload_group: self.workload_group,
            bare_boot: self.bare_boot,
            uptime_s: self.uptime_s,
            zones,
            sysctls,
        })
    }
}

/// Says how many pages of `anon` processes map, which the kernel counts by node: what is mapped and evictable, whatever is
/// left of the page cache at that moment being counted in. It is told of the node's zones in their order.
fn map_anon(zones: &mut [ZoneDef], sections: &[ZoneSection]) {
    let nodes: BTreeSet<u32> = zones.iter().map(|zone| zone.node).collect();
    for node in nodes {
        let of_node = sections.iter().filter(|section| section.node == node);
        let counters = of_node.flat_map(|s| s.node_stats.iter().chain(s.populated.as_ref().map(|zone| &zone.stats)));
        let counters: Vec<&Counters> = counters.collect();
        let sum = |name: &str| counters.iter().filter_map(|counters| counters.get(name)).sum::<u64>();
        let mut left = (sum("nr_anon_pages") + sum("nr_mapped")).saturating_sub(sum("nr_mlock"));
        for zone in zones.iter_mut().filter(|zone| zone.node == node) {
            zone.mapped = left.min(zone.anon.iter().sum());
            left -= zone.mapped;
        }
    }
}

fn zone_of(zone: &ZoneSection, nodes: &[PagetypeNode]) -> ZoneDef {
    let populated = zone.populated.as_ref().expect("asked before");
    // Until 4.7 a zone has these counters by the names that are a node's since.
    let stat = |list: &str| {
        let names = [format!("nr_zone_{list}"), format!("nr_{list}")];
        names.iter().find_map(|name| populated.stats.get(name)).unwrap_or(0)
    };
    let pcp = populated.pagesets.iter().map(|set| PcpDef { count: set.count, high: set.high });
    let mut def = ZoneDef {
        node: zone.node,
        name: zone.zone.clone(),
        start_pfn: populated.start_pfn,
        spanned: zone.spanned,
        present: zone.present,
        managed: zone.managed,
        protection: zone.protection.first_chunk().copied(),
        watermarks: Some([zone.min, zone.low, zone.high].map(|pages| pages.saturating_sub(zone.boost.unwrap_or(0)))),
        batch: populated.pagesets.first().map(|set| set.batch),
        anon: [stat("inactive_anon"), stat("active_anon")],
        unevictable: stat("unevictable"),
        pcp: pcp.collect(),
        ..ZoneDef::default()
    };
    for node in nodes {
        let here = |node: u32, name: &str| node == zone.node && name == zone.zone;
        for free in node.free.iter().filter(|free| here(free.node, &free.zone)) {
            if let Some(name) = mobility(&free.migratetype) {
                def.free.insert(name.to_string(), free.blocks.clone());
            }
        }
        for blocks in node.zones.iter().filter(|blocks| here(blocks.node, &blocks.zone)) {
            let named = node.migratetypes.iter().zip(&blocks.pageblocks);
            def.pageblocks = named.filter_map(|(name, n)| Some((mobility(name)?.to_string(), *n))).collect();
        }
    }
    // Until 3.7 there is no `managed`, and `present` leaves out a zone's memmap wherever it lies (`free_area_init_core()`).
    let seen = def.free_pages() + def.pcp.iter().map(|pcp| pcp.count).sum::<u64>() + def.anon.iter().sum::<u64>();
    def.managed = def.managed.max(seen);
    def.present = def.present.max(def.managed);
    def
}

/// What the twin calls a mobility of `/proc/pagetypeinfo`; it has none for CMA. Until 4.3 `MIGRATE_RESERVE` is in the place of HighAtomic.
fn mobility(shown: &str) -> Option<&'static str> {
    let name = if shown == "Reserve" { "HighAtomic" } else { shown };
    MIGRATE_TYPES.into_iter().find(|known| *known == name)
}

/// The settings in force in a guest whose run is kept in `run`: what it showed, and what was written.
pub(crate) fn settings(run: &Path, manifest: &Manifest) -> Vec<(String, String)> {
    let shown = |name: &str| fs::read_to_string(run.join("guest").join(name)).ok();
    let mut settings: Vec<_> =
        shown("sysctl").map(|text| parse_settings(&text)).unwrap_or_default().into_iter().collect();
    settings.extend(huge_page_settings(["thp_enabled", "thp_defrag"].map(|file| shown(file).unwrap_or_default())));
    settings.extend(manifest.sysctls.iter().map(|(name, value)| (name.clone(), value.clone())));
    settings
}

/// The huge page settings by what their files show, `enabled` first; an empty text is of a kernel that does not have it.
pub(crate) fn huge_page_settings(shown: [String; 2]) -> impl Iterator<Item = (String, String)> {
    let chosen = |(name, text): (&str, String)| Some((name.to_string(), chosen_word(&text)?.to_string()));
    ["thp.enabled", "thp.defrag"].into_iter().zip(shown).filter_map(chosen)
}

#[cfg(test)]
mod tests {
    use observe::{PagetypeFree, PopulatedZone};

    use super::*;

    #[test]
    fn what_processes_of_a_node_map_is_told_of_its_zones_in_order() {
        let counters = |values: &[(&str, u64)]| {
            let mut counters = Counters::default();
            values.iter().for_each(|(name, value)| counters.set(name, *value));
            counters
        };
        let section = |node, node_stats: Option<&[(&str, u64)]>, locked| ZoneSection {
            node,
            node_stats: node_stats.map(counters),
            populated: Some(PopulatedZone { stats: counters(&[("nr_mlock", locked)]), ..PopulatedZone::default() }),
            ..ZoneSection::default()
        };
        let sections = [
            section(0, Some(&[("nr_anon_pages", 90), ("nr_mapped", 60)]), 10),
            section(0, None, 20),
            section(1, Some(&[("nr_anon_pages", 7)]), 9),
        ];
        let zone = |node, anon| ZoneDef { node, anon, ..ZoneDef::default() };
        let mut zones = [zone(0, [60, 10]), zone(1, [5, 5]), zone(0, [100, 0])];
        map_anon(&mut zones, &sections);
        // 90 + 60 less 30 that are locked: 70 and the other 50; of node 1 more is locked than mapped.
        assert_eq!(zones.map(|zone| zone.mapped), [70, 0, 50]);
    }

    #[test]
    fn a_zone_of_3_1_has_its_reserve_and_all_that_is_free() {
        let zone = |pages| ZoneSection {
            zone: "DMA".to_string(),
            spanned: 4080,
            present: pages,
            managed: pages,
            populated: Some(PopulatedZone::default()),
            ..ZoneSection::default()
        };
        let free = |migratetype: &str, whole| PagetypeFree {
            node: 0,
            zone: "DMA".to_string(),
            migratetype: migratetype.to_string(),
            blocks: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, whole, 0],
        };
        let node = PagetypeNode { free: vec![free("Movable", 7), free("Reserve", 1)], ..PagetypeNode::default() };
        let def = zone_of(&zone(3914), std::slice::from_ref(&node));
        assert_eq!((def.free["HighAtomic"][9], def.free.len()), (1, 2));
        assert_eq!((def.managed, def.present), (4096, 4096), "eight whole pageblocks are free");
        assert_eq!(zone_of(&zone(4100), std::slice::from_ref(&node)).managed, 4100);
        assert_eq!(["CMA", "Isolate"].map(mobility), [None, Some("Isolate")]);
    }
}
