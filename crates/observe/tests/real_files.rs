//! Files of real kernels (Debian's 6.1 and 6.12 in a guest): what is read is written again byte for byte.

use std::fs;
use std::path::PathBuf;

use observe::{
    Buddyinfo, Counters, LruGenInfo, Meminfo, Pagetypeinfo, ParseError, Pressure, Slabinfo, Snapshot, Zoneinfo,
    vmstat_names,
};
use rules::Era;

const KERNELS: [&str; 2] = ["6.1", "6.12"];

fn dir(kernel: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(kernel)
}

fn text(kernel: &str, file: &str) -> String {
    fs::read_to_string(dir(kernel).join(file)).unwrap()
}

fn round_trip<T>(file: &str, parse: impl Fn(&str, &str) -> Result<T, ParseError>, write: impl Fn(&T) -> String) {
    for kernel in KERNELS {
        let real = text(kernel, file);
        let parsed = parse(file, &real).unwrap_or_else(|error| panic!("{kernel}: {error}"));
        assert_eq!(write(&parsed), real, "{kernel} {file}");
    }
}

#[test]
fn every_format_comes_back() {
    round_trip("vmstat", Counters::parse, Counters::write);
    round_trip("zoneinfo", Zoneinfo::parse, Zoneinfo::write);
    round_trip("buddyinfo", Buddyinfo::parse, Buddyinfo::write);
    round_trip("pagetypeinfo", Pagetypeinfo::parse, Pagetypeinfo::write);
    round_trip("meminfo", Meminfo::parse, Meminfo::write);
    round_trip("slabinfo", Slabinfo::parse, Slabinfo::write);
    round_trip("lru_gen", LruGenInfo::parse, LruGenInfo::write);
    for file in ["pressure_cpu", "pressure_io", "pressure_memory"] {
        round_trip(file, Pressure::parse, Pressure::write);
    }
}

#[test]
fn the_table_of_6_12_is_in_the_order_that_6_12_prints() {
    let real = Counters::parse("vmstat", &text("6.12", "vmstat")).unwrap();
    assert_eq!(real.ordered(Era::V6_12), real);
    let printed: Vec<&str> = vmstat_names(Era::V6_12).filter(|n| real.get(n).is_some()).collect();
    assert_eq!(printed.len(), real.0.len());
}

#[test]
fn figures_that_two_files_tell_agree() {
    for kernel in KERNELS {
        let snapshot = Snapshot::read(&dir(kernel)).unwrap();
        let (zoneinfo, buddyinfo) = (snapshot.zoneinfo.unwrap(), snapshot.buddyinfo.unwrap());
        let pagetypeinfo = snapshot.pagetypeinfo.unwrap();
        assert_eq!(buddyinfo.zones.len(), pagetypeinfo.nodes[0].zones.len());
        for (zone, blocks) in buddyinfo.zones.iter().zip(&pagetypeinfo.nodes[0].zones) {
            assert_eq!(zone.zone, blocks.zone);
            let section = zoneinfo.zone(zone.node, &zone.zone).unwrap();
            let pageblocks = section.spanned.div_ceil(pagetypeinfo.nodes[0].pageblock_pages);
            assert_eq!(blocks.pageblocks.iter().sum::<u64>(), pageblocks, "{}", zone.zone);
            let pcp: u64 = section.populated.iter().flat_map(|p| &p.pagesets).map(|p| p.count).sum();
            // The files are read one after the other: a few pages move in between.
            assert!(zone.free_pages(0).abs_diff(section.free) <= pcp + 64, "{}", zone.zone);
        }
    }
}

#[test]
fn zoneinfo_of_6_12_holds_what_the_text_says() {
    let info = Zoneinfo::parse("zoneinfo", &text("6.12", "zoneinfo")).unwrap();
    let zone = info.zone(0, "DMA32").unwrap();
    assert_eq!((zone.free, zone.min, zone.low, zone.high), (121_697, 994, 1242, 1490));
    assert_eq!((zone.boost, zone.promo, zone.cma), (Some(0), Some(1738), Some(0)));
    assert_eq!((zone.spanned, zone.present, zone.managed), (143_360, 143_360, 130_881));
    assert_eq!(info.zone(0, "DMA").unwrap().protection, [0, 511, 511, 511, 511]);
    let populated = zone.populated.as_ref().unwrap();
    assert_eq!(populated.stats.get("nr_zone_active_anon"), Some(1988));
    let pageset = &populated.pagesets[0];
    assert_eq!((pageset.cpu, pageset.count, pageset.high, pageset.batch), (0, 2361, 9584, 31));
    assert_eq!((pageset.stat_threshold, populated.start_pfn), (Some(6), 4096));
    assert!(zone.node_stats.is_none());
    let node_stats = info.zones[0].node_stats.as_ref().unwrap();
    assert_eq!(node_stats.get("nr_slab_unreclaimable"), Some(1905));
}
