//! A machine: CPUs, nodes, disks, swap, the file system that a workload uses.

mod booted;
mod change;
mod check;
mod zone;

use blockdev::{DeviceSpec, QueueSpec};
use indexmap::IndexMap;
use rules::Compressor;
use serde::Deserialize;
use toml::Spanned;
use units::{Bytes, Contents, PAGE_SIZE};

use crate::builtin::MACHINE;
use crate::text::Text;
use crate::{ProfileError, Size};

pub use booted::Booted;
pub use change::{MachineChange, ZramChange};
pub use zone::{MIGRATE_TYPES, MachineState, ORDERS, PcpDef, ZONE_NAMES, ZoneDef};

/// A machine as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// Name.
    pub name: Spanned<String>,
    /// What machine it is, and where its figures come from.
    pub description: String,
    /// CPUs.
    pub cpus: CpuDef,
    /// NUMA nodes.
    #[serde(rename = "node")]
    pub nodes: Vec<NodeDef>,
    /// Addresses below 4 GiB that are not RAM but PCI; ZONE_DMA32 ends where they begin, and the memory that they hide
    /// stands above 4 GiB. Default 2 GiB.
    #[serde(default)]
    pub pci_hole: Option<Spanned<Size>>,
    /// Block devices.
    #[serde(rename = "disk", default)]
    pub disks: Vec<Disk>,
    /// Swap areas.
    #[serde(rename = "swap", default)]
    pub swaps: Vec<Spanned<SwapArea>>,
    /// Swap in compressed memory.
    #[serde(rename = "zram", default)]
    pub zrams: Vec<Spanned<ZramDef>>,
    /// What anonymous pages hold, as far as compressing them goes.
    #[serde(default)]
    pub contents: Option<Spanned<ContentsDef>>,
    /// The file system that workloads use.
    #[serde(default)]
    pub mount: Option<Spanned<Mount>>,
    /// Zones as they were when something was started on the machine. Without any, they follow from the nodes' sizes, and
    /// all their memory is free.
    #[serde(rename = "zone", default)]
    pub zones: Vec<Spanned<ZoneDef>>,
    /// Seconds since boot when a workload starts on it. Without, where the periods of the kernel's workers begin is drawn.
    #[serde(default)]
    pub uptime_s: Option<Spanned<f64>>,
    /// What it holds and runs beside the workload since it was booted. Without, all its memory is the workload's.
    #[serde(default)]
    pub booted: Option<Booted>,
    /// Tunables in force on it, by name; what is asked for comes after them.
    #[serde(default)]
    sysctls: IndexMap<Spanned<String>, toml::Value>,
    /// The file as it was read.
    #[serde(skip)]
    pub text: String,
}

/// CPUs of a machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CpuDef {
    /// Logical CPUs, spread evenly over the nodes in order.
    pub count: Spanned<u32>,
    /// Speed relative to the machine that the cost table was measured on.
    pub speed: Spanned<f64>,
    /// Nanoseconds in which 4 KiB are copied or cleared, where that does not follow from the speed: a guest that counts
    /// instructions has no caches.
    #[serde(default)]
    pub page_ns: Option<Spanned<u64>>,
    /// What compressing takes, where that does not follow from the speed.
    #[serde(default)]
    pub compress_ns: Option<Spanned<CompressNs>>,
    /// Where the speed comes from.
    pub source: String,
    /// Booted with no more than the workload needs, as a guest is that has no udev and whose CPU has no `RDRAND`: what a kernel has as a module
    /// beside that, it does without, and its random number generator is not seeded yet.
    #[serde(default)]
    pub bare_boot: bool,
    /// The workload runs in a cgroup of its own, with the cpu and memory controllers: its tasks form one group for the
    /// scheduler, beside each of the kernel's threads, and their memory is charged to it. Without it a disk's limit is the root
    /// group's and holds the journal and metadata back, too.
    #[serde(default)]
    pub workload_group: bool,
}

/// Nanoseconds in which 4 KiB are compressed, put away and thrown away again, and in which they are decompressed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CompressNs {
    /// By LZO, with run-length encoding or without.
    pub lzo: [u64; 2],
    /// By LZ4.
    pub lz4: [u64; 2],
    /// By Zstandard.
    pub zstd: [u64; 2],
    /// Where these figures come from.
    pub source: String,
}

/// A NUMA node.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NodeDef {
    /// RAM.
    pub memory: Spanned<Size>,
    /// Distance to each node (ACPI SLIT); 10 is local. Default: 10 and 21.
    #[serde(default)]
    pub distance: Option<Spanned<Vec<u8>>>,
}

/// A block device.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Disk {
    /// Name, by which swap and mount refer to it.
    pub name: Spanned<String>,
    /// Where its figures come from.
    pub source: String,
    /// The device.
    pub device: Spanned<DeviceSpec>,
    /// Its request queue.
    #[serde(default)]
    pub queue: QueueSpec,
}

impl Disk {
    /// Largest window of readahead in KiB.
    pub fn read_ahead_kb(&self) -> u32 {
        self.queue.read_ahead_kb.unwrap_or_else(|| self.device.get_ref().read_ahead_kb())
    }
}

/// A swap area.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SwapArea {
    /// The disk.
    pub disk: String,
    /// Size.
    pub size: Size,
    /// Priority: higher is used first.
    #[serde(default)]
    pub priority: i16,
}

/// A zram device that is used for swap.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ZramDef {
    /// Size of what it holds, uncompressed.
    pub size: Size,
    /// Priority: higher is used first. Default 100, as zram-generator sets it.
    #[serde(default = "zram_priority")]
    pub priority: i16,
    /// How it compresses. Default lzo-rle (`CONFIG_ZRAM_DEF_COMP`). The kernel of a guest has to offer it.
    #[serde(default)]
    pub compressor: Compressor,
}

fn zram_priority() -> i16 {
    100
}

/// What anonymous pages hold. Without it they compress to half of their size, and none is filled with one word.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ContentsDef {
    /// Size of a page over its mean size compressed; 1 to 100.
    pub ratio: f64,
    /// Share of the pages that are filled with one word, in percent.
    #[serde(default)]
    pub same_filled_percent: u32,
    /// Where these figures come from.
    pub source: String,
}

/// A mounted file system.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mount {
    /// The disk.
    pub disk: String,
    /// File system.
    pub fs: Spanned<FileSystem>,
    /// Size of its partition, which begins where the disk does; without it all of the disk that swap leaves.
    pub size: Option<Size>,
    /// Size of XFS's log; without it as mkfs.xfs of the years of the studies sizes it, a 2048th of the partition from 10 MiB to 2 GiB.
    /// Since 5.15 mkfs.xfs makes none below 64 MiB.
    pub log: Option<Size>,
    /// Allocation groups of XFS (`mkfs.xfs -d agcount=`), from 4 on, of at least 16 MiB each; without it as many as mkfs.xfs makes: 4 on a
    /// disk, 8 to 32 on a striped device.
    pub allocation_groups: Option<u32>,
    /// ext4: whether tables of inodes lie at the start of block groups, as on disk, or are allocated as they are needed, which
    /// is what most machines here were measured with. Default false.
    #[serde(default)]
    pub flex_bg: bool,
    /// ext4: without extents and delayed allocation, and data before the journal, which is ext3. Default false.
    #[serde(default)]
    pub block_mapped: bool,
    /// Mounted with `noatime`: reading a file does not write its inode. Default false: `relatime`, as `mount` does.
    #[serde(default)]
    pub noatime: bool,
}

impl Mount {
    /// Size of its partition on a disk of which swap leaves so much.
    pub fn partition(&self, room: Bytes) -> Bytes {
        self.size.map_or(room, |Size(size)| size)
    }
}

/// A file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

impl FileSystem {
    /// Its name in a machine file.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Xfs => "xfs",
            FileSystem::Ext4 => "ext4",
        }
    }
}

impl Machine {
    /// The machine with this name, or in this file.
    ///
    /// # Errors
    /// No such machine, or its file is malformed or describes an impossible machine.
    pub fn load(name: &str) -> Result<Machine, ProfileError> {
        Machine::read(&Text::find(&MACHINE, name)?)
    }

    /// The machine that `content` describes; `file` only names it in errors.
    ///
    /// # Errors
    /// It is malformed or describes an impossible machine.
    pub fn from_text(file: &str, content: &str) -> Result<Machine, ProfileError> {
        Machine::read(&Text { file: file.to_string(), content: content.to_string() })
    }

    pub(crate) fn read(text: &Text) -> Result<Machine, ProfileError> {
        let mut machine: Machine = text.parse()?;
        machine.check(text)?;
        machine.text = text.content.clone();
        Ok(machine)
    }

    /// Index of the disk with this name.
    pub fn disk(&self, name: &str) -> Option<usize> {
        self.disks.iter().position(|d| d.name.get_ref() == name)
    }

    /// Whether it has swap, on a disk or in memory.
    pub fn has_swap(&self) -> bool {
        !self.swaps.is_empty() || !self.zrams.is_empty()
    }

    /// What its anonymous pages hold.
    pub fn contents(&self) -> Contents {
        let Some(contents) = &self.contents else { return Contents::default() };
        let contents = contents.get_ref();
        Contents {
            mean_bytes: (PAGE_SIZE as f64 / contents.ratio).round() as u32,
            same_filled_percent: contents.same_filled_percent,
        }
    }

    /// Memory of all nodes.
    pub fn memory(&self) -> Bytes {
        Bytes(self.nodes.iter().map(|node| node.memory.get_ref().0.0).sum())
    }
}
