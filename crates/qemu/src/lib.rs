//! Boots a real kernel in QEMU with the agent ([`guest`]) as its first process, and brings back what it showed.
//!
//! By default QEMU emulates one CPU that carries out an instruction each nanosecond ([`Mode::Icount`]), and disks and swap
//! are memory: then a run is a function of its inputs, to the last counter, whatever the host does meanwhile.
//! [`Mode::Mttcg`] emulates several CPUs at their own speed with virtio disks, and [`Mode::Kvm`] takes the host's; they are not reproducible.
//!
//! Nothing stays behind: QEMU is killed when the [`run`] ends, however it ends, and its files are in a directory that goes
//! with it.

mod agent;
mod command;
mod cpio;
mod disk;
mod elf;
mod error;
mod image;
mod initramfs;
mod launch;
mod modules;
mod outcome;
mod release;

pub use agent::find_agent;
pub use command::{FileSystem, GuestMachine, LOW_MEMORY, Mode};
pub use error::QemuError;
pub use image::KernelImage;
pub use launch::{GuestRun, Watch, run};
pub use outcome::Outcome;
