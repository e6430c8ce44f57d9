//! Disks: found, wrapped, limited.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::agent::{load_module, write};
use crate::job::{Disks, Job};
use crate::mounts::{CGROUPS, mount_data};
use crate::{dm, swap};

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
        load_module(module)?;
    }
    let disks: Vec<String> = names(job.disks).iter().take(1 + usize::from(job.swap)).map(|d| d.to_string()).collect();
    if job.disks == Disks::Pmem {
        for (number, name) in ["data", "swap"].iter().take(disks.len()).enumerate() {
            let disk = format!("/dev/pmem{number}");
            wait_for(&disk)?;
            dm::make_linear(Path::new(&disk), name).map_err(|error| format!("device-mapper over {disk}: {error}"))?;
        }
    }
    for disk in &disks {
        wait_for(&format!("/dev/{disk}"))?;
        write(&format!("/sys/block/{disk}/queue/rotational"), "0")?;
        write(&format!("/sys/block/{disk}/queue/read_ahead_kb"), "128")?;
    }
    mount_data(&format!("/dev/{}", disks[0]), &job.fs)?;
    if let Some(disk) = disks.get(1) {
        let device = format!("/dev/{disk}");
        let made = swap::make_swap(Path::new(&device)).and_then(|()| swap::swap_on(Path::new(&device)));
        made.map_err(|error| format!("swap on {device}: {error}"))?;
    }
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

fn wait_for(device: &str) -> Result<(), String> {
    for _ in 0..WAIT.0 {
        if Path::new(device).exists() {
            return Ok(());
        }
        sleep(WAIT.1);
    }
    Err(format!("{device}: expected this disk, found none; a module may be missing"))
}

/// Makes the workload's cgroup, with a limit on each disk.
pub(crate) fn make_cgroup(disks: &[String], bytes_per_s: Option<u64>) -> Result<String, String> {
    write(&format!("{CGROUPS}/cgroup.subtree_control"), "+memory +io +cpu")?;
    let group = format!("{CGROUPS}/workload");
    fs::create_dir(&group).map_err(|error| format!("{group}: {error}"))?;
    if let Some(rate) = bytes_per_s {
        for disk in disks {
            let number = fs::read_to_string(format!("/sys/block/{disk}/dev"));
            let number = number.map_err(|error| format!("/sys/block/{disk}/dev: {error}"))?;
            write(&format!("{group}/io.max"), &format!("{} rbps={rate} wbps={rate}", number.trim()))?;
        }
    }
    Ok(group)
}
