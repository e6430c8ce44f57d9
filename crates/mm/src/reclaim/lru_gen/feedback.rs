//! What refaults say about evictions: which type and which tiers are to be evicted.
//!
//! Rule: the refaults of a tier over its evicted and protected pages, of the generation that is being evicted and, with a
//! weight of one half per generation, of those before it. A tier is evicted while it refaults less than the first tier of
//! its own type (weighed twice as heavy, for a margin) and than that of the other type, weighed by swappiness; fewer than
//! 64 refaults are no evidence.
//! Source: `read_ctrl_pos()`, `reset_ctrl_pos()`, `positive_ctrl_err()`, `get_tier_idx()`, `get_type_to_scan()`
//! (mm/vmscan.c); 6.12. The kernel calls it a PID controller without a D term.

use super::{ANON, FILE, MAX_NR_TIERS, MIN_LRU_BATCH};

/// Swappiness at which file pages are left alone (`MAX_SWAPPINESS`).
pub(super) const SWAPPINESS_MAX: u64 = 200;

/// Counts of pages, by type and tier.
type ByTier = [[u64; MAX_NR_TIERS]; 2];

/// Evictions and refaults of the lists of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Feedback {
    /// Refaults of generations evicted before, averaged.
    avg_refaulted: ByTier,
    /// Evicted and protected pages of generations before, averaged.
    avg_total: ByTier,
    /// Pages of this generation that were protected; those of the first tier never are.
    pub(super) protected: ByTier,
    /// Pages of this generation that were evicted.
    pub(super) evicted: ByTier,
    /// Of those, pages that were read again.
    pub(super) refaulted: ByTier,
}

/// A point that is compared (`struct ctrl_pos`).
#[derive(Clone, Copy)]
struct Position {
    refaulted: u64,
    total: u64,
    gain: u64,
}

/// Whether a tier refaults little, or no more than the set point.
fn may_evict(set_point: Position, tier: Position) -> bool {
    let (sp, pv) = (set_point, tier);
    pv.refaulted < MIN_LRU_BATCH
        || pv.refaulted * (sp.total + MIN_LRU_BATCH) * sp.gain <= (sp.refaulted + 1) * pv.total * pv.gain
}

impl Feedback {
    fn position(&self, kind: usize, tier: usize, gain: u64) -> Position {
        Position {
            refaulted: self.avg_refaulted[kind][tier] + self.refaulted[kind][tier],
            total: self.avg_total[kind][tier] + self.evicted[kind][tier] + self.protected[kind][tier],
            gain,
        }
    }

    /// A generation of a type is through: its counts join the average.
    pub(super) fn carry_over(&mut self, kind: usize) {
        for tier in 0..MAX_NR_TIERS {
            let ended = self.position(kind, tier, 1);
            self.avg_refaulted[kind][tier] = ended.refaulted / 2;
            self.avg_total[kind][tier] = ended.total / 2;
        }
        self.refaulted[kind] = [0; MAX_NR_TIERS];
        self.evicted[kind] = [0; MAX_NR_TIERS];
        self.protected[kind] = [0; MAX_NR_TIERS];
    }

    /// The highest tier of a type that may be evicted beside a set point.
    fn last_tier(&self, kind: usize, set_point: Position, gain: u64) -> usize {
        let evicted = |tier: &usize| may_evict(set_point, self.position(kind, *tier, gain));
        (1..MAX_NR_TIERS).take_while(evicted).last().unwrap_or(0)
    }

    /// The highest tier to evict of a type that was chosen for other reasons.
    pub(super) fn tier_to_evict(&self, kind: usize) -> usize {
        self.last_tier(kind, self.position(kind, 0, 1), 2)
    }

    /// The type to evict, and its highest tier.
    pub(super) fn kind_and_tier(&self, swappiness: u64) -> (usize, usize) {
        let gain = [swappiness, SWAPPINESS_MAX - swappiness];
        let first = |kind: usize| self.position(kind, 0, gain[kind]);
        let kind = if may_evict(first(ANON), first(FILE)) { FILE } else { ANON };
        (kind, self.last_tier(kind, first(1 - kind), gain[kind]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evicted and refaulted pages of the first tier of both types.
    fn feedback(evicted: [u64; 2], refaulted: [u64; 2]) -> Feedback {
        let mut feedback = Feedback::default();
        for kind in [ANON, FILE] {
            feedback.evicted[kind][0] = evicted[kind];
            feedback.refaulted[kind][0] = refaulted[kind];
        }
        feedback
    }

    #[test]
    fn file_pages_go_first_until_they_refault() {
        assert_eq!(feedback([0, 0], [0, 0]).kind_and_tier(60), (FILE, 3), "no refaults: every tier");
        // Set point: anon, 0 of 0, gain 60: 64 x (0 + 64) x 60 = 245760 against (0 + 1) x total x 140: even at 1755.4.
        assert_eq!(feedback([0, 1756], [0, 64]).kind_and_tier(60).0, FILE);
        assert_eq!(feedback([0, 1755], [0, 64]).kind_and_tier(60).0, ANON);
        assert_eq!(feedback([0, 1755], [0, 63]).kind_and_tier(60).0, FILE, "63 refaults are no evidence");
    }

    #[test]
    fn swappiness_weighs_the_types() {
        // Both refault by the half: the file pages go while their weight is the larger one.
        let even = feedback([10_000, 10_000], [5000, 5000]);
        assert_eq!(even.kind_and_tier(60).0, FILE);
        assert_eq!(even.kind_and_tier(140).0, ANON);
    }

    #[test]
    fn a_tier_that_refaults_more_than_half_as_much_as_the_first_is_protected() {
        let mut feedback = feedback([0, 10_000], [0, 1000]);
        feedback.evicted[FILE][1] = 1000;
        // First tier: 1000 of 10000. r x (10000 + 64) <= 1001 x 1000 x 2: up to 198.
        feedback.refaulted[FILE][1] = 198;
        assert_eq!(feedback.tier_to_evict(FILE), 3);
        feedback.refaulted[FILE][1] = 199;
        assert_eq!(feedback.tier_to_evict(FILE), 0);
        // Pages that were protected count as not refaulted.
        feedback.protected[FILE][1] = 10;
        assert_eq!(feedback.tier_to_evict(FILE), 3, "199 x 10064 = 2002736 <= 1001 x 1010 x 2 = 2022020");
    }

    #[test]
    fn old_generations_fade_by_half() {
        let mut feedback = feedback([0, 1000], [0, 400]);
        feedback.protected[FILE][2] = 64;
        feedback.carry_over(FILE);
        assert_eq!((feedback.avg_refaulted[FILE][0], feedback.avg_total[FILE][0]), (200, 500));
        assert_eq!((feedback.avg_total[FILE][2], feedback.protected[FILE][2]), (32, 0));
        feedback.carry_over(FILE);
        assert_eq!((feedback.avg_refaulted[FILE][0], feedback.avg_total[FILE][0]), (100, 250));
    }
}
