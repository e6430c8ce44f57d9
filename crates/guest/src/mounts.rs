//! The file systems of the kernel that the agent works with.

use std::fs;
use std::io;

use rustix::mount::{MountFlags, mount};

/// Where the workload's cgroup is made.
pub(crate) const CGROUPS: &str = "/cg";
/// tracefs.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";
/// The test mount.
pub(crate) const DATA: &str = "/data";

/// What every guest has: type, place.
const NEEDED: &[(&str, &str)] = &[("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("cgroup2", CGROUPS)];
/// What shows more where the kernel has it.
const USEFUL: &[(&str, &str)] = &[("debugfs", "/sys/kernel/debug"), ("tracefs", TRACEFS)];

/// Mounts all of them.
pub(crate) fn mount_kernel() -> Result<(), String> {
    for (kind, place) in NEEDED {
        fs::create_dir_all(place).map_err(|error| format!("{place}: {error}"))?;
        match mount(*kind, *place, *kind, MountFlags::empty(), None) {
            Ok(()) => {}
            // A kernel may mount devtmpfs itself.
            Err(error) if *kind == "devtmpfs" && error == rustix::io::Errno::BUSY => {}
            Err(error) => return Err(format!("mount of {kind} on {place}: {}", io::Error::from(error))),
        }
    }
    for (kind, place) in USEFUL {
        // What is missing is told when it is read.
        let _ = mount(*kind, *place, *kind, MountFlags::empty(), None);
    }
    Ok(())
}

/// Mounts the data disk.
pub(crate) fn mount_data(device: &str, kind: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("mount of {kind} from {device} on {DATA}: {error}");
    fs::create_dir_all(DATA).map_err(failed)?;
    // Without this ext4 goes on initialising its inode tables in the background.
    let options = (kind == "ext4").then_some(c"noinit_itable");
    mount(device, DATA, kind, MountFlags::NOATIME, options).map_err(|error| failed(error.into()))
}
