//! Tests of anonymous memory as a whole.

mod faults;
mod huge;
mod oom;
mod random;
mod swapping;
