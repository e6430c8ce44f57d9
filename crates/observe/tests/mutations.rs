//! Parsers on damaged text: an error with its line, or a value; never a panic.

use std::fs;

use observe::{
    Buddyinfo, Counters, Meminfo, Pagetypeinfo, ParseError, Pressure, Series, Slabinfo, Zoneinfo, parse_ftrace,
};
use proptest::prelude::*;

const EVENTS: &str = " kswapd0-45 [000] ..... 1.000000: mm_vmscan_kswapd_wake: nid=0 order=9\n \
    a-1 [001] ..... 2.000001: mm_compaction_end: zone_start=0x1 migrate_pfn=0x2 free_pfn=0x3 \
    zone_end=0x4, mode=sync status=success\n \
    a-1 [001] ..... 2.000002: mm_compaction_isolate_freepages: range=(0x200 ~ 0x400) nr_scanned=512 nr_taken=0\n \
    a-1 [001] ..... 2.000003: mm_compaction_try_to_compact_pages: order=9 gfp_mask=0x2742ca priority=1\n \
    a-1 [001] ..... 2.000004: mm_compaction_deferred: node=0 zone=DMA32    order=9 order_failed=0 consider=1 limit=4\n";

const FORMATS: [&str; 9] = [
    "vmstat",
    "zoneinfo",
    "buddyinfo",
    "pagetypeinfo",
    "meminfo",
    "slabinfo",
    "pressure_memory",
    "series.csv",
    "events.txt",
];

fn original(format: &str) -> String {
    match format {
        "series.csv" => "t_ns,pgfault,nr_dirty\n0,1,2\n1000,3,4\n".to_owned(),
        "events.txt" => EVENTS.to_owned(),
        file => {
            let path = format!("{}/tests/data/6.12/{file}", env!("CARGO_MANIFEST_DIR"));
            fs::read_to_string(path).unwrap()
        }
    }
}

fn parse(format: &str, text: &str) -> Result<(), ParseError> {
    match format {
        "vmstat" => Counters::parse(format, text).map(drop),
        "zoneinfo" => Zoneinfo::parse(format, text).map(drop),
        "buddyinfo" => Buddyinfo::parse(format, text).map(drop),
        "pagetypeinfo" => Pagetypeinfo::parse(format, text).map(drop),
        "meminfo" => Meminfo::parse(format, text).map(drop),
        "slabinfo" => Slabinfo::parse(format, text).map(drop),
        "series.csv" => Series::parse(format, text).map(drop),
        "events.txt" => parse_ftrace(format, text).map(drop),
        _ => Pressure::parse(format, text).map(drop),
    }
}

/// One damage: at a place (as a share of the text) bytes are cut out and others put in.
#[derive(Clone, Debug)]
struct Damage {
    place: f64,
    cut: usize,
    put: String,
}

fn damage() -> impl Strategy<Value = Damage> {
    let put = prop_oneof![
        Just(String::new()),
        Just("\n".to_owned()),
        Just("99999999999999999999999".to_owned()),
        Just("-1".to_owned()),
        Just("é".to_owned()),
        "[ -~\n]{0,8}",
    ];
    (0.0..1.0f64, 0usize..40, put).prop_map(|(place, cut, put)| Damage { place, cut, put })
}

fn apply(text: &str, damages: &[Damage]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for Damage { place, cut, put } in damages {
        let start = (place * chars.len() as f64) as usize;
        let end = (start + cut).min(chars.len());
        chars.splice(start..end, put.chars());
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_text_gives_a_place_and_never_a_panic(
        format in prop::sample::select(&FORMATS[..]),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let text = apply(&original(format), &damages);
        if let Err(error) = parse(format, &text) {
            prop_assert_eq!(&error.file, format);
            prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1);
            prop_assert!(!error.expected.is_empty() && !error.found.is_empty());
        }
    }

    #[test]
    fn any_text_gives_a_place_and_never_a_panic(text in "(?s).{0,200}") {
        for format in FORMATS {
            if let Err(error) = parse(format, &text) {
                prop_assert!(error.line >= 1 && error.line <= text.lines().count() + 1);
            }
        }
    }
}
