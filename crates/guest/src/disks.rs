//! Disks: found, wrapped, limited.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::agent::{load_module, write};
use crate::job::{Disks, Job};
use crate::mounts::{CGROUPS, Cgroups, mount_data};
use crate::{dm, swap, zram};

/// How often and how long a device is waited for.
const WAIT: (u32, Duration) = (100, Duration::from_millis(50));

/// The device's driver that has to wait until the memory regions were told to be used as they are.
const PMEM_MODULE: &str = "nd_pmem.ko";

/// Loads the modules, and makes data and swap usable. The names below `/dev` of the disks.
pub(crate) fn prepare(job: &Job) -> Result<Vec<String>, String> {
    for module in &job.modules {
        if module == PMEM_MODULE {
            force_raw()?;
        }
        load_module(module, &zram::module_parameters(module, &job.zrams))?;
    }
    let disks: Vec<String> = names(job.disks).iter().take(1 + usize::from(job.swap)).map(|d| d.to_string()).collect();
    if job.disks == Disks::Pmem {
        for (number, name) in ["data", "swap"].iter().take(disks.len()).enumerate() {
            // Kernels before 4.6 map such memory with struct pages, and call it so.
            let disk = wait_for(&[&format!("/dev/pmem{number}"), &format!("/dev/pmem{number}m")])?;
            dm::make_linear(Path::new(&disk), name).map_err(|error| format!("device-mapper over {disk}: {error}"))?;
        }
    }
    for disk in &disks {
        wait_for(&[&format!("/dev/{disk}")])?;
        write(&format!("/sys/block/{disk}/queue/rotational"), "0")?;
        write(&format!("/sys/block/{disk}/queue/read_ahead_kb"), "128")?;
    }
    mount_data(&format!("/dev/{}", disks[0]), &job.fs, job.noatime)?;
    if let Some(disk) = disks.get(1) {
        let device = format!("/dev/{disk}");
        let made =
            swap::make_swap(Path::new(&device)).and_then(|()| swap::swap_on(Path::new(&device), job.swap_priority));
        made.map_err(|error| format!("swap on {device}: {error}"))?;
    }
    zram::prepare(&job.zrams)?;
    Ok(disks)
}

fn names(disks: Disks) -> [&'static str; 2] {
    match disks {
        Disks::Pmem => ["dm-0", "dm-1"],
        Disks::Virtio => ["vda", "vdb"],
    }
}

/// Persistent memory without labels: used as one namespace that takes no struct pages from the guest's memory.
fn force_raw() -> Result<(), String> {
    let devices = "/sys/bus/nd/devices";
    let entries = fs::read_dir(devices).map_err(|error| format!("{devices}: {error}"))?;
    let mut namespaces: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    namespaces.retain(|name| name.starts_with("namespace"));
    namespaces.sort();
    for name in namespaces {
        write(&format!("{devices}/{name}/force_raw"), "1")?;
    }
    Ok(())
}

/// The first of these names of a disk that is there, which takes a while.
fn wait_for(names: &[&str]) -> Result<String, String> {
    for _ in 0..WAIT.0 {
        if let Some(device) = names.iter().find(|name| Path::new(name).exists()) {
            return Ok(device.to_string());
        }
        sleep(WAIT.1);
    }
    Err(format!("{}: expected this disk, found none; a module may be missing", names[0]))
}

/// Limits the disks, for the workload's cgroup where there is one, whose place this gives, and for all where there is none.
pub(crate) fn limit(disks: &[String], bytes_per_s: Option<u64>, cgroups: Cgroups) -> Result<Option<String>, String> {
    match cgroups {
        Cgroups::V1Io => limit_for_all(disks, bytes_per_s).map(|()| None),
        Cgroups::V2 => make_cgroup(disks, bytes_per_s).map(Some),
    }
}

/// Limits each disk by the root group of version 1, whose limits, unlike those of version 2, are there and hold.
fn limit_for_all(disks: &[String], bytes_per_s: Option<u64>) -> Result<(), String> {
    for (disk, rate) in disks.iter().flat_map(|disk| bytes_per_s.map(|rate| (disk, rate))) {
        let line = format!("{} {rate}", number_of(disk)?);
        for direction in ["read", "write"] {
            write(&format!("{CGROUPS}/blkio.throttle.{direction}_bps_device"), &line)?;
        }
    }
    Ok(())
}

/// Major and minor number of a disk.
fn number_of(disk: &str) -> Result<String, String> {
    let file = format!("/sys/block/{disk}/dev");
    let number = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    Ok(number.trim().to_string())
}

/// Makes the workload's cgroup, with a limit on each disk.
fn make_cgroup(disks: &[String], bytes_per_s: Option<u64>) -> Result<String, String> {
    write(&format!("{CGROUPS}/cgroup.subtree_control"), "+memory +io +cpu")?;
    let group = format!("{CGROUPS}/workload");
    fs::create_dir(&group).map_err(|error| format!("{group}: {error}"))?;
    if let Some(rate) = bytes_per_s {
        for disk in disks {
            write(&format!("{group}/io.max"), &format!("{} rbps={rate} wbps={rate}", number_of(disk)?))?;
        }
    }
    Ok(group)
}
