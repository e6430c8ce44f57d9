//! Tracepoints: the kernel's names and fields, so that one reader reads both worlds.
//!
//! Source: include/trace/events/kmem.h, 6.12; vmscan's and compaction's by kernel, see layout.rs. Abstracted: `page=` is the address that the page's
//! `struct page` has in x86-64's vmemmap without randomisation (the kernel prints a hash of it), so it is derived from the
//! pfn and not read; `pfn=` of mm_page_alloc_extfrag is written in decimal, as kernels printed it before hexadecimal came
//! and as mmtests' monitor requires. Both forms are read.

use std::fmt;

use indexmap::IndexMap;
use units::{Order, Pfn};

use crate::{KernelEvent, compaction, vmscan};

/// Start of x86-64's vmemmap with 4-level page tables, and the size of a `struct page`, in bytes.
const VMEMMAP_BASE: u64 = 0xffff_ea00_0000_0000;
const STRUCT_PAGE_BYTES: u64 = 64;

const EXTFRAG: &str = "mm_page_alloc_extfrag";

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
    /// One of vmscan or compaction, as its kernel prints it.
    OfKernel(KernelEvent),
}

impl TraceEvent {
    /// The tracepoint's name.
    pub fn name(&self) -> &'static str {
        match self {
            TraceEvent::MmPageAllocExtfrag { .. } => EXTFRAG,
            TraceEvent::OfKernel(event) => event.name(),
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
        if name == EXTFRAG {
            return Fields::of(text).extfrag().map(Some);
        }
        KernelEvent::parse(name, text).transpose().map(|event| event.map(TraceEvent::OfKernel))
    }
}

/// The tracepoints of a group that are read, of whichever kernel, as `system/event`; none of a group that is not known.
pub fn tracepoints(system: &str) -> Vec<String> {
    let mut names: Vec<&str> = match system {
        "kmem" => vec![EXTFRAG],
        "vmscan" => vmscan::LAYOUTS.iter().map(|layout| layout.name).collect(),
        "compaction" => compaction::LAYOUTS.iter().map(|layout| layout.name).collect(),
        _ => Vec::new(),
    };
    names.dedup();
    names.into_iter().map(|name| format!("{system}/{name}")).collect()
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
            TraceEvent::OfKernel(ref event) => write!(f, "{event}"),
        }
    }
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

    fn pfn(&self, key: &'static str) -> Result<Pfn, &'static str> {
        self.number(key).map(Pfn)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tracepoint_of_a_group_is_named_once_and_read() {
        for (system, some) in
            [("kmem", "mm_page_alloc_extfrag"), ("vmscan", "mm_shrink_slab_end"), ("compaction", "mm_compaction_end")]
        {
            let mut names = tracepoints(system);
            assert!(names.contains(&format!("{system}/{some}")), "{names:?}");
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{names:?}");
            let known = |name: &String| {
                let (_, event) = name.split_once('/').expect("a system before it");
                !matches!(TraceEvent::parse(event, ""), Ok(None))
            };
            assert!(names.iter().all(known), "{names:?}");
        }
        assert_eq!(tracepoints("block"), [""; 0]);
    }
}
