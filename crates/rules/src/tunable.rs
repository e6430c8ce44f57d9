//! The tunables: each is one entry with its name, unit, default, legal range and meaning.
//!
//! `Tunables`, the parser of `--set`, the listing on the command line and a tuner's search space all come from
//! the one table below. Source: Documentation/admin-guide/sysctl/vm.rst, mm/transhuge.rst and mm/multigen_lru.rst (6.12).

use std::fmt;
use std::ops::RangeInclusive;

use units::did_you_mean;

/// When a fault may use a huge page (`/sys/kernel/mm/transparent_hugepage/enabled`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThpEnabled {
    /// In every anonymous mapping that is large enough.
    Always,
    /// Where `MADV_HUGEPAGE` was given.
    Madvise,
    /// Never.
    Never,
}

/// How hard a fault tries for a huge page (`/sys/kernel/mm/transparent_hugepage/defrag`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThpDefrag {
    /// Direct reclaim and compaction for every fault.
    Always,
    /// Wake kswapd and kcompactd, fall back at once.
    Defer,
    /// Direct where advised, deferred elsewhere.
    DeferMadvise,
    /// Direct where advised, nothing elsewhere: the default.
    Madvise,
    /// Nothing: only a free huge page is used.
    Never,
}

/// Parts of the multi-gen LRU that are switched on (`/sys/kernel/mm/lru_gen/enabled`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LruGenCaps(u8);

impl LruGenCaps {
    /// Nothing: active and inactive lists.
    pub const NONE: LruGenCaps = LruGenCaps(0);
    /// Generations without walks.
    pub const CORE: LruGenCaps = LruGenCaps(1);
    /// Generations, and walks over all page tables of a space.
    pub const CORE_AND_WALK: LruGenCaps = LruGenCaps(3);
    /// Everything.
    pub const ALL: LruGenCaps = LruGenCaps(7);

    /// Generations at all (`LRU_GEN_CORE`).
    pub fn core(self) -> bool {
        self.0 & 1 != 0
    }

    /// The aging walks page tables (`LRU_GEN_MM_WALK`).
    pub fn mm_walk(self) -> bool {
        self.0 & 2 != 0
    }

    /// It also uses the accessed bit of the tables themselves (`LRU_GEN_NONLEAF_YOUNG`).
    pub fn nonleaf_young(self) -> bool {
        self.0 & 4 != 0
    }
}

/// Words of [`LruGenCaps`]: those that sysfs takes, and the masks that it shows.
pub const LRU_GEN_ENABLED: &[(&str, LruGenCaps)] = &[
    ("n", LruGenCaps::NONE),
    ("y", LruGenCaps::ALL),
    ("0x0000", LruGenCaps::NONE),
    ("0x0001", LruGenCaps::CORE),
    ("0x0002", LruGenCaps(2)),
    ("0x0003", LruGenCaps::CORE_AND_WALK),
    ("0x0004", LruGenCaps(4)),
    ("0x0005", LruGenCaps(5)),
    ("0x0006", LruGenCaps(6)),
    ("0x0007", LruGenCaps::ALL),
];
/// A switch of a module (`/sys/module/*/parameters/*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// It is off.
    Off,
    /// It is on.
    On,
}

impl Switch {
    /// Whether it is on.
    pub fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// Words of [`Switch`]: those that are shown, and those that are taken too.
pub const SWITCH: &[(&str, Switch)] = &[
    ("N", Switch::Off),
    ("Y", Switch::On),
    ("n", Switch::Off),
    ("y", Switch::On),
    ("0", Switch::Off),
    ("1", Switch::On),
];

/// How zswap and zram compress pages (`/sys/module/zswap/parameters/compressor`, `comp_algorithm`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compressor {
    /// LZO.
    Lzo,
    /// LZO with run-length encoding: the default of zram (`CONFIG_ZRAM_DEF_COMP`).
    #[default]
    LzoRle,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// Its name in the kernel's crypto interface and in `comp_algorithm`.
    pub fn name(self) -> &'static str {
        ZSWAP_COMPRESSOR.iter().find(|(_, compressor)| *compressor == self).map_or("", |(name, _)| name)
    }

    /// The one with this name.
    ///
    /// # Errors
    /// There is none; the text says which there are.
    pub fn named(name: &str) -> Result<Compressor, String> {
        let known = ZSWAP_COMPRESSOR.iter().find(|(known, _)| *known == name).map(|(_, compressor)| *compressor);
        known.ok_or_else(|| {
            let names: Vec<&str> = ZSWAP_COMPRESSOR.iter().map(|(name, _)| *name).collect();
            format!("`{name}` is no compressor: expected one of {}", names.join(", "))
        })
    }
}

/// Words of [`Compressor`]: names of the kernel's crypto interface.
pub const ZSWAP_COMPRESSOR: &[(&str, Compressor)] =
    &[("lzo", Compressor::Lzo), ("lzo-rle", Compressor::LzoRle), ("lz4", Compressor::Lz4), ("zstd", Compressor::Zstd)];
/// Words of [`ThpEnabled`], as in sysfs.
pub const THP_ENABLED: &[(&str, ThpEnabled)] =
    &[("always", ThpEnabled::Always), ("madvise", ThpEnabled::Madvise), ("never", ThpEnabled::Never)];
/// Words of [`ThpDefrag`], as in sysfs.
pub const THP_DEFRAG: &[(&str, ThpDefrag)] = &[
    ("always", ThpDefrag::Always),
    ("defer", ThpDefrag::Defer),
    ("defer+madvise", ThpDefrag::DeferMadvise),
    ("madvise", ThpDefrag::Madvise),
    ("never", ThpDefrag::Never),
];

/// Why a tunable was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TunableError {
    /// No tunable has this name; the closest one is offered, if it is like it.
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The value is not what the tunable takes.
    Value {
        /// The tunable.
        name: &'static str,
        /// What was given.
        given: String,
        /// What it takes.
        expected: String,
    },
}

impl fmt::Display for TunableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunableError::Unknown { name } => {
                let closest = did_you_mean(name, TUNABLES.iter().map(|tunable| tunable.name));
                write!(f, "unknown tunable `{name}`; {closest}`mmtwin list tunables` shows all")
            }
            TunableError::Value { name, given, expected } => {
                write!(f, "{name}: `{given}` is not {expected}")
            }
        }
    }
}

impl std::error::Error for TunableError {}

/// One tunable as the registry describes it.
pub struct Tunable {
    /// Name as for `sysctl`, or `thp.`, `lru_gen.` or `zswap.` and the file's name below `/sys/kernel/mm/transparent_hugepage`,
    /// `/sys/kernel/mm/lru_gen` or `/sys/module/zswap/parameters`.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Legal values in words.
    pub range: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Reads it as text.
    pub get: fn(&Tunables) -> String,
    /// Sets it from text.
    pub set: fn(&mut Tunables, &str) -> Result<(), TunableError>,
}

/// A number of this range, or the one out of it that turns the tunable off, if there is one.
fn parse_number(name: &'static str, text: &str, off: &[u64], range: RangeInclusive<u64>) -> Result<u64, TunableError> {
    match text.trim().parse::<u64>() {
        Ok(v) if off.contains(&v) || range.contains(&v) => Ok(v),
        _ => {
            let off: String = off.iter().map(|off| format!("{off} or ")).collect();
            let expected = format!("{off}a whole number from {} to {}", range.start(), range.end());
            Err(TunableError::Value { name, given: text.to_string(), expected })
        }
    }
}

fn parse_word<T: Copy>(name: &'static str, text: &str, words: &[(&str, T)]) -> Result<T, TunableError> {
    words.iter().find(|(word, _)| *word == text.trim()).map(|(_, value)| *value).ok_or_else(|| {
        let list: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        TunableError::Value { name, given: text.to_string(), expected: format!("one of {}", list.join(", ")) }
    })
}

fn word_of<T: Copy + PartialEq>(value: T, words: &[(&'static str, T)]) -> String {
    words.iter().find(|(_, v)| *v == value).map(|(word, _)| (*word).to_string()).unwrap_or_default()
}

macro_rules! tunables {
    (
        numbers { $($(#[doc = $ndoc:literal])* $nfield:ident: $nname:literal, $nunit:literal, $([$off:literal or])? $lo:literal..=$hi:expr, $ndefault:expr;)* }
        words { $($(#[doc = $wdoc:literal])* $wfield:ident: $wname:literal, $wtype:ty, $wtable:ident, $wrange:literal, $wdefault:expr;)* }
    ) => {
        /// The values of all tunables of a machine.
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct Tunables {
            $($(#[doc = $ndoc])* pub $nfield: u64,)*
            $($(#[doc = $wdoc])* pub $wfield: $wtype,)*
        }

        impl Default for Tunables {
            fn default() -> Tunables {
                Tunables { $($nfield: $ndefault,)* $($wfield: $wdefault,)* }
            }
        }

        /// Every tunable, in the order of the documentation.
        pub const TUNABLES: &[Tunable] = &[
            $(Tunable {
                name: $nname,
                unit: $nunit,
                range: concat!($(stringify!($off), "|",)? stringify!($lo), "..=", stringify!($hi)),
                doc: concat!($($ndoc,)*),
                get: |t| t.$nfield.to_string(),
                set: |t, text| { t.$nfield = parse_number($nname, text, &[$($off)?], $lo..=$hi)?; Ok(()) },
            },)*
            $(Tunable {
                name: $wname,
                unit: "",
                range: $wrange,
                doc: concat!($($wdoc,)*),
                get: |t| word_of(t.$wfield, $wtable),
                set: |t, text| { t.$wfield = parse_word($wname, text, $wtable)?; Ok(()) },
            },)*
        ];
    };
}

tunables! {
    numbers {
        /// Memory that the watermarks keep free; 0 computes it from the machine as at boot.
        min_free_kbytes: "vm.min_free_kbytes", "KiB", 0..=1_073_741_824, 0;
        /// Distance between watermarks, in fractions of 10000 of the zone.
        watermark_scale_factor: "vm.watermark_scale_factor", "1/10000", 1..=3000, 10;
        /// Largest boost of the high watermark after fragmentation, in fractions of 10000; 0 turns it off.
        watermark_boost_factor: "vm.watermark_boost_factor", "1/10000", 0..=1_000_000, 15_000;
        /// Relative cost of swapping against dropping file pages.
        swappiness: "vm.swappiness", "", 0..=200, 60;
        /// log2 of the pages read at once from swap.
        page_cluster: "vm.page-cluster", "log2 pages", 0..=10, 3;
        /// Pressure on dentries and inodes relative to page cache, in percent.
        vfs_cache_pressure: "vm.vfs_cache_pressure", "%", 0..=100_000, 100;
        /// Dirty share of dirtyable memory at which writers are throttled; unused while dirty_bytes is set.
        dirty_ratio: "vm.dirty_ratio", "%", 0..=100, 20;
        /// Dirty share of dirtyable memory at which the flushers start; unused while dirty_background_bytes is set.
        dirty_background_ratio: "vm.dirty_background_ratio", "%", 0..=100, 10;
        /// Dirty memory at which writers are throttled, two pages at least; 0 uses dirty_ratio.
        dirty_bytes: "vm.dirty_bytes", "B", [0 or] 8192..=u64::MAX, 0;
        /// Dirty memory at which the flushers start; 0 uses dirty_background_ratio.
        dirty_background_bytes: "vm.dirty_background_bytes", "B", 0..=u64::MAX, 0;
        /// Age at which dirty data is written by the periodic flush.
        dirty_expire_centisecs: "vm.dirty_expire_centisecs", "10 ms", 0..=360_000, 3000;
        /// Interval of the periodic flush; 0 turns it off.
        dirty_writeback_centisecs: "vm.dirty_writeback_centisecs", "10 ms", 0..=360_000, 500;
        /// Fragmentation index above which compaction is preferred to reclaim.
        extfrag_threshold: "vm.extfrag_threshold", "1/1000", 0..=1000, 500;
        /// How eagerly kcompactd compacts in the background.
        compaction_proactiveness: "vm.compaction_proactiveness", "%", 0..=100, 20;
        /// Age below which the oldest pages are not evicted; if all are younger, a process is killed; 0 turns it off.
        lru_gen_min_ttl_ms: "lru_gen.min_ttl_ms", "ms", 0..=4_294_967_295, 0;
        /// Reclaim in the local node before another node is used; a bit mask.
        zone_reclaim_mode: "vm.zone_reclaim_mode", "bits", 0..=7, 0;
        /// Pages that khugepaged looks at in one turn.
        khugepaged_pages_to_scan: "thp.khugepaged/pages_to_scan", "pages", 1..=4_294_967_295, 4096;
        /// Pause of khugepaged between two turns; the kernel takes 0, too, and spins.
        khugepaged_scan_sleep_millisecs: "thp.khugepaged/scan_sleep_millisecs", "ms", 1..=4_294_967_295, 10_000;
        /// Pause of khugepaged after it got no huge page.
        khugepaged_alloc_sleep_millisecs: "thp.khugepaged/alloc_sleep_millisecs", "ms", 0..=4_294_967_295, 60_000;
        /// Empty entries of a page table that khugepaged makes a huge page of.
        khugepaged_max_ptes_none: "thp.khugepaged/max_ptes_none", "pages", 0..=511, 511;
        /// Whether khugepaged reclaims and compacts for a huge page.
        khugepaged_defrag: "thp.khugepaged/defrag", "", 0..=1, 1;
        /// Share of memory that compressed pages in zswap may take.
        zswap_max_pool_percent: "zswap.max_pool_percent", "%", 0..=100, 20;
        /// Share of that limit that zswap shrinks to before it takes pages again.
        zswap_accept_threshold_percent: "zswap.accept_threshold_percent", "%", 0..=100, 90;
    }
    words {
        /// Whether pages are aged in generations, where the kernel can; bits: 1 at all, 2 by walking page tables, 4 by their accessed bits.
        lru_gen_enabled: "lru_gen.enabled", LruGenCaps, LRU_GEN_ENABLED, "y|n|0x0000..0x0007", LruGenCaps::NONE;
        /// Whether pages go to a compressed cache in memory before they go to swap.
        zswap_enabled: "zswap.enabled", Switch, SWITCH, "N|Y", Switch::Off;
        /// Whether reclaim has zswap write pages to their devices.
        zswap_shrinker_enabled: "zswap.shrinker_enabled", Switch, SWITCH, "N|Y", Switch::Off;
        /// How zswap compresses pages.
        zswap_compressor: "zswap.compressor", Compressor, ZSWAP_COMPRESSOR, "lzo|lzo-rle|lz4|zstd", Compressor::Lzo;
        /// When a fault may use a huge page.
        thp_enabled: "thp.enabled", ThpEnabled, THP_ENABLED, "always|madvise|never", ThpEnabled::Always;
        /// How hard a fault tries for a huge page.
        thp_defrag: "thp.defrag", ThpDefrag, THP_DEFRAG, "always|defer|defer+madvise|madvise|never", ThpDefrag::Madvise;
    }
}

impl Tunables {
    /// Whether watermarks that follow from these follow from `others` too.
    pub fn give_watermarks_of(&self, others: &Tunables) -> bool {
        let causes = |t: &Tunables| (t.min_free_kbytes, t.watermark_scale_factor, t.thp_enabled);
        causes(self) == causes(others)
    }

    /// Sets the tunable `name` from text.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), TunableError> {
        let found = TUNABLES.iter().find(|t| t.name == name);
        let tunable = found.ok_or_else(|| TunableError::Unknown { name: name.to_string() })?;
        (tunable.set)(self, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tunable_reads_back_what_was_set() {
        for tunable in TUNABLES {
            let mut values = Tunables::default();
            let text = (tunable.get)(&values);
            (tunable.set)(&mut values, &text).expect(tunable.name);
            assert_eq!(values, Tunables::default(), "{}", tunable.name);
        }
    }

    #[test]
    fn an_unknown_name_offers_the_closest_one() {
        for (asked, offered) in [("vm.watermark_boost", "vm.watermark_boost_factor"), ("swapiness", "vm.swappiness")] {
            let error = Tunables::default().set(asked, "1").unwrap_err();
            assert!(error.to_string().contains(&format!("did you mean `{offered}`")), "{error}");
        }
        let error = Tunables::default().set("vm.nosuch", "1").unwrap_err();
        assert_eq!(error.to_string(), "unknown tunable `vm.nosuch`; `mmtwin list tunables` shows all");
    }

    #[test]
    fn a_value_out_of_range_says_the_range() {
        let error = Tunables::default().set("vm.swappiness", "201").unwrap_err();
        assert_eq!(error.to_string(), "vm.swappiness: `201` is not a whole number from 0 to 200");
    }

    #[test]
    fn a_limit_of_dirty_memory_is_two_pages_at_least_or_none() {
        let set = |name: &str, text: &str| Tunables::default().set(name, text);
        for good in ["0", "8192", "18446744073709551615"] {
            assert_eq!(set("vm.dirty_bytes", good), Ok(()), "{good}");
        }
        let error = set("vm.dirty_bytes", "8191").unwrap_err().to_string();
        let expected = "0 or a whole number from 8192 to 18446744073709551615";
        assert_eq!(error, format!("vm.dirty_bytes: `8191` is not {expected}"));
        // `SYSCTL_LONG_ONE` is its least.
        assert_eq!(set("vm.dirty_background_bytes", "1"), Ok(()));
        let range = |name: &str| TUNABLES.iter().find(|tunable| tunable.name == name).map(|tunable| tunable.range);
        assert_eq!(range("vm.dirty_bytes"), Some("0|8192..=u64::MAX"));
    }
}
