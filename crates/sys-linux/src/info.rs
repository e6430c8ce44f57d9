//! Sizes of the machine that this program runs on.

use std::fs;
use std::io::{Error, ErrorKind, Result};

use sys::SystemInfo;
use units::{Bytes, Pages};

/// What `/proc/meminfo` and `/sys/devices/system/node` say; `mem_limit` (a cgroup's) makes the machine look smaller.
///
/// # Errors
/// `/proc/meminfo` cannot be read or has no `MemTotal`.
pub fn system_info(mem_limit: Option<Bytes>) -> Result<SystemInfo> {
    let meminfo = fs::read_to_string("/proc/meminfo")?;
    let total = mem_total(&meminfo)
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, "/proc/meminfo: expected a line \"MemTotal: N kB\""))?;
    let node = |n: u32| fs::read_to_string(format!("/sys/devices/system/node/node{n}/meminfo")).ok();
    let mut node_mem: Vec<Pages> = (0..).map_while(node).filter_map(|text| mem_total(&text)).collect();
    let cpus = std::thread::available_parallelism()?.get() as u32;
    let mem_total = match mem_limit.map(Bytes::pages_down) {
        Some(limit) if limit < total => {
            // A limit does not say on which node its memory is.
            node_mem = vec![limit];
            limit
        }
        _ => total,
    };
    if node_mem.is_empty() {
        node_mem.push(mem_total);
    }
    Ok(SystemInfo { mem_total, node_mem, cpus, cpu_speed: 1.0 })
}

/// The value of `MemTotal:` in KiB, alone or after `Node N`.
fn mem_total(text: &str) -> Option<Pages> {
    let line = text.lines().find_map(|line| line.split_once("MemTotal:"))?.1;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::kib(kib).pages_down())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        assert_eq!(mem_total("MemTotal:        1024 kB\nMemFree: 1 kB\n"), Some(Pages(256)));
        assert_eq!(mem_total("\nNode 0 MemTotal:       4096 kB\n"), Some(Pages(1024)));
        assert_eq!(mem_total("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_limit_makes_the_machine_smaller_and_never_larger() {
        let real = system_info(None).unwrap();
        let limited = system_info(Some(Bytes::mib(64))).unwrap();
        assert_eq!((limited.mem_total, limited.node_mem), (Pages(16384), vec![Pages(16384)]));
        assert_eq!(system_info(Some(Bytes::gib(1 << 20))).unwrap(), real);
    }
}
