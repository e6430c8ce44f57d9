//! Allocation flags as tracepoints print them: by name, or as the number that they are.
//!
//! Source: `show_gfp_flags()`, include/trace/events/mmflags.h, 6.12: names are tried in table order, and one that is wholly
//! contained is printed and its bits are taken away. `___GFP_*`, include/linux/gfp.h, 4.4 and 5.0 (4.18 has the bits of 5.0).

use rules::CompactionEvents;
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

/// Bits that are the same from 4.4 to 5.0.
const BITS: [(Gfp, u32); 19] = [
    (Gfp::DMA, 0x1),
    (Gfp::HIGHMEM, 0x2),
    (Gfp::DMA32, 0x4),
    (Gfp::MOVABLE, 0x8),
    (Gfp::RECLAIMABLE, 0x10),
    (Gfp::HIGH, 0x20),
    (Gfp::IO, 0x40),
    (Gfp::FS, 0x80),
    (Gfp::NOWARN, 0x200),
    (Gfp::RETRY_MAYFAIL, 0x400),
    (Gfp::NOFAIL, 0x800),
    (Gfp::NORETRY, 0x1000),
    (Gfp::MEMALLOC, 0x2000),
    (Gfp::COMP, 0x4000),
    (Gfp::ZERO, 0x8000),
    (Gfp::NOMEMALLOC, 0x10000),
    (Gfp::HARDWALL, 0x20000),
    (Gfp::THISNODE, 0x40000),
    (Gfp::ACCOUNT, 0x10_0000),
];
const BITS_4_4: [(Gfp, u32); 4] =
    [(Gfp::COLD, 0x100), (Gfp::DIRECT_RECLAIM, 0x40_0000), (Gfp::WRITE, 0x100_0000), (Gfp::KSWAPD_RECLAIM, 0x200_0000)];
/// Without `__GFP_COLD`, whose bit `__GFP_WRITE` has got.
const BITS_5_0: [(Gfp, u32); 3] =
    [(Gfp::WRITE, 0x100), (Gfp::DIRECT_RECLAIM, 0x20_0000), (Gfp::KSWAPD_RECLAIM, 0x40_0000)];

/// `flags` as the number that they are to a kernel with these tracepoints, one of those that print it.
pub fn gfp_bits(flags: Gfp, kernel: CompactionEvents) -> u32 {
    let own = if kernel == CompactionEvents::Ranges { &BITS_4_4[..] } else { &BITS_5_0 };
    BITS.iter().chain(own).filter(|(flag, _)| flags.contains(*flag)).map(|(_, bit)| bit).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_is_asked_for_by_the_bits_of_its_kernel() {
        // As the tracepoints of 4.4, 4.18 and 5.0 print it; 4.4 does not retry, 4.18 takes any node.
        let local = Gfp::TRANSHUGE.with(Gfp::THISNODE);
        assert_eq!(gfp_bits(local.with(Gfp::NORETRY), CompactionEvents::Ranges), 0x4752ca);
        assert_eq!(gfp_bits(Gfp::TRANSHUGE, CompactionEvents::Priorities), 0x2342ca);
        assert_eq!(gfp_bits(local, CompactionEvents::Priorities), 0x2742ca);
    }

    #[test]
    fn no_two_flags_of_a_kernel_share_a_bit() {
        for own in [&BITS_4_4[..], &BITS_5_0] {
            let bits = || BITS.iter().chain(own).map(|(_, bit)| *bit);
            assert_eq!(bits().sum::<u32>(), bits().fold(0, |all, bit| all | bit));
        }
    }

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
