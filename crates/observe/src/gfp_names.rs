//! Names of allocation flags as tracepoints print them.
//!
//! Source: `show_gfp_flags()`, include/trace/events/mmflags.h, 6.12: names are tried in table order, and one that is wholly
//! contained is printed and its bits are taken away.

use units::Gfp;

/// Names in the kernel's order, composed ones first.
const NAMES: [(&str, Gfp); 35] = [
    ("GFP_TRANSHUGE", Gfp::TRANSHUGE),
    ("GFP_TRANSHUGE_LIGHT", Gfp::TRANSHUGE_LIGHT),
    ("GFP_HIGHUSER_MOVABLE", Gfp::HIGHUSER_MOVABLE),
    ("GFP_HIGHUSER", Gfp::HIGHUSER),
    ("GFP_USER", Gfp::USER),
    ("GFP_KERNEL_ACCOUNT", Gfp(Gfp::KERNEL.0 | Gfp::ACCOUNT.0)),
    ("GFP_KERNEL", Gfp::KERNEL),
    ("GFP_NOFS", Gfp::NOFS),
    ("GFP_ATOMIC", Gfp::ATOMIC),
    ("GFP_NOIO", Gfp::NOIO),
    ("GFP_NOWAIT", Gfp::NOWAIT),
    ("GFP_DMA", Gfp::DMA),
    ("__GFP_HIGHMEM", Gfp::HIGHMEM),
    ("GFP_DMA32", Gfp::DMA32),
    ("__GFP_HIGH", Gfp::HIGH),
    ("__GFP_IO", Gfp::IO),
    ("__GFP_FS", Gfp::FS),
    ("__GFP_NOWARN", Gfp::NOWARN),
    ("__GFP_RETRY_MAYFAIL", Gfp::RETRY_MAYFAIL),
    ("__GFP_NOFAIL", Gfp::NOFAIL),
    ("__GFP_NORETRY", Gfp::NORETRY),
    ("__GFP_COMP", Gfp::COMP),
    ("__GFP_ZERO", Gfp::ZERO),
    ("__GFP_NOMEMALLOC", Gfp::NOMEMALLOC),
    ("__GFP_MEMALLOC", Gfp::MEMALLOC),
    ("__GFP_HARDWALL", Gfp::HARDWALL),
    ("__GFP_THISNODE", Gfp::THISNODE),
    ("__GFP_RECLAIMABLE", Gfp::RECLAIMABLE),
    ("__GFP_MOVABLE", Gfp::MOVABLE),
    ("__GFP_ACCOUNT", Gfp::ACCOUNT),
    ("__GFP_WRITE", Gfp::WRITE),
    ("__GFP_COLD", Gfp::COLD),
    ("__GFP_RECLAIM", Gfp::RECLAIM),
    ("__GFP_DIRECT_RECLAIM", Gfp::DIRECT_RECLAIM),
    ("__GFP_KSWAPD_RECLAIM", Gfp::KSWAPD_RECLAIM),
];

/// `flags` as the kernel prints them: `GFP_KERNEL|__GFP_ZERO`; `none` for no flag.
pub fn gfp_names(flags: Gfp) -> String {
    if flags == Gfp::NONE {
        return "none".to_owned();
    }
    let mut left = flags;
    let mut names = Vec::new();
    for (name, bits) in NAMES {
        if left.contains(bits) {
            names.push(name);
            left = left.without(bits);
        }
    }
    names.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composed_names_come_first() {
        assert_eq!(gfp_names(Gfp::HIGHUSER_MOVABLE.with(Gfp::ZERO)), "GFP_HIGHUSER_MOVABLE|__GFP_ZERO");
        // GFP_NOWAIT is __GFP_KSWAPD_RECLAIM|__GFP_NOWARN; with __GFP_HIGH, GFP_ATOMIC takes the reclaim bit first.
        assert_eq!(gfp_names(Gfp::NOWAIT.with(Gfp::HIGH)), "GFP_ATOMIC|__GFP_NOWARN");
        assert_eq!(gfp_names(Gfp::NONE), "none");
    }

    #[test]
    fn every_single_flag_and_composition_has_its_name() {
        for (_, bits) in NAMES {
            // GFP_NOIO is no more than __GFP_RECLAIM, and comes first.
            let first = NAMES.iter().find(|(_, known)| *known == bits).map(|(name, _)| *name);
            assert_eq!(Some(gfp_names(bits).as_str()), first);
        }
    }
}
