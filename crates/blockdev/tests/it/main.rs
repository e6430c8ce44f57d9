//! Behaviour of the devices through the public API. Expected values are computed from the specification; the formula
//! stands beside the number.

mod cfq;
mod drive;
mod faults;
mod hdd;
mod properties;
mod queue;
mod raid0;
mod specs;
mod ssd;
mod throttle;
mod usb;
