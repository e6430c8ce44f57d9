//! A machine: CPUs, nodes, disks, swap, the file system that a workload uses.

use std::ops::{Range, RangeInclusive};

use blockdev::{DeviceSpec, QueueSpec};
use serde::Deserialize;
use toml::Spanned;
use units::Bytes;

use crate::builtin::MACHINE;
use crate::text::Text;
use crate::{ProfileError, Size};

/// Least memory of a node, and most of a machine.
const NODE_MEMORY_MIN: Bytes = Bytes::mib(32);
const MEMORY_MAX: Bytes = Bytes::gib(8192);
/// Size of a swap area.
const SWAP_AREA: RangeInclusive<Bytes> = Bytes::mib(1)..=Bytes::gib(8192);

/// A machine as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// Name.
    pub name: String,
    /// What machine it is, and where its figures come from.
    pub description: String,
    /// CPUs.
    pub cpus: CpuDef,
    /// NUMA nodes.
    #[serde(rename = "node")]
    pub nodes: Vec<NodeDef>,
    /// Memory below 4 GiB that is not RAM (PCI); moved above. Default 2 GiB on machines with more than 2 GiB.
    #[serde(default)]
    pub pci_hole: Option<Spanned<Size>>,
    /// Block devices.
    #[serde(rename = "disk", default)]
    pub disks: Vec<Disk>,
    /// Swap areas.
    #[serde(rename = "swap", default)]
    pub swaps: Vec<Spanned<SwapArea>>,
    /// The file system that workloads use.
    #[serde(default)]
    pub mount: Option<Spanned<Mount>>,
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
    /// Where the speed comes from.
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
    pub name: String,
    /// Where its figures come from.
    pub source: String,
    /// The device.
    pub device: Spanned<DeviceSpec>,
    /// Its request queue.
    #[serde(default)]
    pub queue: QueueSpec,
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

/// A mounted file system.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mount {
    /// The disk.
    pub disk: String,
    /// File system.
    pub fs: FileSystem,
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

impl Machine {
    /// The machine with this name, or in this file.
    ///
    /// # Errors
    /// No such machine, or its file is malformed or describes an impossible machine.
    pub fn load(name: &str) -> Result<Machine, ProfileError> {
        Machine::read(&Text::find(&MACHINE, name)?)
    }

    pub(crate) fn read(text: &Text) -> Result<Machine, ProfileError> {
        let mut machine: Machine = text.parse()?;
        machine.check(text)?;
        machine.text = text.content.clone();
        Ok(machine)
    }

    fn check(&self, text: &Text) -> Result<(), ProfileError> {
        self.check_cpus(text)?;
        self.check_nodes(text)?;
        self.check_disks(text)?;
        for swap in &self.swaps {
            let area = swap.get_ref();
            let disk = self.disk_of(text, swap.span(), "swap.disk", &area.disk)?;
            if !SWAP_AREA.contains(&area.size.0) {
                return Err(text.invalid(swap.span(), "swap.size", "expected 1MiB to 8TiB".to_string()));
            }
            if area.size.0 > disk.device.get_ref().capacity() {
                let message = format!("the area is larger than the disk `{}`", area.disk);
                return Err(text.invalid(swap.span(), "swap.size", message));
            }
        }
        if let Some(mount) = &self.mount {
            self.disk_of(text, mount.span(), "mount.disk", &mount.get_ref().disk)?;
        }
        Ok(())
    }

    fn check_cpus(&self, text: &Text) -> Result<(), ProfileError> {
        let count = *self.cpus.count.get_ref();
        if !(1..=1024).contains(&count) {
            let message = format!("{count} CPUs: expected 1 to 1024");
            return Err(text.invalid(self.cpus.count.span(), "cpus.count", message));
        }
        let speed = *self.cpus.speed.get_ref();
        if !(0.01..=100.0).contains(&speed) {
            let message = format!("{speed}: expected 0.01 to 100 times the reference");
            return Err(text.invalid(self.cpus.speed.span(), "cpus.speed", message));
        }
        Ok(())
    }

    fn check_nodes(&self, text: &Text) -> Result<(), ProfileError> {
        let count = *self.cpus.count.get_ref() as usize;
        if self.nodes.is_empty() || self.nodes.len() > 64 || self.nodes.len() > count {
            let message = format!("{} nodes: expected 1 to 64, and a CPU for each", self.nodes.len());
            return Err(text.invalid(self.cpus.count.span(), "node", message));
        }
        let mut total = Bytes(0);
        for (number, node) in self.nodes.iter().enumerate() {
            let memory = node.memory.get_ref().0;
            total = Bytes(total.0.saturating_add(memory.0));
            if memory < NODE_MEMORY_MIN || total > MEMORY_MAX {
                let message = "expected 32MiB or more a node and 8TiB at most in all".to_string();
                return Err(text.invalid(node.memory.span(), "node.memory", message));
            }
            if let Some(distance) = &node.distance
                && !are_distances(distance.get_ref(), number, self.nodes.len())
            {
                let message = format!(
                    "expected {} distances, one a node: 10 to itself (the {}th), more to the others",
                    self.nodes.len(),
                    number + 1
                );
                return Err(text.invalid(distance.span(), "node.distance", message));
            }
        }
        if let Some(hole) = &self.pci_hole
            && hole.get_ref().0 > Bytes::gib(3)
        {
            return Err(text.invalid(hole.span(), "pci-hole", "expected at most 3GiB".to_string()));
        }
        Ok(())
    }

    fn check_disks(&self, text: &Text) -> Result<(), ProfileError> {
        for (number, disk) in self.disks.iter().enumerate() {
            let key = format!("disk {}", disk.name);
            let valid = disk.device.get_ref().validate().and_then(|()| disk.queue.validate());
            valid.map_err(|error| text.invalid(disk.device.span(), &key, error.to_string()))?;
            if self.disk(&disk.name) != Some(number) {
                return Err(text.invalid(disk.device.span(), &key, "two disks have this name".to_string()));
            }
        }
        Ok(())
    }

    /// Index of the disk with this name.
    pub fn disk(&self, name: &str) -> Option<usize> {
        self.disks.iter().position(|d| d.name == name)
    }

    /// The disk that `key` names.
    fn disk_of(&self, text: &Text, span: Range<usize>, key: &str, name: &str) -> Result<&Disk, ProfileError> {
        let names: Vec<&str> = self.disks.iter().map(|d| d.name.as_str()).collect();
        let expected = if names.is_empty() {
            "there is none".to_string()
        } else {
            format!("expected one of {}", names.join(", "))
        };
        let unknown = || text.invalid(span, key, format!("no disk is named `{name}`: {expected}"));
        self.disk(name).map(|disk| &self.disks[disk]).ok_or_else(unknown)
    }

    /// Memory of all nodes.
    pub fn memory(&self) -> Bytes {
        Bytes(self.nodes.iter().map(|node| node.memory.get_ref().0.0).sum())
    }

    /// The same machine with the memory of each node divided by `divisor`, in its text too.
    ///
    /// # Errors
    /// A node is left with less memory than a machine can have.
    pub fn scaled_down(&self, divisor: u64) -> Result<Machine, ProfileError> {
        let mut content = self.text.clone();
        // From the last to the first, so that the places of those before stay what they are.
        for node in self.nodes.iter().rev() {
            let bytes = node.memory.get_ref().0.0 / divisor;
            content.replace_range(node.memory.span(), &bytes.to_string());
        }
        Machine::read(&Text { file: format!("machine {} with its memory divided by {divisor}", self.name), content })
    }
}

/// Whether these are the distances of node `number` in a machine of `nodes` nodes.
fn are_distances(distances: &[u8], number: usize, nodes: usize) -> bool {
    let fits = |(to, distance): (usize, &u8)| if to == number { *distance == 10 } else { *distance > 10 };
    distances.len() == nodes && distances.iter().enumerate().all(fits)
}
