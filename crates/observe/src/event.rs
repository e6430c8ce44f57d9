//! Tracepoints: the kernel's names and fields, so that one reader reads both worlds.
//!
//! Source: include/trace/events/{kmem,compaction}.h, 6.12; vmscan's by kernel, see vmscan.rs. Abstracted: `page=` is the address that the page's
//! `struct page` has in x86-64's vmemmap without randomisation (the kernel prints a hash of it), so it is derived from the
//! pfn and not read; `pfn=` of mm_page_alloc_extfrag is written in decimal, as kernels printed it before hexadecimal came
//! and as mmtests' monitor requires. Both forms are read.

use std::fmt;

use indexmap::IndexMap;
use units::{NodeId, Order, Pfn};

use crate::VmscanEvent;

/// Start of x86-64's vmemmap with 4-level page tables, and the size of a `struct page`, in bytes.
const VMEMMAP_BASE: u64 = 0xffff_ea00_0000_0000;
const STRUCT_PAGE_BYTES: u64 = 64;

/// How a compaction ended (`COMPACTION_STATUS`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactionResult {
    /// Not tried.
    Skipped,
    /// Put off after failures.
    Deferred,
    /// To be continued with the next pageblock.
    Continue,
    /// A page of the order is free.
    Success,
    /// The scanners met without having seen the whole zone.
    PartialSkipped,
    /// The scanners met.
    Complete,
    /// The free pages do not suit.
    NoSuitablePage,
    /// The zone does not suit.
    NotSuitableZone,
    /// Gave way to a lock or to other tasks.
    Contended,
}

const RESULTS: [(CompactionResult, &str); 9] = [
    (CompactionResult::Skipped, "skipped"),
    (CompactionResult::Deferred, "deferred"),
    (CompactionResult::Continue, "continue"),
    (CompactionResult::Success, "success"),
    (CompactionResult::PartialSkipped, "partial_skipped"),
    (CompactionResult::Complete, "complete"),
    (CompactionResult::NoSuitablePage, "no_suitable_page"),
    (CompactionResult::NotSuitableZone, "not_suitable_zone"),
    (CompactionResult::Contended, "contended"),
];

impl CompactionResult {
    /// The result that tracepoints print so.
    pub fn named(name: &str) -> Option<CompactionResult> {
        RESULTS.iter().find(|(_, known)| *known == name).map(|(result, _)| *result)
    }
}

/// A zone type of x86-64 as `classzone_idx` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceZone {
    /// ZONE_DMA.
    Dma,
    /// ZONE_DMA32.
    Dma32,
    /// ZONE_NORMAL.
    Normal,
    /// ZONE_MOVABLE.
    Movable,
}

const ZONES: [(TraceZone, &str); 4] = [
    (TraceZone::Dma, "DMA"),
    (TraceZone::Dma32, "DMA32"),
    (TraceZone::Normal, "Normal"),
    (TraceZone::Movable, "Movable"),
];

/// One occurrence of a tracepoint.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "names and fields are the kernel's")]
pub enum TraceEvent {
    /// A free block of another mobility was used. `fragmenting` (fallback_order < pageblock_order) is derived.
    MmPageAllocExtfrag {
        pfn: Pfn,
        alloc_order: Order,
        fallback_order: Order,
        pageblock_order: Order,
        alloc_migratetype: u8,
        fallback_migratetype: u8,
        change_ownership: bool,
    },
    /// One of vmscan's, as its kernel prints it.
    Vmscan(VmscanEvent),
    MmCompactionBegin {
        zone_start: Pfn,
        migrate_pfn: Pfn,
        free_pfn: Pfn,
        zone_end: Pfn,
        sync: bool,
    },
    MmCompactionEnd {
        zone_start: Pfn,
        migrate_pfn: Pfn,
        free_pfn: Pfn,
        zone_end: Pfn,
        sync: bool,
        status: CompactionResult,
    },
    MmCompactionKcompactdWake {
        nid: NodeId,
        order: i32,
        classzone: TraceZone,
    },
    MmCompactionKcompactdSleep {
        nid: NodeId,
    },
    MmCompactionWakeupKcompactd {
        nid: NodeId,
        order: i32,
        classzone: TraceZone,
    },
}

impl TraceEvent {
    /// The tracepoint's name.
    pub fn name(&self) -> &'static str {
        match self {
            TraceEvent::MmPageAllocExtfrag { .. } => "mm_page_alloc_extfrag",
            TraceEvent::Vmscan(event) => event.name(),
            TraceEvent::MmCompactionBegin { .. } => "mm_compaction_begin",
            TraceEvent::MmCompactionEnd { .. } => "mm_compaction_end",
            TraceEvent::MmCompactionKcompactdWake { .. } => "mm_compaction_kcompactd_wake",
            TraceEvent::MmCompactionKcompactdSleep { .. } => "mm_compaction_kcompactd_sleep",
            TraceEvent::MmCompactionWakeupKcompactd { .. } => "mm_compaction_wakeup_kcompactd",
        }
    }

    /// Whether a fallback took less than a pageblock, so that mobilities mix in it; only of mm_page_alloc_extfrag.
    pub fn fragmenting(&self) -> bool {
        matches!(self, TraceEvent::MmPageAllocExtfrag { fallback_order, pageblock_order, .. }
            if fallback_order.0 < pageblock_order.0)
    }

    /// Reads the text after the event's name. `Ok(None)`: a tracepoint that is not known here. `Err`: the field that is
    /// missing or wrong.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Option<TraceEvent>, &'static str> {
        if let Some(event) = VmscanEvent::parse(name, text) {
            return event.map(|event| Some(TraceEvent::Vmscan(event)));
        }
        let fields = Fields::of(text);
        Ok(Some(match name {
            "mm_page_alloc_extfrag" => fields.extfrag()?,
            "mm_compaction_begin" => fields.compaction_begin()?,
            "mm_compaction_end" => fields.compaction_end()?,
            "mm_compaction_kcompactd_wake" => TraceEvent::MmCompactionKcompactdWake {
                nid: fields.nid()?,
                order: fields.number("order")?,
                classzone: fields.classzone()?,
            },
            "mm_compaction_kcompactd_sleep" => TraceEvent::MmCompactionKcompactdSleep { nid: fields.nid()? },
            "mm_compaction_wakeup_kcompactd" => TraceEvent::MmCompactionWakeupKcompactd {
                nid: fields.nid()?,
                order: fields.number("order")?,
                classzone: fields.classzone()?,
            },
            _ => return Ok(None),
        }))
    }
}

/// The fields, as the kernel's `TP_printk` prints them.
impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TraceEvent::MmPageAllocExtfrag {
                pfn,
                alloc_order,
                fallback_order,
                pageblock_order,
                alloc_migratetype,
                fallback_migratetype,
                change_ownership,
            } => {
                let page = VMEMMAP_BASE + u64::from(pfn.0) * STRUCT_PAGE_BYTES;
                write!(f, "page={page:016x} pfn={} alloc_order={} ", pfn.0, alloc_order.0)?;
                write!(f, "fallback_order={} pageblock_order={} ", fallback_order.0, pageblock_order.0)?;
                write!(f, "alloc_migratetype={alloc_migratetype} ")?;
                write!(f, "fallback_migratetype={fallback_migratetype} ")?;
                let (fragmenting, change) = (u8::from(self.fragmenting()), u8::from(change_ownership));
                write!(f, "fragmenting={fragmenting} change_ownership={change}")
            }
            TraceEvent::Vmscan(ref event) => write!(f, "{event}"),
            TraceEvent::MmCompactionKcompactdSleep { nid } => write!(f, "nid={}", nid.0),
            TraceEvent::MmCompactionBegin { zone_start, migrate_pfn, free_pfn, zone_end, sync } => {
                write_scanners(f, [zone_start, migrate_pfn, free_pfn, zone_end], sync)
            }
            TraceEvent::MmCompactionEnd { zone_start, migrate_pfn, free_pfn, zone_end, sync, status } => {
                write_scanners(f, [zone_start, migrate_pfn, free_pfn, zone_end], sync)?;
                write!(f, " status={}", name_of(&RESULTS, status))
            }
            TraceEvent::MmCompactionKcompactdWake { nid, order, classzone }
            | TraceEvent::MmCompactionWakeupKcompactd { nid, order, classzone } => {
                let zone = name_of(&ZONES, classzone);
                write!(f, "nid={} order={order} classzone_idx={zone:<8}", nid.0)
            }
        }
    }
}

fn write_scanners(f: &mut fmt::Formatter<'_>, pfns: [Pfn; 4], sync: bool) -> fmt::Result {
    let [start, migrate, free, end] = pfns.map(|pfn| pfn.0);
    let mode = if sync { "sync" } else { "async" };
    write!(f, "zone_start={start:#x} migrate_pfn={migrate:#x} free_pfn={free:#x} zone_end={end:#x}, ")?;
    write!(f, "mode={mode}")
}

fn name_of<T: Copy + PartialEq>(table: &[(T, &'static str)], value: T) -> &'static str {
    table.iter().find(|(known, _)| *known == value).map_or("", |(_, name)| name)
}

/// `key=value` pairs of an event.
struct Fields<'a>(IndexMap<&'a str, &'a str>);

impl<'a> Fields<'a> {
    fn of(text: &'a str) -> Fields<'a> {
        let pairs = text.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
        Fields(pairs.map(|(key, value)| (key, value.trim_end_matches(','))).collect())
    }

    fn text(&self, key: &'static str) -> Result<&'a str, &'static str> {
        self.0.get(key).copied().ok_or(key)
    }

    /// A decimal number, or a hexadecimal one after `0x`.
    fn number<T: TryFrom<i64>>(&self, key: &'static str) -> Result<T, &'static str> {
        let text = self.text(key)?;
        let value = match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => text.parse(),
        };
        T::try_from(value.map_err(|_| key)?).map_err(|_| key)
    }

    fn order(&self, key: &'static str) -> Result<Order, &'static str> {
        self.number(key).map(Order)
    }

    fn nid(&self) -> Result<NodeId, &'static str> {
        self.number("nid").map(NodeId)
    }

    fn pfn(&self, key: &'static str) -> Result<Pfn, &'static str> {
        self.number(key).map(Pfn)
    }

    fn named<T: Copy>(&self, key: &'static str, table: &[(T, &str)]) -> Result<T, &'static str> {
        let text = self.text(key)?;
        table.iter().find(|(_, name)| *name == text).map(|(value, _)| *value).ok_or(key)
    }

    fn classzone(&self) -> Result<TraceZone, &'static str> {
        self.named("classzone_idx", &ZONES)
    }

    fn sync(&self) -> Result<bool, &'static str> {
        self.named("mode", &[(true, "sync"), (false, "async")])
    }

    fn extfrag(&self) -> Result<TraceEvent, &'static str> {
        Ok(TraceEvent::MmPageAllocExtfrag {
            pfn: self.pfn("pfn")?,
            alloc_order: self.order("alloc_order")?,
            fallback_order: self.order("fallback_order")?,
            pageblock_order: self.order("pageblock_order")?,
            alloc_migratetype: self.number("alloc_migratetype")?,
            fallback_migratetype: self.number("fallback_migratetype")?,
            change_ownership: self.number::<u8>("change_ownership")? != 0,
        })
    }

    fn compaction_begin(&self) -> Result<TraceEvent, &'static str> {
        Ok(TraceEvent::MmCompactionBegin {
            zone_start: self.pfn("zone_start")?,
            migrate_pfn: self.pfn("migrate_pfn")?,
            free_pfn: self.pfn("free_pfn")?,
            zone_end: self.pfn("zone_end")?,
            sync: self.sync()?,
        })
    }

    fn compaction_end(&self) -> Result<TraceEvent, &'static str> {
        Ok(TraceEvent::MmCompactionEnd {
            zone_start: self.pfn("zone_start")?,
            migrate_pfn: self.pfn("migrate_pfn")?,
            free_pfn: self.pfn("free_pfn")?,
            zone_end: self.pfn("zone_end")?,
            sync: self.sync()?,
            status: self.named("status", &RESULTS)?,
        })
    }
}
