//! Collectors: what the kernel shows before, while and after a workload runs.

mod hist;
mod recording;
mod series;
mod snapshot;
mod tasks;

pub use hist::{HistTrigger, Histograms, TRIGGERS};
pub use recording::Recording;
pub(crate) use series::Sampler;
pub use series::Series;
pub use snapshot::Snapshot;
