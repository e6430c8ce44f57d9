//! What can be typed for a real kernel.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use units::Bytes;

/// Options of `mmtwin run --on qemu` and `--on host`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Real kernels (--on qemu, --on host)")]
pub(crate) struct RealArgs {
    /// Kernel of the guest: debian:6.12, debian:6.1, or the path of a vmlinuz; several are compared
    #[arg(long = "kernel-image", value_name = "IMAGE")]
    pub(crate) kernel_images: Vec<String>,
    /// Directory with the modules of a kernel image given by its path
    #[arg(long, value_name = "DIR")]
    pub(crate) modules: Option<PathBuf>,
    /// How the guest's CPUs are emulated [default: icount]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// Longest time that a guest may take on the wall, in seconds [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    pub(crate) wall_limit: Option<u32>,
    /// Longest time that the workload may take on the kernel's own clock, in seconds [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=604_800))]
    pub(crate) time_limit: Option<u32>,
    /// On the host: directory for the workload's files; what it makes there is removed
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// On the host: memory of the cgroup that the workload runs in, such as 512MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<Bytes>,
    /// On the host: allow what affects everybody on it
    #[arg(long)]
    pub(crate) i_know: bool,
}

/// Both limits unless they are given, in seconds.
const LIMIT_S: u32 = 3600;

impl RealArgs {
    /// How the guest's CPUs are emulated.
    pub(crate) fn mode(&self) -> ModeArg {
        self.mode.unwrap_or(ModeArg::Icount)
    }

    /// Longest time that a guest may take on the wall, in seconds.
    pub(crate) fn wall_limit_s(&self) -> u32 {
        self.wall_limit.unwrap_or(LIMIT_S)
    }

    /// Longest time that the workload may take on the kernel's own clock, in seconds.
    pub(crate) fn time_limit_s(&self) -> u32 {
        self.time_limit.unwrap_or(LIMIT_S)
    }
}

/// A size of at least 16 MiB.
fn size(text: &str) -> Result<Bytes, String> {
    let profile::Size(size) = profile::Size::parse(text)?;
    if size < Bytes::mib(16) { Err("expected at least 16MiB".to_string()) } else { Ok(size) }
}

/// How the guest's CPUs are emulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ModeArg {
    /// One CPU, an instruction a nanosecond: the same inputs give the same run
    Icount,
    /// Several CPUs at the speed that the host has: not reproducible
    Mttcg,
    /// The host's own CPUs, where it has KVM: not reproducible
    Kvm,
}
