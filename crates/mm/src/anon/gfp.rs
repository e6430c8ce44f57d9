//! Whether a fault tries for a huge page, and how hard.
//!
//! Rule: `enabled` and the area's advice say whether; `defrag` and the advice say whether the allocation may reclaim
//! and compact itself, only wakes kswapd, or does neither; the kernel's era says from which node.
//! Source: `transparent_hugepage_enabled()` (include/linux/huge_mm.h), `alloc_hugepage_direct_gfpmask()` (mm/huge_memory.c),
//! `alloc_pages_vma()` (mm/mempolicy.c), 4.20; `alloc_hugepage_gfpmask()`, 4.4; `vma_thp_gfp_mask()`, `alloc_pages_mpol_noprof()`, 6.12.
//! Since/until: the node is `rules.thp_node`, what advice is worth [`ThpEffort`].
//! Omitted: memory policies other than the default local one.

use rules::{ThpDefrag, ThpEffort, ThpEnabled, ThpNode};
use smallvec::SmallVec;
use units::Gfp;

use super::ThpAdvice;

/// Whether a fault in an area with this advice may use a huge page.
pub fn thp_enabled_for(enabled: ThpEnabled, advice: ThpAdvice) -> bool {
    match enabled {
        ThpEnabled::Always => advice != ThpAdvice::NoHuge,
        ThpEnabled::Madvise => advice == ThpAdvice::Huge,
        ThpEnabled::Never => false,
    }
}

/// Flags of a huge page's allocation, without those of the node.
pub fn thp_gfp_mask(effort: ThpEffort, defrag: ThpDefrag, advised: bool) -> Gfp {
    let mask = mask_by_advice(defrag, advised);
    match effort {
        ThpEffort::Once => mask.with(Gfp::NORETRY),
        ThpEffort::ByAdvice => mask,
    }
}

fn mask_by_advice(defrag: ThpDefrag, advised: bool) -> Gfp {
    let light = Gfp::TRANSHUGE_LIGHT;
    match (defrag, advised) {
        (ThpDefrag::Always, true) => Gfp::TRANSHUGE,
        (ThpDefrag::Always, false) => Gfp::TRANSHUGE.with(Gfp::NORETRY),
        (ThpDefrag::Defer, _) | (ThpDefrag::DeferMadvise, false) => light.with(Gfp::KSWAPD_RECLAIM),
        (ThpDefrag::DeferMadvise | ThpDefrag::Madvise, true) => light.with(Gfp::DIRECT_RECLAIM),
        (ThpDefrag::Madvise, false) | (ThpDefrag::Never, _) => light,
    }
}

/// The allocations that a fault tries one after the other for a huge page.
pub fn huge_attempts(node: ThpNode, mask: Gfp) -> SmallVec<[Gfp; 2]> {
    let local = mask.with(Gfp::THISNODE);
    let direct = mask.contains(Gfp::DIRECT_RECLAIM);
    match node {
        ThpNode::Local => SmallVec::from_slice(&[local]),
        ThpNode::LocalUnlessDirect => SmallVec::from_slice(&[if direct { mask } else { local }]),
        ThpNode::LocalThenAny => {
            let mut attempts = SmallVec::from_slice(&[local.with(Gfp::NORETRY)]);
            if direct {
                attempts.push(mask);
            }
            attempts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIGHT: Gfp = Gfp::TRANSHUGE_LIGHT;
    const KSWAPD: Gfp = Gfp::KSWAPD_RECLAIM;
    const DIRECT: Gfp = Gfp::DIRECT_RECLAIM;

    /// defrag, advised, flags on top of GFP_TRANSHUGE_LIGHT: the branches of alloc_hugepage_direct_gfpmask().
    const MASKS: [(ThpDefrag, bool, Gfp); 10] = [
        (ThpDefrag::Always, false, Gfp(DIRECT.0 | Gfp::NORETRY.0)),
        (ThpDefrag::Always, true, DIRECT),
        (ThpDefrag::Defer, false, KSWAPD),
        (ThpDefrag::Defer, true, KSWAPD),
        (ThpDefrag::DeferMadvise, false, KSWAPD),
        (ThpDefrag::DeferMadvise, true, DIRECT),
        (ThpDefrag::Madvise, false, Gfp::NONE),
        (ThpDefrag::Madvise, true, DIRECT),
        (ThpDefrag::Never, false, Gfp::NONE),
        (ThpDefrag::Never, true, Gfp::NONE),
    ];

    #[test]
    fn flags_follow_defrag_and_advice() {
        for (defrag, advised, extra) in MASKS {
            let flags = |effort| thp_gfp_mask(effort, defrag, advised);
            assert_eq!(flags(ThpEffort::ByAdvice), LIGHT.with(extra), "{defrag:?} advised={advised}");
            assert_eq!(flags(ThpEffort::Once), LIGHT.with(extra).with(Gfp::NORETRY), "{defrag:?} advised={advised}");
        }
    }

    #[test]
    fn enabled_and_advice_decide_whether_to_try() {
        use ThpAdvice::{Huge, NoHuge, None};
        let table = [
            (ThpEnabled::Always, [(None, true), (Huge, true), (NoHuge, false)]),
            (ThpEnabled::Madvise, [(None, false), (Huge, true), (NoHuge, false)]),
            (ThpEnabled::Never, [(None, false), (Huge, false), (NoHuge, false)]),
        ];
        for (enabled, row) in table {
            for (advice, tried) in row {
                assert_eq!(thp_enabled_for(enabled, advice), tried, "{enabled:?} {advice:?}");
            }
        }
    }

    #[test]
    fn the_node_depends_on_the_era() {
        let this = Gfp::THISNODE;
        for (defrag, advised, _) in MASKS {
            let mask = thp_gfp_mask(ThpEffort::ByAdvice, defrag, advised);
            let direct = mask.contains(DIRECT);
            assert_eq!(huge_attempts(ThpNode::Local, mask).as_slice(), [mask.with(this)]);
            let rc = if direct { mask } else { mask.with(this) };
            assert_eq!(huge_attempts(ThpNode::LocalUnlessDirect, mask).as_slice(), [rc]);
            let first = mask.with(this).with(Gfp::NORETRY);
            let both: &[Gfp] = if direct { &[first, mask] } else { &[first] };
            assert_eq!(huge_attempts(ThpNode::LocalThenAny, mask).as_slice(), both);
        }
    }
}
