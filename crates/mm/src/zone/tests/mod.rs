//! Tests that need a machine.

mod boot;
mod fallback;
mod lists;
mod paths;
mod random;
mod runs;
mod start;
mod vmstat_worker;
mod watermarks;
