//! A machine: CPUs, nodes, disks, swap, the file system that a workload uses.

use blockdev::{DeviceSpec, QueueSpec};
use serde::Deserialize;
use toml::Spanned;

use crate::text::Text;
use crate::{MACHINES, ProfileError, Size};

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
        Machine::read(&Text::find("machine", name, MACHINES, "machines")?)
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
        for disk in &self.disks {
            if let Err(error) = disk.device.get_ref().validate() {
                return Err(text.invalid(disk.device.span(), &format!("disk {}", disk.name), error.to_string()));
            }
        }
        for swap in &self.swaps {
            let area = swap.get_ref();
            let disk = self.disk(&area.disk).ok_or_else(|| {
                text.invalid(swap.span(), "swap.disk", format!("no disk is named `{}`: {}", area.disk, self.disk_names()))
            })?;
            if area.size.0 > self.disks[disk].device.get_ref().capacity() {
                let message = format!("the area is larger than the disk `{}`", area.disk);
                return Err(text.invalid(swap.span(), "swap.size", message));
            }
        }
        if let Some(mount) = &self.mount {
            let name = &mount.get_ref().disk;
            if self.disk(name).is_none() {
                let message = format!("no disk is named `{name}`: {}", self.disk_names());
                return Err(text.invalid(mount.span(), "mount.disk", message));
            }
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
        for node in &self.nodes {
            let memory = node.memory.get_ref().0;
            if memory < units::Bytes::mib(32) || memory > units::Bytes::gib(8192) {
                let message = "expected 32MiB to 8TiB of memory".to_string();
                return Err(text.invalid(node.memory.span(), "node.memory", message));
            }
            if let Some(distance) = &node.distance
                && distance.get_ref().len() != self.nodes.len()
            {
                let message = format!("expected {} distances, one a node", self.nodes.len());
                return Err(text.invalid(distance.span(), "node.distance", message));
            }
        }
        if let Some(hole) = &self.pci_hole
            && hole.get_ref().0 > units::Bytes::gib(3)
        {
            return Err(text.invalid(hole.span(), "pci-hole", "expected at most 3GiB".to_string()));
        }
        Ok(())
    }

    /// Index of the disk with this name.
    pub fn disk(&self, name: &str) -> Option<usize> {
        self.disks.iter().position(|d| d.name == name)
    }

    fn disk_names(&self) -> String {
        let names: Vec<&str> = self.disks.iter().map(|d| d.name.as_str()).collect();
        if names.is_empty() { "there is none".to_string() } else { format!("expected one of {}", names.join(", ")) }
    }

    /// The same machine with its memory divided by `divisor`; used for quick runs, which say so.
    #[must_use]
    pub fn scaled_down(&self, divisor: u64) -> Machine {
        let mut machine = self.clone();
        for node in &mut machine.nodes {
            let Size(bytes) = *node.memory.get_ref();
            *node.memory.get_mut() = Size(units::Bytes(bytes.0 / divisor));
        }
        machine
    }
}
