//! Draws cases; everything shrinks towards one thread with one small operation on the smallest machine.

use profile::KERNELS;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use rules::TUNABLES;
use sys::{Access, Advice, FileAdvice};

use super::case::*;

/// Tunables with values in range that differ from the defaults.
const TUNED: &[(&str, &[&str])] = &[
    ("vm.min_free_kbytes", &["0", "128", "1024", "4096"]),
    ("vm.watermark_scale_factor", &["1", "10", "200", "1000"]),
    ("vm.watermark_boost_factor", &["0", "15000", "100000"]),
    ("vm.swappiness", &["0", "1", "60", "100", "200"]),
    ("vm.page-cluster", &["0", "1", "3", "6"]),
    ("vm.vfs_cache_pressure", &["0", "1", "100", "1000", "100000"]),
    ("vm.dirty_ratio", &["0", "1", "20", "40", "100"]),
    ("vm.dirty_background_ratio", &["0", "1", "10", "100"]),
    ("vm.dirty_bytes", &["0", "8192", "1048576", "18446744073709551615"]),
    ("vm.dirty_background_bytes", &["0", "4096", "1048576", "18446744073709551615"]),
    ("vm.dirty_expire_centisecs", &["0", "100", "3000"]),
    ("vm.dirty_writeback_centisecs", &["0", "1", "100", "500"]),
    ("vm.extfrag_threshold", &["0", "500", "1000"]),
    ("vm.compaction_proactiveness", &["0", "20", "100"]),
    ("vm.zone_reclaim_mode", &["0", "1", "7"]),
    ("lru_gen.min_ttl_ms", &["0", "10", "1000"]),
    ("lru_gen.enabled", &["y", "n", "0x0001", "0x0003", "0x0005"]),
    ("zswap.enabled", &["y", "n"]),
    ("zswap.max_pool_percent", &["0", "1", "20", "100"]),
    ("zswap.accept_threshold_percent", &["0", "90", "100"]),
    ("zswap.shrinker_enabled", &["y", "n"]),
    ("zswap.compressor", &["lzo", "lzo-rle", "lz4", "zstd"]),
    ("thp.enabled", &["always", "madvise", "never"]),
    ("thp.khugepaged/pages_to_scan", &["1", "512", "4096", "1000000"]),
    ("thp.khugepaged/scan_sleep_millisecs", &["1", "100", "10000"]),
    ("thp.khugepaged/alloc_sleep_millisecs", &["0", "100", "60000"]),
    ("thp.khugepaged/max_ptes_none", &["0", "255", "511"]),
    ("thp.khugepaged/defrag", &["0", "1"]),
    ("thp.defrag", &["always", "defer", "defer+madvise", "madvise", "never"]),
];

/// Half of the sizes are worth a good part of the memory.
fn share() -> impl Strategy<Value = Share> {
    prop_oneof![0..=200_u8, 201..=248_u8].prop_map(Share)
}

fn disk() -> impl Strategy<Value = DiskKind> {
    select(vec![DiskKind::Ram, DiskKind::Ssd, DiskKind::Hdd])
}

fn machine() -> impl Strategy<Value = MachineCase> {
    let node = prop_oneof![8 => 32..=96_u64, 4 => 97..=256_u64, 1 => 257..=2048_u64];
    let disk_mib = prop_oneof![2 => 64..=128_u64, 3 => 129..=8192_u64];
    let swap = weighted(0.6, (disk(), 1..=256_u64));
    let zram = weighted(0.3, 1..=256_u64);
    let fs = select(vec![FsKind::Xfs, FsKind::Ext4]);
    let disks = (disk(), disk_mib, swap, zram, fs);
    (vec(node, 1..=2), 1..=8_u32, disks).prop_map(|(node_mib, cpus, (disk, disk_mib, swap, zram, fs))| {
        let cpus = cpus.max(node_mib.len() as u32);
        MachineCase { node_mib, cpus, disk, disk_mib, swap, zram, fs }
    })
}

fn memory_op() -> impl Strategy<Value = Op> {
    let slot = || 0..MAPPINGS;
    let access = select(vec![Access::Read, Access::Write]);
    let advice = select(vec![Advice::HugePage, Advice::NoHugePage, Advice::DontNeed, Advice::Random]);
    prop_oneof![
        4 => (slot(), share(), any::<bool>()).prop_map(|(slot, size, huge_aligned)| Op::Map { slot, size, huge_aligned }),
        6 => (slot(), share(), any::<bool>(), 0..3_u8)
            .prop_map(|(slot, size, huge, reads)| Op::Fill { slot, size, huge, reads }),
        1 => slot().prop_map(|slot| Op::Unmap { slot }),
        2 => (slot(), advice).prop_map(|(slot, advice)| Op::Advise { slot, advice }),
        8 => (slot(), any::<u8>(), share(), access)
            .prop_map(|(slot, from, size, access)| Op::Touch { slot, from, size, access }),
    ]
}

fn file_op() -> impl Strategy<Value = Op> {
    let fd = || 0..FDS;
    let name = || 0..NAMES;
    let odd = || prop_oneof![3 => Just(0_u16), 1 => 0..4096_u16];
    let advice = select(vec![FileAdvice::Normal, FileAdvice::Sequential, FileAdvice::Random, FileAdvice::DontNeed]);
    prop_oneof![
        6 => (fd(), name(), any::<bool>(), prop::bool::weighted(0.9))
            .prop_map(|(fd, name, shared, create)| Op::Open { fd, name, shared, create }),
        1 => fd().prop_map(|fd| Op::Close { fd }),
        6 => (fd(), share(), share(), odd()).prop_map(|(fd, from, size, odd)| Op::Write { fd, from, size, odd }),
        6 => (fd(), share(), share(), odd()).prop_map(|(fd, from, size, odd)| Op::Read { fd, from, size, odd }),
        2 => (fd(), share()).prop_map(|(fd, size)| Op::Truncate { fd, size }),
        1 => fd().prop_map(|fd| Op::Fsync { fd }),
        1 => (fd(), advice).prop_map(|(fd, advice)| Op::Fadvise { fd, advice }),
        2 => (name(), any::<bool>()).prop_map(|(name, shared)| Op::Unlink { name, shared }),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(shared, emptied)| Op::Rmdir { shared, emptied }),
        1 => Just(Op::Sync),
        4 => (name(), any::<bool>(), share(), 0..3_u8)
            .prop_map(|(name, shared, size, reads)| Op::Stream { name, shared, size, reads }),
        2 => (any::<u8>(), (0..=150_u8).prop_map(Share), 0..4_u8, prop::bool::weighted(0.3))
            .prop_map(|(first, size, pages, remove)| Op::Many { first, size, pages, remove }),
    ]
}

fn pipe_op() -> impl Strategy<Value = Op> {
    (share(), share(), 0..4096_u16).prop_map(|(written, read, odd)| Op::Pipe { written, read, odd })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => memory_op(),
        5 => file_op(),
        1 => pipe_op(),
        1 => (0..200_000_u32).prop_map(|us| Op::Sleep { us }),
        1 => (0..20_000_u32).prop_map(|us| Op::Compute { us }),
    ]
}

fn process() -> impl Strategy<Value = ProcessCase> {
    let round = vec(vec(op(), 0..10), 1..4);
    (vec(round, 1..4), prop::bool::weighted(0.1), weighted(0.1, 0..2000_u64))
        .prop_map(|(rounds, leaves_threads, stop_ms)| ProcessCase { rounds, leaves_threads, stop_ms })
}

fn tunable() -> impl Strategy<Value = (&'static str, String)> {
    select(TUNED).prop_flat_map(|(name, values)| (Just(name), select(values).prop_map(str::to_string)))
}

fn fault() -> impl Strategy<Value = FaultCase> {
    (0..3000_u64, any::<bool>(), 0..4_u32).prop_map(|(at_ms, swap, requests)| FaultCase { at_ms, swap, requests })
}

/// Any case.
pub(super) fn case() -> impl Strategy<Value = Case> {
    // The newest differs most from the others, which are alike.
    let others: Vec<&'static str> = KERNELS.iter().map(|(name, _)| *name).collect();
    let kernel = prop_oneof![2 => select(others), 1 => Just("6.12")];
    let faults = prop_oneof![4 => Just(Vec::new()), 1 => vec(fault(), 1..4)];
    (machine(), kernel, vec(tunable(), 0..5), any::<u64>(), faults, vec(process(), 1..4)).prop_map(
        |(machine, kernel, tunables, seed, faults, processes)| Case {
            machine,
            kernel,
            tunables,
            seed,
            faults,
            processes,
        },
    )
}

#[test]
fn every_tunable_is_drawn() {
    let names = |list: Vec<&'static str>| list.into_iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(names(TUNED.iter().map(|(n, _)| *n).collect()), names(TUNABLES.iter().map(|t| t.name).collect()));
}
