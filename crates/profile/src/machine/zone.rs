//! Zones as they were at some moment, so that a run can start from there.
//!
//! Source: `/proc/zoneinfo` and `/proc/pagetypeinfo` of that moment.
//! Omitted: which frames are free and which are not; pages of the page cache, of which a machine that has just booted
//! into memory has next to none.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use units::PAGE_SIZE;

use super::Machine;
use crate::ProfileError;
use crate::text::{Text, typed};

/// Names of zones, lowest first, as in `/proc/zoneinfo`.
pub const ZONE_NAMES: [&str; 4] = ["DMA", "DMA32", "Normal", "Movable"];
/// Mobilities, as in `/proc/pagetypeinfo`.
pub const MIGRATE_TYPES: [&str; 5] = ["Unmovable", "Movable", "Reclaimable", "HighAtomic", "Isolate"];
/// Orders of free blocks, 0 to 10.
pub const ORDERS: usize = 11;
/// Pages of a pageblock on x86-64.
const PAGEBLOCK_PAGES: u64 = units::PAGEBLOCK_PAGES as u64;
/// `zone_batchsize()` gives 63 at most, `vm.percpu_pagelist_fraction` until 5.13 as many as `PAGE_SHIFT * 8` (`pageset_set_high()`).
const BATCH_MAX: u64 = 12 * 8;
/// Frames are numbered below this.
const PFN_END: u64 = 1 << 31;
/// Where the zones of x86-64 end that do (`MAX_DMA_PFN`, `MAX_DMA32_PFN`): 16 MiB and 4 GiB.
const ZONE_ENDS: [(&str, u64); 2] = [("DMA", 1 << 12), ("DMA32", 1 << 20)];

/// A zone and what was in it. Counts are of pages of 4 KiB unless they are of blocks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZoneDef {
    /// NUMA node.
    pub node: u32,
    /// One of [`ZONE_NAMES`].
    pub name: String,
    /// First frame.
    pub start_pfn: u64,
    /// Pages from the first to the last, holes included.
    pub spanned: u64,
    /// Pages that exist.
    pub present: u64,
    /// Pages given to the page allocator.
    pub managed: u64,
    /// Pages kept from requests that may use a higher zone, by that zone as in [`ZONE_NAMES`]; without them a share of what is managed
    /// above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<[u64; 4]>,
    /// Watermarks min, low and high, without a boost, as boot set them; without them, and if `[sysctls]` are overruled in what they
    /// follow from, what is managed gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermarks: Option<[u64; 3]>,
    /// Pages that go to or from a CPU's list at once; without it as with the watermarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Pages of the inactive and of the active list of anonymous memory, tmpfs included.
    #[serde(default)]
    pub anon: [u64; 2],
    /// How many of them processes map; the others are files of tmpfs that nobody reads.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mapped: u64,
    /// Pages locked in memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unevictable: u64,
    /// Pages that are taken from free memory before anything runs, and locked: memory of what watches the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub locked: u64,
    /// Pages on each CPU's list of free pages, and how many it may hold.
    #[serde(default)]
    pub pcp: Vec<PcpDef>,
    /// Pageblocks of each mobility; what is missing to the whole zone is Movable.
    #[serde(default)]
    pub pageblocks: IndexMap<String, u64>,
    /// Free blocks of each mobility by order, from 0.
    #[serde(default)]
    pub free: IndexMap<String, Vec<u64>>,
}

fn is_zero(pages: &u64) -> bool {
    *pages == 0
}

/// A CPU's list of free pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PcpDef {
    /// Pages on it.
    pub count: u64,
    /// Pages at which some go back.
    pub high: u64,
}

impl ZoneDef {
    /// Its place among the zones of a node, from the lowest.
    fn rank(&self) -> Option<usize> {
        ZONE_NAMES.iter().position(|name| *name == self.name)
    }

    /// Pages on the buddy lists.
    pub fn free_pages(&self) -> u64 {
        let pages = |blocks: &Vec<u64>| blocks.iter().enumerate().map(|(order, n)| n << order).sum::<u64>();
        self.free.values().map(pages).sum()
    }

    /// What is wrong with it: the key, and what was expected.
    fn fault(&self, nodes: usize) -> Option<(&'static str, String)> {
        if self.node as usize >= nodes {
            return Some(("node", format!("{}: expected a node from 0 to {}", self.node, nodes - 1)));
        }
        if !ZONE_NAMES.contains(&self.name.as_str()) {
            return Some(("name", format!("`{}`: expected one of {}", self.name, ZONE_NAMES.join(", "))));
        }
        if self.start_pfn >= PFN_END || self.spanned > PFN_END - self.start_pfn || self.spanned == 0 {
            return Some(("spanned", format!("expected frames below {PFN_END}, and one at least")));
        }
        let end = ZONE_ENDS.iter().find(|(name, _)| *name == self.name).map(|(_, end)| *end);
        if let Some(end) = end.filter(|end| self.start_pfn + self.spanned > *end) {
            let message =
                format!("{} frames from {}: expected {} to end at {end}", self.spanned, self.start_pfn, self.name);
            return Some(("spanned", message));
        }
        if !(self.managed <= self.present && self.present <= self.spanned) {
            return Some(("managed", "expected managed <= present <= spanned".to_string()));
        }
        if self.protection.is_some_and(|pages| pages.iter().any(|pages| *pages >= PFN_END)) {
            return Some(("protection", format!("expected pages below {PFN_END}")));
        }
        if self.watermarks.is_some_and(|marks| !marks.is_sorted() || marks[2] >= PFN_END) {
            return Some(("watermarks", format!("expected min, low and high in pages, ascending and below {PFN_END}")));
        }
        if self.batch.is_some_and(|pages| pages > BATCH_MAX) {
            return Some(("batch", format!("expected {BATCH_MAX} pages at most")));
        }
        let known = |name: &String| MIGRATE_TYPES.contains(&name.as_str());
        if let Some(name) = self.pageblocks.keys().chain(self.free.keys()).find(|name| !known(name)) {
            return Some(("free", format!("`{name}`: expected one of {}", MIGRATE_TYPES.join(", "))));
        }
        if self.free.values().any(|blocks| blocks.len() > ORDERS || blocks.iter().any(|n| *n >= PFN_END)) {
            return Some(("free", format!("expected {ORDERS} counts of blocks at most, one for each order")));
        }
        if self.locked > self.free_pages() {
            return Some((
                "locked",
                format!("{}: expected at most the {} pages that are free", self.locked, self.free_pages()),
            ));
        }
        let pcp: u64 = self.pcp.iter().map(|pcp| pcp.count.min(PFN_END)).sum();
        let anon: u64 = self.anon.iter().map(|pages| (*pages).min(PFN_END)).sum();
        if self.mapped > anon {
            return Some(("mapped", format!("{}: expected at most the {anon} pages of `anon`", self.mapped)));
        }
        let used = self.free_pages() + pcp + anon + self.unevictable.min(PFN_END);
        if used > self.managed {
            return Some((
                "free",
                format!("{used} pages free, on CPUs and anonymous: expected {} at most", self.managed),
            ));
        }
        None
    }
}

impl Machine {
    /// Tunables in force on this machine, as for `--set`.
    pub fn sysctls(&self) -> Vec<(String, String)> {
        self.sysctls.iter().map(|(name, value)| (name.get_ref().clone(), typed(value))).collect()
    }

    pub(super) fn check_zones(&self, text: &Text) -> Result<(), ProfileError> {
        let mut next = 0;
        for zone in &self.zones {
            let refused = |(key, message): (&str, String)| text.invalid(zone.span(), &format!("zone.{key}"), message);
            let def = zone.get_ref();
            if let Some(fault) = def.fault(self.nodes.len()) {
                return Err(refused(fault));
            }
            if def.start_pfn < next {
                let message = format!(
                    "{}: expected {next} or more: zones stand in the order of their frames and share no pageblock",
                    def.start_pfn
                );
                return Err(refused(("start-pfn", message)));
            }
            next = (def.start_pfn + def.spanned).next_multiple_of(PAGEBLOCK_PAGES);
        }
        if self.zones.is_empty() {
            return Ok(());
        }
        (0..self.nodes.len()).try_for_each(|node| self.check_zones_of(text, node))
    }

    /// A node has each zone once, lowest first, and they have its memory.
    fn check_zones_of(&self, text: &Text, node: usize) -> Result<(), ProfileError> {
        let here: Vec<&Spanned<ZoneDef>> =
            self.zones.iter().filter(|zone| zone.get_ref().node as usize == node).collect();
        if here.is_empty() {
            let message = format!("node {node} has no zone: expected one for every node, or none at all");
            return Err(text.invalid(self.zones[0].span(), "zone.node", message));
        }
        if let Some(pair) = here.windows(2).find(|pair| pair[0].get_ref().rank() >= pair[1].get_ref().rank()) {
            let [below, above] = [pair[0], pair[1]].map(|zone| &zone.get_ref().name);
            let message = format!(
                "{above} behind {below} on node {node}: expected each zone of a node once, in the order {}",
                ZONE_NAMES.join(", ")
            );
            return Err(text.invalid(pair[1].span(), "zone.name", message));
        }
        let sum = |pages: fn(&ZoneDef) -> u64| here.iter().map(|zone| pages(zone.get_ref())).sum::<u64>();
        let (present, spanned) = (sum(|zone| zone.present), sum(|zone| zone.spanned));
        let memory = &self.nodes[node].memory;
        let pages = memory.get_ref().0.pages_down().0;
        if !(present..=spanned.next_multiple_of(PAGEBLOCK_PAGES)).contains(&pages) {
            let message = format!(
                "{} of memory: expected that of node {node}'s zones, from the {present} pages that exist to the {spanned} from \
                 first to last",
                memory.get_ref()
            );
            return Err(text.invalid(memory.span(), "node.memory", message));
        }
        Ok(())
    }

    /// The zones of a node; none if the machine does not say.
    pub fn zones_of(&self, node: usize) -> impl Iterator<Item = &ZoneDef> {
        self.zones.iter().map(Spanned::get_ref).filter(move |zone| zone.node as usize == node)
    }

    /// This machine with the CPUs, zones and tunables of `state`.
    ///
    /// # Errors
    /// Such a machine cannot be.
    pub fn started_from(&self, state: &MachineState) -> Result<Machine, ProfileError> {
        let mut table: toml::Table = toml::from_str(&self.text).expect("it was read before");
        let nodes = state.zones.iter().map(|zone| zone.node + 1).max().unwrap_or(0);
        let memory = |node: u32| {
            let pages: u64 = state.zones.iter().filter(|zone| zone.node == node).map(|zone| zone.spanned).sum();
            let bytes = pages.next_multiple_of(PAGEBLOCK_PAGES) * PAGE_SIZE;
            toml::Value::Table([("memory".to_string(), toml::Value::from(bytes.cast_signed()))].into_iter().collect())
        };
        table.insert("name".into(), state.name.clone().into());
        table.insert("description".into(), state.description.clone().into());
        if let Some(uptime_s) = state.uptime_s {
            table.insert("uptime-s".into(), uptime_s.into());
        }
        if let Some(cpus) = table.get_mut("cpus").and_then(toml::Value::as_table_mut) {
            cpus.insert("count".into(), i64::from(state.cpus).into());
            cpus.insert("workload-group".into(), state.workload_group.into());
            cpus.insert("bare-boot".into(), state.bare_boot.into());
        }
        table.insert("node".into(), toml::Value::Array((0..nodes).map(memory).collect()));
        table.insert("zone".into(), toml::Value::try_from(&state.zones).expect("numbers and names"));
        let sysctls = state.sysctls.iter().map(|(name, value)| (name.clone(), toml::Value::from(value.clone())));
        table.insert("sysctls".into(), toml::Value::Table(sysctls.collect()));
        let content = toml::to_string(&table).expect("it was read as TOML");
        Machine::read(&Text { file: state.name.clone(), content })
    }
}

/// A machine at some moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MachineState {
    /// Name of the machine in that state.
    pub name: String,
    /// Where it was seen.
    pub description: String,
    /// CPUs.
    pub cpus: u32,
    /// Whether the workload ran in a group of its own for the scheduler.
    pub workload_group: bool,
    /// Whether it is a guest with no more than the workload needs.
    pub bare_boot: bool,
    /// Seconds since boot.
    pub uptime_s: Option<f64>,
    /// Zones, in the order of their frames.
    pub zones: Vec<ZoneDef>,
    /// Tunables in force, as for `--set`.
    pub sysctls: Vec<(String, String)>,
}
