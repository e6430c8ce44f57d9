//! `/proc/vmstat`: every counter of the model that the kernel of this era prints, in its order.

use mm::stat::{NodeStat, VmEvent, ZoneEvent, ZoneStat};
use mm::{Mm, ZoneKind};
use observe::Counters;
use rules::Era;

pub(crate) fn vmstat(mm: &Mm, era: Era) -> Counters {
    let mut counters = Counters::default();
    for item in ZoneStat::ALL {
        counters.set(item.name(), mm.stat.zone_sum(*item));
    }
    for item in NodeStat::ALL {
        counters.set(item.name(), mm.stat.node_sum(*item));
    }
    for event in VmEvent::ALL {
        counters.set(event.name(), mm.stat.event(*event));
    }
    for event in ZoneEvent::ALL {
        for kind in ZONE_KINDS {
            let name = format!("{}_{}", event.name(), kind.name().to_lowercase());
            counters.set(&name, mm.stat.zone_event(*event, kind));
        }
    }
    let limits = mm.global_dirty_limits();
    counters.set("nr_dirty_threshold", limits.dirty);
    counters.set("nr_dirty_background_threshold", limits.background);
    if era != Era::V6_12 {
        // Only files' refaults and activations are counted, without a suffix.
        for name in ["workingset_refault", "workingset_activate", "workingset_restore"] {
            let files = counters.get(&format!("{name}_file")).unwrap_or(0);
            counters.set(name, files);
        }
    }
    if era == Era::V3_19 {
        // Stalls are not told apart by zone, and there is one kind of split.
        counters
            .set("allocstall", ZONE_KINDS.iter().map(|kind| mm.stat.zone_event(ZoneEvent::Allocstall, *kind)).sum());
        counters.set("thp_split", mm.stat.event(VmEvent::ThpSplitPage));
    }
    counters.ordered(era)
}

/// Kinds of zones that the kernel is built with on x86-64.
const ZONE_KINDS: [ZoneKind; ZoneKind::COUNT] = [ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal, ZoneKind::Movable];
