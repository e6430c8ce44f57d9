//! Tests of anonymous memory as a whole.

mod collapse;
mod faults;
mod huge;
mod oom;
mod random;
mod swapping;
