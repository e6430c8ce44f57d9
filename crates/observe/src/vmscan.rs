//! Tracepoints of vmscan, whose fields differ between kernels.
//!
//! What a kernel prints is data: [`LAYOUTS`] has the text of each tracepoint, and which kernels print it so. A word in braces stands
//! for a field, a decimal number unless `:s` says that it is text. Reading tries the layouts of a name, newest first.
//! Source: the `TP_printk` of include/trace/events/vmscan.h, 2.6.39, 3.1, 3.19, 4.4, 5.0, 6.1, 6.12.

use std::borrow::Cow;
use std::fmt;

use rules::VmscanEvents;

/// The text of a tracepoint since a kernel, until the next of its name.
struct Layout {
    name: &'static str,
    since: VmscanEvents,
    text: &'static str,
}

const fn layout(name: &'static str, since: VmscanEvents, text: &'static str) -> Layout {
    Layout { name, since, text }
}

/// Those of a name oldest first.
#[rustfmt::skip]
const LAYOUTS: [Layout; 28] = {
    use VmscanEvents::{ActivatedByKind, Batches, Contiguous, Generations, Kinds, Shrinkers};
    [
        layout("mm_vmscan_kswapd_sleep", Contiguous, "nid={nid}"),
        layout("mm_vmscan_kswapd_wake", Contiguous, "nid={nid} order={order}"),
        layout("mm_vmscan_kswapd_wake", Batches, "nid={nid} zid={zid} order={order}"),
        layout("mm_vmscan_kswapd_wake", ActivatedByKind, "nid={nid} order={order}"),
        layout("mm_vmscan_wakeup_kswapd", Contiguous, "nid={nid} zid={zid} order={order}"),
        layout("mm_vmscan_wakeup_kswapd", Batches, "nid={nid} zid={zid} order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_wakeup_kswapd", ActivatedByKind, "nid={nid} order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_direct_reclaim_begin", Contiguous, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_direct_reclaim_begin", Batches, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s} classzone_idx={classzone_idx}"),
        layout("mm_vmscan_direct_reclaim_begin", ActivatedByKind, "order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_direct_reclaim_end", Contiguous, "nr_reclaimed={nr_reclaimed}"),
        layout("mm_vmscan_memcg_reclaim_begin", Contiguous, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_memcg_reclaim_begin", Batches, "order={order} may_writepage={may_writepage} gfp_flags={gfp_flags:s} classzone_idx={classzone_idx}"),
        layout("mm_vmscan_memcg_reclaim_begin", ActivatedByKind, "order={order} gfp_flags={gfp_flags:s}"),
        layout("mm_vmscan_memcg_reclaim_end", Contiguous, "nr_reclaimed={nr_reclaimed}"),
        layout("mm_vmscan_lru_isolate", Contiguous, "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_taken={nr_taken} contig_taken={contig_taken} contig_dirty={contig_dirty} contig_failed={contig_failed}"),
        layout("mm_vmscan_lru_isolate", Kinds, "isolate_mode={isolate_mode} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_taken={nr_taken} file={file}"),
        layout("mm_vmscan_lru_isolate", Batches, "isolate_mode={isolate_mode} classzone={classzone} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_skipped={nr_skipped} nr_taken={nr_taken} lru={lru:s}"),
        layout("mm_vmscan_lru_isolate", Generations, "classzone={classzone} order={order} nr_requested={nr_requested} nr_scanned={nr_scanned} nr_skipped={nr_skipped} nr_taken={nr_taken} lru={lru:s}"),
        layout("mm_vmscan_lru_shrink_inactive", Contiguous, "nid={nid} zid={zid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} priority={priority} flags={flags:s}"),
        layout("mm_vmscan_lru_shrink_inactive", Batches, "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} nr_activate={nr_activate} nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail} priority={priority} flags={flags:s}"),
        layout("mm_vmscan_lru_shrink_inactive", ActivatedByKind, "nid={nid} nr_scanned={nr_scanned} nr_reclaimed={nr_reclaimed} nr_dirty={nr_dirty} nr_writeback={nr_writeback} nr_congested={nr_congested} nr_immediate={nr_immediate} nr_activate_anon={nr_activate_anon} nr_activate_file={nr_activate_file} nr_ref_keep={nr_ref_keep} nr_unmap_fail={nr_unmap_fail} priority={priority} flags={flags:s}"),
        layout("mm_vmscan_lru_shrink_active", Batches, "nid={nid} nr_taken={nr_taken} nr_active={nr_active} nr_deactivated={nr_deactivated} nr_referenced={nr_referenced} priority={priority} flags={flags:s}"),
        layout("mm_shrink_slab_start", Shrinkers, "{shrink:s} {shr:s}: objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags:s} pgs_scanned {pgs_scanned} lru_pgs {lru_pgs} cache items {cache_items} delta {delta} total_scan {total_scan}"),
        layout("mm_shrink_slab_start", Kinds, "{shrink:s} {shr:s}: nid: {nid} objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags:s} pgs_scanned {pgs_scanned} lru_pgs {lru_pgs} cache items {cache_items} delta {delta} total_scan {total_scan}"),
        layout("mm_shrink_slab_start", Batches, "{shrink:s} {shr:s}: nid: {nid} objects to shrink {nr_objects_to_shrink} gfp_flags {gfp_flags:s} cache items {cache_items} delta {delta} total_scan {total_scan} priority {priority}"),
        layout("mm_shrink_slab_end", Shrinkers, "{shrink:s} {shr:s}: unused scan count {unused_scan} new scan count {new_scan} total_scan {total_scan} last shrinker return val {retval}"),
        layout("mm_shrink_slab_end", Kinds, "{shrink:s} {shr:s}: nid: {nid} unused scan count {unused_scan} new scan count {new_scan} total_scan {total_scan} last shrinker return val {retval}"),
    ]
};

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldValue {
    /// A number.
    Number(i64),
    /// Names of flags, a list or a function.
    Text(Cow<'static, str>),
}

impl From<i64> for FieldValue {
    fn from(number: i64) -> FieldValue {
        FieldValue::Number(number)
    }
}

impl From<&'static str> for FieldValue {
    fn from(text: &'static str) -> FieldValue {
        FieldValue::Text(Cow::Borrowed(text))
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> FieldValue {
        FieldValue::Text(Cow::Owned(text))
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldValue::Number(number) => write!(f, "{number}"),
            FieldValue::Text(text) => f.write_str(text),
        }
    }
}

/// One occurrence of a tracepoint of vmscan, with the fields that its kernel prints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VmscanEvent {
    name: &'static str,
    text: &'static str,
    values: Vec<FieldValue>,
}

impl VmscanEvent {
    /// The event as a kernel with these tracepoints prints it, of all fields that any prints. `None`: it has no such tracepoint.
    ///
    /// # Panics
    /// If a field is missing that the kernel prints.
    pub fn new(events: VmscanEvents, name: &str, field: impl Fn(&str) -> Option<FieldValue>) -> Option<VmscanEvent> {
        let of_kernel = |l: &&Layout| l.name == name && l.since as u8 <= events as u8;
        let layout = LAYOUTS.iter().rfind(of_kernel)?;
        let value = |part: Part| field(part.key).unwrap_or_else(|| panic!("{name} has a field {}", part.key));
        Some(VmscanEvent { name: layout.name, text: layout.text, values: parts(layout.text).map(value).collect() })
    }

    /// The tracepoint's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A field that is a number, if this kernel prints it.
    pub fn number(&self, key: &str) -> Option<i64> {
        match self.field(key)? {
            FieldValue::Number(number) => Some(*number),
            FieldValue::Text(_) => None,
        }
    }

    /// A field, if this kernel prints it.
    pub fn field(&self, key: &str) -> Option<&FieldValue> {
        parts(self.text).zip(&self.values).find(|(part, _)| part.key == key).map(|(_, value)| value)
    }

    /// Reads the text after the name. `None`: no kernel has such a tracepoint. `Err`: the first field that is missing or wrong,
    /// by the newest layout.
    pub(crate) fn parse(name: &str, text: &str) -> Option<Result<VmscanEvent, &'static str>> {
        let mut tried = LAYOUTS.iter().rev().filter(|layout| layout.name == name).map(|layout| {
            let values = values(layout.text, text.trim_end())?;
            Ok(VmscanEvent { name: layout.name, text: layout.text, values })
        });
        let newest = tried.next()?;
        Some(if newest.is_ok() { newest } else { tried.find(Result::is_ok).unwrap_or(newest) })
    }
}

impl fmt::Display for VmscanEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parts(self.text).zip(&self.values).try_for_each(|(part, value)| write!(f, "{}{value}", part.before))
    }
}

/// A field of a layout, and the text before it; every layout ends with a field.
struct Part {
    before: &'static str,
    key: &'static str,
    is_text: bool,
}

fn parts(layout: &'static str) -> impl Iterator<Item = Part> {
    layout.split_inclusive('}').map(|part| {
        let (before, key) = part.trim_end_matches('}').split_once('{').expect("a layout ends with a field");
        let (key, is_text) = key.strip_suffix(":s").map_or((key, false), |key| (key, true));
        Part { before, key, is_text }
    })
}

/// The fields of a text, which end where the next part begins.
fn values(layout: &'static str, mut text: &str) -> Result<Vec<FieldValue>, &'static str> {
    let mut parts = parts(layout).peekable();
    let mut values = Vec::new();
    while let Some(part) = parts.next() {
        text = text.strip_prefix(part.before).ok_or(part.key)?;
        let end = parts.peek().map_or(Ok(text.len()), |next| text.find(next.before).ok_or(next.key))?;
        let (value, rest) = text.split_at(end);
        text = rest;
        values.push(if part.is_text {
            FieldValue::from(value.to_owned())
        } else {
            FieldValue::from(value.parse::<i64>().map_err(|_| part.key)?)
        });
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const KERNELS: [VmscanEvents; 6] = [
        VmscanEvents::Contiguous,
        VmscanEvents::Shrinkers,
        VmscanEvents::Kinds,
        VmscanEvents::Batches,
        VmscanEvents::ActivatedByKind,
        VmscanEvents::Generations,
    ];

    /// A value that says which field of the layout it is.
    fn value(layout: &'static str, key: &str) -> Option<FieldValue> {
        let (nth, part) = parts(layout).enumerate().find(|(_, part)| part.key == key)?;
        Some(if part.is_text { format!("{key}|{nth}").into() } else { (nth as i64 - 3).into() })
    }

    fn of(kernel: VmscanEvents, name: &str) -> Option<VmscanEvent> {
        let any = |key: &str| LAYOUTS.iter().filter(|l| l.name == name).find_map(|l| value(l.text, key));
        VmscanEvent::new(kernel, name, any)
    }

    fn names() -> impl Iterator<Item = &'static str> {
        LAYOUTS.iter().map(|layout| layout.name)
    }

    #[test]
    fn layouts_of_a_name_follow_each_other_from_the_oldest_to_the_newest_and_differ() {
        let mut last: BTreeMap<&str, &Layout> = BTreeMap::new();
        for layout in &LAYOUTS {
            assert!(layout.text.ends_with('}'), "{}", layout.text);
            if let Some(before) = last.insert(layout.name, layout) {
                assert!((before.since as u8) < layout.since as u8, "{}", layout.name);
                assert_ne!(before.text, layout.text, "{}", layout.name);
            }
        }
    }

    #[test]
    fn every_event_of_every_kernel_comes_back() {
        for kernel in KERNELS {
            for event in names().filter_map(|name| of(kernel, name)) {
                let read = VmscanEvent::parse(event.name(), &event.to_string());
                assert_eq!(read, Some(Ok(event)), "{kernel:?}");
            }
        }
    }

    #[test]
    fn a_kernel_has_the_tracepoints_that_came_before_it() {
        let has = |kernel, name| of(kernel, name).is_some();
        assert!(!has(VmscanEvents::Contiguous, "mm_shrink_slab_start"));
        assert!(has(VmscanEvents::Shrinkers, "mm_shrink_slab_start"));
        assert!(!has(VmscanEvents::Kinds, "mm_vmscan_lru_shrink_active"));
        assert!(has(VmscanEvents::Batches, "mm_vmscan_lru_shrink_active"));
        assert!(KERNELS.into_iter().all(|kernel| has(kernel, "mm_vmscan_lru_shrink_inactive")));
        assert!(!has(VmscanEvents::Generations, "mm_page_alloc_extfrag"));
    }

    /// The fields that a kernel prints, in order.
    fn keys(kernel: VmscanEvents, name: &str) -> Vec<&'static str> {
        of(kernel, name).map_or(Vec::new(), |event| parts(event.text).map(|part| part.key).collect())
    }

    #[test]
    fn a_batch_of_a_node_says_more_than_that_of_a_zone_and_later_what_was_activated_by_kind() {
        let name = "mm_vmscan_lru_shrink_inactive";
        let old = ["nid", "zid", "nr_scanned", "nr_reclaimed", "priority", "flags"];
        assert_eq!(keys(VmscanEvents::Kinds, name), old);
        let met = ["nr_dirty", "nr_writeback", "nr_congested", "nr_immediate"];
        let rest = ["nr_ref_keep", "nr_unmap_fail", "priority", "flags"];
        let with =
            |activated: &[&'static str]| [&["nid", "nr_scanned", "nr_reclaimed"], &met[..], activated, &rest].concat();
        assert_eq!(keys(VmscanEvents::Batches, name), with(&["nr_activate"]));
        for kernel in [VmscanEvents::ActivatedByKind, VmscanEvents::Generations] {
            assert_eq!(keys(kernel, name), with(&["nr_activate_anon", "nr_activate_file"]));
        }
    }

    #[test]
    fn lines_of_real_kernels_are_read() {
        // The columns of 4.4, 5.0 and 6.12; the names of functions as trace_pipe and as trace-cmd have them.
        for (name, text, key, number) in [
            ("mm_vmscan_kswapd_wake", "nid=0 zid=3 order=9", "zid", 3),
            ("mm_vmscan_kswapd_wake", "nid=0 order=9", "order", 9),
            ("mm_vmscan_wakeup_kswapd", "nid=0 zid=2 order=0", "zid", 2),
            ("mm_vmscan_wakeup_kswapd", "nid=1 order=4 gfp_flags=GFP_KERNEL|__GFP_COMP", "nid", 1),
            ("mm_vmscan_direct_reclaim_begin", "order=2 may_writepage=1 gfp_flags=GFP_KERNEL", "may_writepage", 1),
            (
                "mm_vmscan_lru_isolate",
                "isolate_mode=2 order=0 nr_requested=32 nr_scanned=32 nr_taken=31 file=1",
                "nr_taken",
                31,
            ),
            (
                "mm_shrink_slab_start",
                "super_cache_scan+0x0/0x1b0 00000000b2fbc6c5: nid: 0 objects to shrink 12 gfp_flags GFP_KERNEL cache \
                 items 40960 delta 20 total_scan 22 priority 12 ",
                "cache_items",
                40960,
            ),
            (
                "mm_shrink_slab_end",
                "scan_shadow_nodes+0x0 ffff88003e5a9398: nid: 0 unused scan count 0 new scan count -3 total_scan -3 last \
                 shrinker return val 128",
                "new_scan",
                -3,
            ),
        ] {
            let event = VmscanEvent::parse(name, text).expect(name).expect(name);
            assert_eq!(event.number(key), Some(number), "{text}");
            assert_eq!(event.to_string(), text.trim_end());
        }
    }

    #[test]
    fn the_first_field_that_is_wrong_is_told_by_the_newest_layout() {
        let read = |text| VmscanEvent::parse("mm_vmscan_lru_isolate", text);
        assert_eq!(read("classzone=3 order=x"), Some(Err("nr_requested")));
        assert_eq!(read("classzone=3 order=x nr_requested=1"), Some(Err("order")));
        assert_eq!(read("order=1"), Some(Err("classzone")));
        assert_eq!(VmscanEvent::parse("mm_vmscan_throttled", "nid=0"), None);
    }
}
