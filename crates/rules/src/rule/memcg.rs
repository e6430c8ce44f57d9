//! Decisions of memory cgroups.

use serde::{Deserialize, Serialize};

rule!(
    /// What the multi-gen LRU of 6.1 does about several memory cgroups.
    MultiMemcg {
        /// Nothing: all are aged before every pass that needs it, and reclaimed in proportion to their size:
        /// ac35a4902374 to bd74fdaea146 (before f76c83378851, 6.1).
        Plain,
        /// kswapd neither ages nor swaps while the last pass found enough cold pages; reclaim does not stop early, nor does a
        /// direct reclaimer age: patch 8 of version 7 (February 2022), never merged in this form.
        AvoidSwapping,
        /// kswapd does not age while the last pass found enough cold pages, and reclaim stops once it does too much:
        /// since f76c83378851 (6.1).
        SkipAging,
    }
);
rule!(
    /// Who shares a walk through memory cgroups with others.
    MemcgWalkSharing {
        /// All reclaimers of a target at the same priority, kswapd too; those of a group that is above its limit stop once
        /// they have enough: 3.2 to 5.3.
        EveryPriority,
        /// Nobody: each reclaimer goes through all groups. From 1ba6fc9af35b (5.4) to 6.7.
        Nobody,
        /// Direct reclaimers, each of which stops once it has enough: since b82b530740b9 (6.8).
        DirectReclaim,
    }
);
