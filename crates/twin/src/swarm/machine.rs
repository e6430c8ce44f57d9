//! The machine and the kernel of a case.

use profile::{Kernel, Machine};

use super::case::{Case, DiskKind, FsKind, MachineCase};
use crate::{RunSpec, TraceFilter};

/// A disk's figures as in `machines/`, but for its size.
fn device(kind: DiskKind, mib: u64) -> String {
    let bytes = mib << 20;
    match kind {
        DiskKind::Ram => {
            format!("model = \"ram\"\ncapacity_bytes = {bytes}\nlatency_ns = 1000\ncopy_bytes_per_s = 5_000_000_000\n")
        }
        DiskKind::Ssd => format!(
            "model = \"ssd\"\ncapacity_bytes = {bytes}\nqueue_depth = 32\nchannels = 16\nread_latency_ns = 89_715\n\
             write_latency_ns = 14_423\ncommand_overhead_ns = 2_700\nread_bytes_per_s = 540_000_000\n\
             write_bytes_per_s = 520_000_000\ninterface_bytes_per_s = 550_000_000\nflush_latency_ns = 500_000\n\
             flush_alone = true\n"
        ),
        DiskKind::Hdd => format!(
            "model = \"hdd\"\ncapacity_bytes = {bytes}\nrpm = 7200\nheads = 4\nzones = 16\n\
             outer_bytes_per_s = 150_000_000\ninner_bytes_per_s = 75_000_000\nseek_track_us = 800\n\
             seek_average_us = 8_500\nseek_full_us = 18_000\nwrite_settle_us = 1_000\ncommand_overhead_us = 100\n\
             interface_bytes_per_s = 300_000_000\nncq_depth = 31\nwrite_cache_bytes = 33_554_432\n\
             write_cache_entries = 256\nread_ahead_bytes = 1_048_576\nread_segments = 16\n"
        ),
    }
}

fn text(machine: &MachineCase) -> String {
    let mut out =
        format!("name = \"swarm\"\ndescription = \"\"\n[cpus]\ncount = {}\nspeed = 1.0\nsource = \"\"\n", machine.cpus);
    for mib in &machine.node_mib {
        out += &format!("[[node]]\nmemory = \"{mib}MiB\"\n");
    }
    let disk = |name: &str, kind, mib| {
        format!("[[disk]]\nname = \"{name}\"\nsource = \"\"\n[disk.device]\n{}", device(kind, mib))
    };
    out += &disk("data", machine.disk, machine.disk_mib);
    if let Some((kind, mib)) = machine.swap {
        out += &disk("swap", kind, mib);
        out += &format!("[[swap]]\ndisk = \"swap\"\nsize = \"{mib}MiB\"\n");
    }
    if let Some(mib) = machine.zram {
        out += &format!("[[zram]]\nsize = \"{mib}MiB\"\n");
    }
    if machine.zram.is_some() || machine.swap.is_some() {
        out += "[contents]\nratio = 1.5\nsame-filled-percent = 10\nsource = \"none\"\n";
    }
    let fs = match machine.fs {
        FsKind::Xfs => "xfs",
        FsKind::Ext4 => "ext4",
    };
    out + &format!("[mount]\ndisk = \"data\"\nfs = \"{fs}\"\n")
}

/// Everything that the run of a case depends on, but for its program.
pub(super) fn spec(case: &Case) -> RunSpec {
    let machine: Machine = toml::from_str(&text(&case.machine)).expect("a machine's file");
    let kernel = Kernel::load(case.kernel).expect("built in");
    let changes: Vec<(String, String)> = case.tunables.iter().map(|(n, v)| ((*n).to_string(), v.clone())).collect();
    let tunables = kernel.tunables_with(&changes).expect("values in range");
    let trace = TraceFilter { kmem: true, vmscan: true, compaction: true };
    RunSpec {
        machine,
        kernel,
        tunables,
        seed: case.seed,
        iteration: 0,
        verify: true,
        trace,
        series: None,
        changes: Vec::new(),
    }
}
