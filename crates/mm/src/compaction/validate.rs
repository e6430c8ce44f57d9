//! Compaction's own invariants.

use crate::{Mm, Violation};

impl Mm {
    /// Checks the remembered places and the deferral of every zone.
    pub(crate) fn validate_compaction(&self, violations: &mut Vec<Violation>) {
        for zone in &self.zones {
            let state = &zone.compact;
            let end = zone.start.0 + zone.spanned as u32;
            let places = state.migrate_pfn.into_iter().chain([state.free_pfn, state.pivot, state.last_met]);
            for pfn in places.flatten() {
                // The first pageblock may begin before the zone.
                if pfn.0 >= end || pfn.0 < zone.start.align_down(units::PAGEBLOCK_ORDER).0 {
                    let what = format!("a scanner is remembered outside {}..{end}", zone.start.0);
                    violations.push(Violation { place: "compaction", pfn: Some(pfn), what });
                }
            }
            if state.considered > 1 << state.defer_shift || state.defer_shift > 6 {
                let what = format!("considered {} of 1 << {}", state.considered, state.defer_shift);
                violations.push(Violation { place: "compaction", pfn: None, what });
            }
        }
    }
}
