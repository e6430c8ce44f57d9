//! Snapshots, metrics and events of a run, and readers and writers of the kernel's text formats.
//!
//! - What the kernel shows, as types with an exact writer and a reader that says what it expected and where:
//!   [`Counters`] (`/proc/vmstat`), [`Zoneinfo`], [`Buddyinfo`], [`Pagetypeinfo`], [`Meminfo`], [`Slabinfo`], [`Pressure`],
//!   [`Uptime`], [`LruGenInfo`];
//!   a [`Snapshot`] is all of them at one moment.
//! - What happens in between: [`TraceEvent`] with the kernel's tracepoint names, as ftrace text; [`Series`].
//! - What a run answers with: [`Metric`] and the registry [`METRICS`], where a new metric is one entry.
//! - [`RunDir`]: all of it in a directory, the same whichever world made it.

mod buddyinfo;
mod compaction;
mod counters;
mod delta;
mod derived;
mod error;
mod event;
mod ftrace;
mod gfp_names;
mod group;
mod hist;
mod layout;
mod lru_gen;
mod manifest;
mod meminfo;
mod metric;
mod pagetypeinfo;
mod pressure;
mod reference;
mod registry;
mod run_dir;
mod series;
mod slabinfo;
mod snapshot;
mod text;
mod uptime;
mod vmscan;
mod vmstat;
mod zoneinfo;

pub use buddyinfo::{BuddyZone, Buddyinfo};
pub use compare::{Better, Interval};
pub use counters::Counters;
pub use delta::{Delta, Gauge};
pub use error::{ParseError, RunError};
pub use event::{TraceEvent, tracepoints};
pub use ftrace::{TraceRecord, parse_ftrace, write_ftrace};
pub use gfp_names::{gfp_bits, gfp_names};
pub use group::{GROUP_COUNTERS, GROUP_NUMBERS, GROUP_PRESSURE, GroupFiles};
pub use hist::{EXTFRAG_HIST, HistEntry, TraceHist, extfrag_events};
pub use layout::{FieldValue, KernelEvent};
pub use lru_gen::{Generation, LruGenInfo, LruGenMemcg, LruGenNode};
pub use manifest::{Described, Manifest, Program, World};
pub use meminfo::Meminfo;
pub use metric::Metric;
pub use pagetypeinfo::{PagetypeFree, PagetypeNode, PagetypeZone, Pagetypeinfo};
pub use pressure::{Pressure, PressureLine};
pub use reference::{REFERENCE, ReferenceRun, chosen_word, parse_settings};
pub use registry::{METRICS, MetricDef, derived_metrics, metric_def};
pub use run_dir::{MANIFEST, RunDir};
pub use series::{Series, SeriesRow};
pub use slabinfo::{SlabCache, Slabinfo};
pub use snapshot::Snapshot;
pub use uptime::Uptime;
pub use vmstat::{is_gauge, vmstat_names};
pub use zoneinfo::{Pageset, PopulatedZone, ZoneSection, Zoneinfo};
