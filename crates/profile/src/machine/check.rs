//! What a machine cannot be.

use std::ops::{Range, RangeInclusive};

use blockdev::SpecError;
use rules::Tunables;
use toml::Spanned;
use units::Bytes;

use super::{CompressNs, ContentsDef, Disk, FileSystem, Machine, Mount};
use crate::ProfileError;
use crate::Size;
use crate::text::{Text, typed};

/// CPUs of a machine.
const CPUS: RangeInclusive<u32> = 1..=1024;
/// Least memory of a node, and most of a machine.
const NODE_MEMORY_MIN: Bytes = Bytes::mib(32);
const MEMORY_MAX: Bytes = Bytes::gib(8192);
/// The PCI hole leaves 32 MiB below 4 GiB: ZONE_DMA and as much again.
const PCI_HOLE_MAX: Bytes = Bytes::mib(4096 - 32);
/// Size of a swap area.
const SWAP_AREA_MIN: Bytes = Bytes::mib(1);
/// Swap of a machine stays below this: its slots are numbered with 31 bits.
const SWAP_END: Bytes = Bytes::gib(8192);
/// Size of an allocation group of a file system and, unless `flex-bg` makes one of all of a small one, how many it has; blocks of
/// 4 KiB are numbered with 32 bits.
const GROUP_MIN: Bytes = Bytes::mib(16);
const GROUPS: u64 = 4;
const FILE_SYSTEM_END: Bytes = Bytes::gib(16 * 1024);
/// Size of XFS's log (`XFS_MIN_LOG_BYTES`, `XFS_MAX_LOG_BYTES`).
const LOG_BYTES: RangeInclusive<u64> = Bytes::mib(10).0..=Bytes::gib(2).0;

/// How much smaller pages become.
const RATIO: RangeInclusive<f64> = 1.0..=100.0;
/// Time in which 4 KiB are copied or cleared.
const PAGE_NS: RangeInclusive<u64> = 1..=1_000_000;
/// How long a machine may have been up.
const UPTIME_S: RangeInclusive<f64> = 0.0..=1e9;

impl Machine {
    pub(super) fn check(&self, text: &Text) -> Result<(), ProfileError> {
        text.check_name("name", &self.name)?;
        self.check_cpus(text)?;
        self.check_nodes(text)?;
        self.check_pci_hole(text)?;
        self.check_disks(text)?;
        self.check_swaps(text)?;
        self.check_contents(text)?;
        self.check_mount(text)?;
        self.check_uptime(text)?;
        self.check_booted(text)?;
        self.check_sysctls(text)?;
        self.check_zones(text)
    }

    /// Tunables that exist, with values that they take.
    fn check_sysctls(&self, text: &Text) -> Result<(), ProfileError> {
        for (name, value) in &self.sysctls {
            let set = Tunables::default().set(name.get_ref(), &typed(value));
            set.map_err(|error| text.invalid(name.span(), "sysctls", error.to_string()))?;
        }
        Ok(())
    }

    fn check_uptime(&self, text: &Text) -> Result<(), ProfileError> {
        let Some(uptime_s) = &self.uptime_s else { return Ok(()) };
        if !UPTIME_S.contains(uptime_s.get_ref()) {
            let message = format!("{}: expected 0 to 10^9 seconds", uptime_s.get_ref());
            return Err(text.invalid(uptime_s.span(), "uptime-s", message));
        }
        Ok(())
    }

    fn check_cpus(&self, text: &Text) -> Result<(), ProfileError> {
        let count = *self.cpus.count.get_ref();
        if !CPUS.contains(&count) {
            let message = format!("{count} CPUs: expected 1 to 1024");
            return Err(text.invalid(self.cpus.count.span(), "cpus.count", message));
        }
        let speed = *self.cpus.speed.get_ref();
        if !(0.01..=100.0).contains(&speed) {
            let message = format!("{speed}: expected 0.01 to 100 times the reference");
            return Err(text.invalid(self.cpus.speed.span(), "cpus.speed", message));
        }
        if let Some(ns) = &self.cpus.page_ns
            && !PAGE_NS.contains(ns.get_ref())
        {
            let message = format!("{}: expected 1 to 1000000 ns for 4 KiB", ns.get_ref());
            return Err(text.invalid(ns.span(), "cpus.page-ns", message));
        }
        if let Some(spanned) = &self.cpus.compress_ns {
            let CompressNs { lzo, lz4, zstd, .. } = spanned.get_ref();
            if let Some(ns) = [lzo, lz4, zstd].into_iter().flatten().find(|ns| !PAGE_NS.contains(ns)) {
                let message = format!("{ns}: expected 1 to 1000000 ns for 4 KiB");
                return Err(text.invalid(spanned.span(), "cpus.compress-ns", message));
            }
        }
        let nodes = self.nodes.len();
        if nodes == 0 || nodes > 64 || nodes > count as usize {
            let message = format!("{nodes} nodes and {count} CPUs: expected 1 to 64 nodes, and a CPU for each");
            return Err(text.invalid(self.cpus.count.span(), "node", message));
        }
        Ok(())
    }

    fn check_nodes(&self, text: &Text) -> Result<(), ProfileError> {
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
        Ok(())
    }

    fn check_pci_hole(&self, text: &Text) -> Result<(), ProfileError> {
        match &self.pci_hole {
            Some(hole) if hole.get_ref().0 > PCI_HOLE_MAX => {
                let message = "expected at most 4064MiB, which leaves 32MiB below 4GiB".to_string();
                Err(text.invalid(hole.span(), "pci-hole", message))
            }
            _ => Ok(()),
        }
    }

    fn check_disks(&self, text: &Text) -> Result<(), ProfileError> {
        for (number, disk) in self.disks.iter().enumerate() {
            text.check_name("disk.name", &disk.name)?;
            let refused = |above: &str, SpecError { field, value, expected }: SpecError| {
                text.invalid(disk.device.span(), &format!("{above}.{field}"), format!("{value}: expected {expected}"))
            };
            disk.device.get_ref().validate().map_err(|error| refused("disk.device", error))?;
            disk.queue.validate().map_err(|error| refused("disk", error))?;
            if self.disk(disk.name.get_ref()) != Some(number) {
                let message =
                    format!("two disks are named `{}`: expected a name of its own for each", disk.name.get_ref());
                return Err(text.invalid(disk.name.span(), "disk.name", message));
            }
        }
        Ok(())
    }

    fn check_swaps(&self, text: &Text) -> Result<(), ProfileError> {
        let mut total = 0_u64;
        for (number, swap) in self.swaps.iter().enumerate() {
            let area = swap.get_ref();
            let disk = self.disk_of(text, swap.span(), "swap.disk", &area.disk)?;
            let refused = |message: String| Err(text.invalid(swap.span(), "swap.size", message));
            total = total.saturating_add(area.size.0.0);
            if area.size.0 < SWAP_AREA_MIN || total >= SWAP_END.0 {
                return refused("expected 1MiB or more an area and less than 8TiB in all".to_string());
            }
            if self.swap_on(&area.disk, number + 1) > disk.device.get_ref().capacity().0 {
                return refused(format!("expected no more swap on the disk `{}` than it holds", area.disk));
            }
        }
        for zram in &self.zrams {
            let Bytes(size) = zram.get_ref().size.0;
            total = total.saturating_add(size);
            if size < SWAP_AREA_MIN.0 || total >= SWAP_END.0 {
                let message = "expected 1MiB or more, and less than 8TiB of swap in all".to_string();
                return Err(text.invalid(zram.span(), "zram.size", message));
            }
        }
        Ok(())
    }

    fn check_contents(&self, text: &Text) -> Result<(), ProfileError> {
        let Some(contents) = &self.contents else { return Ok(()) };
        let ContentsDef { ratio, same_filled_percent, .. } = contents.get_ref();
        if !RATIO.contains(ratio) {
            let message = format!("{ratio}: expected 1 to 100");
            return Err(text.invalid(contents.span(), "contents.ratio", message));
        }
        if *same_filled_percent > 100 {
            let message = format!("{same_filled_percent}: expected 0 to 100 percent");
            return Err(text.invalid(contents.span(), "contents.same-filled-percent", message));
        }
        Ok(())
    }

    fn check_mount(&self, text: &Text) -> Result<(), ProfileError> {
        let Some(mount) = &self.mount else { return Ok(()) };
        let Mount { disk: name, fs, flex_bg, block_mapped, .. } = mount.get_ref();
        for (key, is_set) in [("mount.flex-bg", *flex_bg), ("mount.block-mapped", *block_mapped)] {
            if is_set && *fs.get_ref() != FileSystem::Ext4 {
                return Err(text.invalid(mount.span(), key, "expected `fs = \"ext4\"` beside it".to_string()));
            }
        }
        let disk = self.disk_of(text, mount.span(), "mount.disk", name)?;
        let room = disk.device.get_ref().capacity().0 - self.swap_on(name, self.swaps.len());
        let least = if *flex_bg { GROUP_MIN.0 } else { GROUPS * GROUP_MIN.0 };
        let told = Size(Bytes(least));
        if !(least..FILE_SYSTEM_END.0).contains(&room) {
            let message = format!("expected {told} or more and less than 16TiB on the disk `{name}` beside its swap");
            return Err(text.invalid(mount.span(), "mount.disk", message));
        }
        let size = mount.get_ref().partition(Bytes(room));
        if !(least..=room).contains(&size.0) {
            let message = format!("expected {told} or more, and no more than the disk `{name}` has beside its swap");
            return Err(text.invalid(mount.span(), "mount.size", message));
        }
        Machine::check_groups(text, mount, size)?;
        Machine::check_log(text, mount, size)
    }

    fn check_groups(text: &Text, mount: &Spanned<Mount>, size: Bytes) -> Result<(), ProfileError> {
        let Some(groups) = mount.get_ref().allocation_groups else { return Ok(()) };
        let most = size.0 / GROUP_MIN.0;
        let expected = match *mount.get_ref().fs.get_ref() {
            FileSystem::Ext4 => "expected none for ext4, whose groups have one size".to_string(),
            FileSystem::Xfs if (GROUPS..=most).contains(&u64::from(groups)) => return Ok(()),
            FileSystem::Xfs => format!("expected {GROUPS} to {most}, of {} or more each", Size(GROUP_MIN)),
        };
        Err(text.invalid(mount.span(), "mount.allocation-groups", expected))
    }

    fn check_log(text: &Text, mount: &Spanned<Mount>, size: Bytes) -> Result<(), ProfileError> {
        let Some(Size(log)) = mount.get_ref().log else { return Ok(()) };
        let expected = match *mount.get_ref().fs.get_ref() {
            FileSystem::Ext4 => "expected no size of a log for ext4",
            FileSystem::Xfs if LOG_BYTES.contains(&log.0) && log.0 <= size.0 / 2 => return Ok(()),
            FileSystem::Xfs => "expected 10MiB to 2GiB, and half of the partition at most",
        };
        Err(text.invalid(mount.span(), "mount.log", expected.to_string()))
    }

    /// Bytes that the first `count` swap areas take of a disk.
    fn swap_on(&self, disk: &str, count: usize) -> u64 {
        let areas = self.swaps[..count].iter().map(|swap| swap.get_ref());
        areas.filter(|area| area.disk == disk).map(|area| area.size.0.0).sum()
    }

    /// The disk that `key` names.
    fn disk_of(&self, text: &Text, span: Range<usize>, key: &str, name: &str) -> Result<&Disk, ProfileError> {
        let names: Vec<&str> = self.disks.iter().map(|d| d.name.get_ref().as_str()).collect();
        let expected = if names.is_empty() {
            "there is none".to_string()
        } else {
            format!("expected one of {}", names.join(", "))
        };
        let unknown = || text.invalid(span, key, format!("no disk is named `{name}`: {expected}"));
        self.disk(name).map(|disk| &self.disks[disk]).ok_or_else(unknown)
    }
}

/// Whether these are the distances of node `number` in a machine of `nodes` nodes.
fn are_distances(distances: &[u8], number: usize, nodes: usize) -> bool {
    let fits = |(to, distance): (usize, &u8)| if to == number { *distance == 10 } else { *distance > 10 };
    distances.len() == nodes && distances.iter().enumerate().all(fits)
}
