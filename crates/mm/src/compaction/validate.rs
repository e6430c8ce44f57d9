//! Compaction's own invariants, for `--verify` between runs.

use crate::{Kind, Mm, Violation};

impl Mm {
    /// Checks the remembered places of every zone, and that a run that is over left no page isolated.
    pub(crate) fn validate_compaction(&self, violations: &mut Vec<Violation>) {
        for zone in &self.zones {
            let state = &zone.compact;
            let end = zone.start.0 + zone.spanned as u32;
            for pfn in state.migrate_pfn.iter().chain([&state.free_pfn]).flatten() {
                // The first pageblock may begin before the zone.
                if pfn.0 >= end || pfn.0 < zone.start.align_down(units::PAGEBLOCK_ORDER).0 {
                    let what = format!("a scanner is remembered outside {}..{end}", zone.start.0);
                    violations.push(Violation { place: "compaction", pfn: Some(*pfn), what });
                }
            }
            if state.considered > 1 << state.defer_shift || state.defer_shift > 6 {
                let what = format!("considered {} of 1 << {}", state.considered, state.defer_shift);
                violations.push(Violation { place: "compaction", pfn: None, what });
            }
        }
        for pfn in (0..self.frames.len() as u32).map(units::Pfn) {
            let frame = &self.frames[pfn];
            let held = frame.kind() == Kind::Held && frame.prev.is_some();
            if held {
                let what = "is still on a list of migration targets".to_string();
                violations.push(Violation { place: "compaction", pfn: Some(pfn), what });
            }
        }
    }
}
