//! The files that are built in: one line each.

/// Machines by name.
pub const MACHINES: &[(&str, &str)] = &[
    ("skylake-1s", include_str!("../../../machines/skylake-1s.toml")),
    ("skylake-1s-64g", include_str!("../../../machines/skylake-1s-64g.toml")),
    ("haswell-2s", include_str!("../../../machines/haswell-2s.toml")),
    ("desktop-4g", include_str!("../../../machines/desktop-4g.toml")),
    ("xeon-6154-node", include_str!("../../../machines/xeon-6154-node.toml")),
    ("server-2g", include_str!("../../../machines/server-2g.toml")),
    ("amd-4core", include_str!("../../../machines/amd-4core.toml")),
    ("laptop-usb", include_str!("../../../machines/laptop-usb.toml")),
    ("small", include_str!("../../../machines/small.toml")),
    ("small-noswap", include_str!("../../../machines/small-noswap.toml")),
    ("node-noswap", include_str!("../../../machines/node-noswap.toml")),
    ("guest-160m", include_str!("../../../machines/guest-160m.toml")),
    ("guest-384m", include_str!("../../../machines/guest-384m.toml")),
    ("guest-384m-slow", include_str!("../../../machines/guest-384m-slow.toml")),
    ("guest-512m-free", include_str!("../../../machines/guest-512m-free.toml")),
    ("guest-576m", include_str!("../../../machines/guest-576m.toml")),
    ("guest-3g-xfs", include_str!("../../../machines/guest-3g-xfs.toml")),
    ("guest-576m-xfs", include_str!("../../../machines/guest-576m-xfs.toml")),
];

/// Kernels by name.
pub const KERNELS: &[(&str, &str)] = &[
    ("2.6.39-rc7", include_str!("../../../kernels/2.6.39-rc7.toml")),
    ("2.6.39-rc7-fixprematurely", include_str!("../../../kernels/2.6.39-rc7-fixprematurely.toml")),
    ("2.6.39-rc7-nowwake", include_str!("../../../kernels/2.6.39-rc7-nowwake.toml")),
    ("2.6.39-rc7-noexstep", include_str!("../../../kernels/2.6.39-rc7-noexstep.toml")),
    ("2.6.39-rc7-kswapdsleep", include_str!("../../../kernels/2.6.39-rc7-kswapdsleep.toml")),
    ("3.1-rc", include_str!("../../../kernels/3.1-rc.toml")),
    ("3.1-rc-direct", include_str!("../../../kernels/3.1-rc-direct.toml")),
    ("3.1-rc-priority", include_str!("../../../kernels/3.1-rc-priority.toml")),
    ("3.1-rc-throttle", include_str!("../../../kernels/3.1-rc-throttle.toml")),
    ("3.1-rc-immediate", include_str!("../../../kernels/3.1-rc-immediate.toml")),
    ("3.1", include_str!("../../../kernels/3.1.toml")),
    ("3.1-immediate", include_str!("../../../kernels/3.1-immediate.toml")),
    ("3.19-rc4", include_str!("../../../kernels/3.19-rc4.toml")),
    ("3.19-rc4-fixed-pivot", include_str!("../../../kernels/3.19-rc4-fixed-pivot.toml")),
    ("3.19-rc4-pivot", include_str!("../../../kernels/3.19-rc4-pivot.toml")),
    ("4.4", include_str!("../../../kernels/4.4.toml")),
    ("4.18", include_str!("../../../kernels/4.18.toml")),
    ("4.20-rc3", include_str!("../../../kernels/4.20-rc3.toml")),
    ("4.20-rc3-lowzone", include_str!("../../../kernels/4.20-rc3-lowzone.toml")),
    ("4.20-rc3-boost", include_str!("../../../kernels/4.20-rc3-boost.toml")),
    ("5.0", include_str!("../../../kernels/5.0.toml")),
    ("5.0.0-65-generic", include_str!("../../../kernels/5.0.0-65-generic.toml")),
    ("5.2", include_str!("../../../kernels/5.2.toml")),
    ("5.10", include_str!("../../../kernels/5.10.toml")),
    ("5.19-rc1", include_str!("../../../kernels/5.19-rc1.toml")),
    ("6.1-mglru-8", include_str!("../../../kernels/6.1-mglru-8.toml")),
    ("6.1-mglru-9", include_str!("../../../kernels/6.1-mglru-9.toml")),
    ("6.1-mglru-v7", include_str!("../../../kernels/6.1-mglru-v7.toml")),
    ("6.1", include_str!("../../../kernels/6.1.toml")),
    ("6.12", include_str!("../../../kernels/6.12.toml")),
];

/// Studies by name.
pub const STUDIES: &[(&str, &str)] = &[
    ("watermark-boost", include_str!("../../../studies/watermark-boost.toml")),
    ("mglru-memcgs", include_str!("../../../studies/mglru-memcgs.toml")),
    ("reclaim-writeback", include_str!("../../../studies/reclaim-writeback.toml")),
    ("compaction-pivot", include_str!("../../../studies/compaction-pivot.toml")),
    ("slub-high-order", include_str!("../../../studies/slub-high-order.toml")),
];

/// Published figures by file name.
const PUBLISHED: &[(&str, &str)] = &[
    ("000_watermark_boost.json", include_str!("../../../studies/published/000_watermark_boost.json")),
    ("002_mglru_memcg.json", include_str!("../../../studies/published/002_mglru_memcg.json")),
    ("001_slub_kswapd.json", include_str!("../../../studies/published/001_slub_kswapd.json")),
    ("003_compaction_pivot.json", include_str!("../../../studies/published/003_compaction_pivot.json")),
    ("004_reclaim_writeback.json", include_str!("../../../studies/published/004_reclaim_writeback.json")),
    ("100_companion_boost_series.json", include_str!("../../../studies/published/100_companion_boost_series.json")),
    ("103_companion_mglru.json", include_str!("../../../studies/published/103_companion_mglru.json")),
    ("104_companion_page_writes.json", include_str!("../../../studies/published/104_companion_page_writes.json")),
];

/// A kind of input file: what errors call it, where the built-in ones are and how their names end, and these by name.
pub(crate) struct Kind {
    pub(crate) what: &'static str,
    pub(crate) folder: &'static str,
    pub(crate) suffix: &'static str,
    pub(crate) builtin: &'static [(&'static str, &'static str)],
}

pub(crate) const MACHINE: Kind = Kind { what: "machine", folder: "machines", suffix: ".toml", builtin: MACHINES };
pub(crate) const KERNEL: Kind = Kind { what: "kernel", folder: "kernels", suffix: ".toml", builtin: KERNELS };
pub(crate) const STUDY: Kind = Kind { what: "study", folder: "studies", suffix: ".toml", builtin: STUDIES };
pub(crate) const PUBLICATION: Kind =
    Kind { what: "publication", folder: "studies/published", suffix: "", builtin: PUBLISHED };
