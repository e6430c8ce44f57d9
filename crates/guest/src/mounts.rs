//! The file systems of the kernel that the agent works with.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

/// Where the workload's cgroup is made, or, before 4.5, disks are limited.
pub(crate) const CGROUPS: &str = "/cg";
/// tracefs.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";
/// The test mount.
pub(crate) const DATA: &str = "/data";

/// What every guest has: type, place.
const NEEDED: &[(&str, &str)] = &[("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];
/// What shows more where the kernel has it.
const USEFUL: &[(&str, &str)] = &[("debugfs", "/sys/kernel/debug"), ("tracefs", TRACEFS)];

/// Version of the cgroups that are mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cgroups {
    /// Version 1, for I/O only: kernels before 4.5 have no other for good.
    V1Io,
    /// Version 2.
    V2,
}

/// Mounts all of them.
pub(crate) fn mount_kernel() -> Result<Cgroups, String> {
    let failed = |kind: &str, place: &str, error| format!("mount of {kind} on {place}: {}", io::Error::from(error));
    for (kind, place) in NEEDED {
        fs::create_dir_all(place).map_err(|error| format!("{place}: {error}"))?;
        match mount(*kind, *place, *kind, MountFlags::empty(), None) {
            Ok(()) => {}
            // A kernel may mount devtmpfs itself.
            Err(Errno::BUSY) if *kind == "devtmpfs" => {}
            Err(error) => return Err(failed(kind, place, error)),
        }
    }
    for (kind, place) in USEFUL {
        // What is missing is told when it is read.
        let _ = mount(*kind, *place, *kind, MountFlags::empty(), None);
    }
    mount_cgroups().map_err(|error| failed("cgroups", CGROUPS, error))
}

fn mount_cgroups() -> Result<Cgroups, Errno> {
    fs::create_dir_all(CGROUPS).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    match mount("cgroup2", CGROUPS, "cgroup2", MountFlags::empty(), None) {
        Err(Errno::NODEV) => {
            mount("cgroup", CGROUPS, "cgroup", MountFlags::empty(), Some(c"blkio")).map(|()| Cgroups::V1Io)
        }
        mounted => mounted.map(|()| Cgroups::V2),
    }
}

/// Mounts the data disk.
pub(crate) fn mount_data(device: &str, kind: &str, noatime: bool) -> Result<(), String> {
    let failed = |error: io::Error| format!("mount of {kind} from {device} on {DATA}: {error}");
    fs::create_dir_all(DATA).map_err(failed)?;
    // Without this ext4 goes on initialising its inode tables in the background.
    let options = (kind == "ext4").then_some(c"noinit_itable");
    let flags = if noatime { MountFlags::NOATIME } else { MountFlags::RELATIME };
    mount(device, DATA, kind, flags, options).map_err(|error| failed(error.into()))
}
