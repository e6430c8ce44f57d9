//! Output formats, one file each. Everything is returned as a `String`; nothing is printed here.
//!
//! Tables are plain UTF-8 without colours, laid out for terminals of 100 to 140 columns.

mod finding;
mod json;
mod kswapd;
mod number;
mod study;
mod study_table;
mod table;
mod validation;
mod worlds;
mod zone_picture;

pub use finding::finding;
pub use json::{HostUse, RunReport, to_json};
pub use kswapd::{KswapdEvidence, why_busy};
pub use number::{format_effect, format_number};
pub use study::{CaseReport, Effect, ReproduceReport, Row, StudyReport, TwinEffect};
pub use study_table::study_table;
pub use table::{Column, ComparisonCell, ComparisonRow, LEGEND, comparison_rows, comparison_table, list_table};
pub use validation::{
    ClassSummary, Compared, Counted, CounterReport, EffectReport, GroupReport, GroupRuns, ValidationReport, Waiting,
    validation_text,
};
pub use worlds::{Worlds, worlds_table};
pub use zone_picture::{ZoneRow, zone_picture};
