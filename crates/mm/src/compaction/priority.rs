//! How hard compaction tries, and what it says it achieved.
//!
//! - **Rule**: direct compaction starts asynchronous; each retry may raise the priority. What the zones of one attempt
//!   say is combined by taking the largest value, so the order of the results is part of the rule.
//! - **Source**: `enum compact_priority`, `enum compact_result`, `compaction_made_progress()`, `compaction_failed()`,
//!   `compaction_withdrawn()`, include/linux/compaction.h, 4.20.
//! - **Since**: 4.8; the three predicates were folded into `should_compact_retry()` in 6.1, with the same meaning.

/// How hard direct compaction tries; lower is harder (`enum compact_priority`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum CompactPriority {
    /// Whole zone, skip hints ignored, every block a target. Never for costly orders' first attempts.
    SyncFull = 0,
    /// Waits for locks, not for writeback.
    SyncLight = 1,
    /// Never waits.
    Async = 2,
}

impl CompactPriority {
    /// Where every allocation starts (`INIT_COMPACT_PRIORITY`).
    pub const INITIAL: CompactPriority = CompactPriority::Async;
    /// After direct reclaim (`DEF_COMPACT_PRIORITY`).
    pub const DEFAULT: CompactPriority = CompactPriority::SyncLight;
    /// Hardest for any order (`MIN_COMPACT_PRIORITY`).
    pub const MIN: CompactPriority = CompactPriority::SyncFull;
    /// Hardest for costly orders (`MIN_COMPACT_COSTLY_PRIORITY`).
    pub const MIN_COSTLY: CompactPriority = CompactPriority::SyncLight;

    /// The next harder one; `None` at the hardest.
    pub fn harder(self) -> Option<CompactPriority> {
        match self {
            CompactPriority::Async => Some(CompactPriority::SyncLight),
            CompactPriority::SyncLight => Some(CompactPriority::SyncFull),
            CompactPriority::SyncFull => None,
        }
    }
}

/// What a compaction says; the order of the values is the kernel's (`enum compact_result`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum CompactResult {
    /// Fragmentation is not what an allocation would fail for; only in traces, callers see `Skipped`.
    NotSuitableZone = 0,
    /// Not started: too few free pages, or reclaim is better.
    Skipped = 1,
    /// Not started: put off after failures.
    Deferred = 2,
    /// Nothing free yet that serves; only in traces, inside it is `Continue`.
    NoSuitablePage = 3,
    /// Go on.
    Continue = 4,
    /// The whole zone was scanned in vain.
    Complete = 5,
    /// The scanners met, but did not start from the zone's ends.
    PartialSkipped = 6,
    /// Given up because of contention or a signal.
    Contended = 7,
    /// The allocation should succeed now.
    Success = 8,
}

impl CompactResult {
    /// Name as in the tracepoints (`COMPACTION_STATUS`, include/trace/events/compaction.h).
    pub fn name(self) -> &'static str {
        match self {
            CompactResult::NotSuitableZone => "not_suitable_zone",
            CompactResult::Skipped => "skipped",
            CompactResult::Deferred => "deferred",
            CompactResult::NoSuitablePage => "no_suitable_page",
            CompactResult::Continue => "continue",
            CompactResult::Complete => "complete",
            CompactResult::PartialSkipped => "partial_skipped",
            CompactResult::Contended => "contended",
            CompactResult::Success => "success",
        }
    }

    /// Whether it ran at all: only then a stall is counted (`> COMPACT_INACTIVE`).
    pub fn ran(self) -> bool {
        self > CompactResult::Deferred
    }

    /// Whether a retry makes sense because it moved something (`compaction_made_progress()`).
    pub fn made_progress(self) -> bool {
        self == CompactResult::Success
    }

    /// Whether nothing more can be done at this priority (`compaction_failed()`).
    pub fn failed(self) -> bool {
        self == CompactResult::Complete
    }

    /// Whether it backed off before it had tried everything (`compaction_withdrawn()`).
    pub fn withdrawn(self) -> bool {
        matches!(
            self,
            CompactResult::Skipped | CompactResult::Deferred | CompactResult::Contended | CompactResult::PartialSkipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_zones_combine_to_the_best() {
        let zones = [CompactResult::Deferred, CompactResult::Complete, CompactResult::Skipped];
        assert_eq!(zones.into_iter().max(), Some(CompactResult::Complete));
        assert!(!CompactResult::Deferred.ran() && CompactResult::Complete.ran());
    }

    #[test]
    fn each_result_that_callers_see_is_progress_failure_or_withdrawal() {
        use CompactResult::*;
        for result in [Skipped, Deferred, Complete, PartialSkipped, Contended, Success] {
            let kinds = [result.made_progress(), result.failed(), result.withdrawn()];
            assert_eq!(kinds.into_iter().filter(|k| *k).count(), 1, "{result:?}");
        }
    }

    #[test]
    fn priority_hardens_step_by_step() {
        assert_eq!(CompactPriority::INITIAL.harder(), Some(CompactPriority::DEFAULT));
        assert_eq!(CompactPriority::DEFAULT.harder(), Some(CompactPriority::MIN));
        assert_eq!(CompactPriority::MIN.harder(), None);
    }
}
