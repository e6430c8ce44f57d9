//! Tests that need a machine.

mod boot;
mod lists;
mod random;
