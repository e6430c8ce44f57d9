//! The slots of one swap device.
//!
//! Rule: on a solid-state device each CPU fills a cluster of its own, taken from the list of free clusters. On a
//! rotating one slots are given out one after the other; after each cluster's worth, the next run of free slots of
//! that length is looked for from the start of the device. Where no free cluster is left, the first free slot after
//! the last one taken serves.
//! Source: `scan_swap_map_slots()`, `scan_swap_map_try_ssd_cluster()`, `swap_range_alloc()`, `swap_range_free()` (mm/swapfile.c,
//! 4.20).
//! Since/until: the same until 6.9; 6.12 has lists of clusters by order and no scan.
//! Abstracted: free clusters are listed in the order of their numbers at first (the kernel spreads them over cache
//! lines) and the first slot is not random.
//! Omitted: discard, bad pages, clusters of huge pages.

use std::collections::VecDeque;

use units::{Pfn, SpaceId};

use super::kept::Kept;
use super::zram::Zram;
use units::table;

/// Slots in a cluster (`SWAPFILE_CLUSTER`).
pub(super) const CLUSTER: u32 = 256;
/// The swap cache holds the slot (`SWAP_HAS_CACHE`).
pub(super) const HAS_CACHE: u8 = 0x40;
/// Never to be used: the header (`SWAP_MAP_BAD`).
pub(super) const BAD: u8 = 0x3f;

/// A swap device as it is to be added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapSpec {
    /// Block device, as the machine lists them.
    pub device: u16,
    /// First sector (512 B).
    pub start_sector: u64,
    /// Pages, the header included.
    pub pages: u32,
    /// Priority; higher ones are used first.
    pub priority: i16,
    /// Seeks are expensive.
    pub rotational: bool,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The page in the swap cache plus one; or the top bit and a shadow; or 0.
    pub(super) content: u32,
    /// The virtual page that it belongs to.
    pub(super) vpn: u32,
    /// Whose that is.
    pub(super) space: SpaceId,
}

/// One swap device (`struct swap_info_struct`).
#[derive(Debug)]
pub struct SwapDevice {
    /// Block device.
    pub device: u16,
    /// First sector.
    pub start_sector: u64,
    /// Priority.
    pub priority: i16,
    /// Number of its first slot over all devices.
    pub(super) base: u32,
    slots: u32,
    /// For each slot up to the highest that was ever in use: page table entries that refer to it, and `HAS_CACHE`.
    map: Vec<u8>,
    /// What slots in use hold, up to the highest that ever was.
    pub(super) held: Vec<Held>,
    in_use: u32,
    /// No slot below is free.
    lowest: u32,
    /// No slot above is free; 0 if none is free at all.
    highest: u32,
    /// Where the next search starts.
    next: u32,
    clusters: Clusters,
    /// It is a zram.
    pub(super) zram: Option<Box<Zram>>,
    /// What stands for slots in memory, up to the highest of them.
    pub(super) kept: Vec<Kept>,
}

/// How slots are grouped.
#[derive(Debug)]
enum Clusters {
    /// Rotating: slots left before a new run is looked for.
    Run(u32),
    /// Solid state.
    PerCpu {
        /// Slots in use of each cluster.
        used: Vec<u16>,
        /// Clusters without a slot in use.
        free: VecDeque<u32>,
        /// Slot to go on with, for each CPU that has a cluster.
        current: Vec<Option<u32>>,
    },
}

impl SwapDevice {
    pub(super) fn new(spec: &SwapSpec, base: u32) -> SwapDevice {
        assert!(spec.pages >= 2, "a swap device of {} pages", spec.pages);
        let clusters = if spec.rotational {
            Clusters::Run(0)
        } else {
            let nr = spec.pages.div_ceil(CLUSTER);
            let mut used = vec![0; nr as usize];
            used[0] += 1; // the header
            used[nr as usize - 1] += (nr * CLUSTER - spec.pages) as u16;
            let free = (0..nr).filter(|n| used[*n as usize] == 0).collect();
            Clusters::PerCpu { used, free, current: Vec::new() }
        };
        SwapDevice {
            device: spec.device,
            start_sector: spec.start_sector,
            priority: spec.priority,
            base,
            slots: spec.pages,
            map: vec![BAD],
            held: Vec::new(),
            in_use: 0,
            lowest: 1,
            highest: spec.pages - 1,
            next: 1,
            clusters,
            zram: None,
            kept: Vec::new(),
        }
    }

    /// Slots, the header included.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Page table entries that refer to a slot, and `HAS_CACHE`; or `BAD`.
    #[inline]
    pub(super) fn state(&self, offset: u32) -> u8 {
        self.map.get(offset as usize).copied().unwrap_or(0)
    }

    /// The same of a slot in use, to be changed.
    #[inline]
    pub(super) fn state_mut(&mut self, offset: u32) -> &mut u8 {
        &mut self.map[offset as usize]
    }

    /// What a slot holds, by the rule of [`Held::content`].
    pub(super) fn content(&self, offset: u32) -> u32 {
        self.held.get(offset as usize).map_or(0, |held| held.content)
    }

    /// Host bytes.
    pub(super) fn host_bytes(&self) -> usize {
        let clusters = match &self.clusters {
            Clusters::Run(_) => 0,
            Clusters::PerCpu { used, free, .. } => used.capacity() * 2 + free.capacity() * 4,
        };
        let zram = self.zram.as_ref().map_or(0, |zram| zram.pool.host_bytes());
        let kept = self.kept.capacity() * size_of::<Kept>();
        self.map.capacity() + self.held.capacity() * size_of::<Held>() + clusters + zram + kept
    }

    /// Slots that can hold a page.
    pub fn usable_pages(&self) -> u32 {
        self.slots() - 1
    }

    /// Slots that hold a page.
    pub fn used_pages(&self) -> u32 {
        self.in_use
    }

    /// First sector of a slot.
    pub(super) fn sector(&self, offset: u32) -> u64 {
        self.start_sector + u64::from(offset) * 8
    }

    /// Whether seeks are expensive.
    pub fn is_rotational(&self) -> bool {
        matches!(self.clusters, Clusters::Run(_))
    }

    /// Whether no slot is free.
    pub(super) fn is_full(&self) -> bool {
        self.highest == 0
    }

    /// The slot to take next: free, or held by the swap cache only, for a page that is `reusable`.
    pub(super) fn find(&mut self, cpu: usize, reusable: impl Fn(Pfn) -> bool) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        if self.is_rotational() {
            self.start_run();
        } else if let Some(offset) = self.find_in_cluster(cpu) {
            return Some(offset);
        }
        let start = if self.next > self.highest { self.lowest } else { self.next };
        let usable = |at: &u32| match self.state(*at) {
            0 => true,
            HAS_CACHE => reusable(Pfn(self.held[*at as usize].content - 1)),
            _ => false,
        };
        (start..self.highest + 1).find(usable).or_else(|| (self.lowest..start).find(usable))
    }

    /// Rotating: moves `next` to a run of free slots when the last one is used up.
    fn start_run(&mut self) {
        let Clusters::Run(left) = &mut self.clusters else { return };
        if *left > 0 {
            *left -= 1;
            return;
        }
        *left = CLUSTER - 1;
        if self.usable_pages() - self.in_use < CLUSTER {
            return;
        }
        let mut free = 0;
        for at in self.lowest..=self.highest {
            free = if self.state(at) == 0 { free + 1 } else { 0 };
            if free == CLUSTER {
                self.next = at + 1 - CLUSTER;
                return;
            }
        }
    }

    /// Solid state: the next free slot of the CPU's cluster, or the first one of a free cluster.
    fn find_in_cluster(&mut self, cpu: usize) -> Option<u32> {
        let Clusters::PerCpu { used, free, current } = &mut self.clusters else { return None };
        if current.len() <= cpu {
            current.resize(cpu + 1, None);
        }
        if let Some(from) = current[cpu]
            && (used[(from / CLUSTER) as usize] > 0 || free.front() == Some(&(from / CLUSTER)))
        {
            let end = ((from / CLUSTER + 1) * CLUSTER).min(self.slots);
            if let Some(at) = (from..end).find(|at| self.map.get(*at as usize).is_none_or(|state| *state == 0)) {
                return Some(at);
            }
        }
        current[cpu] = free.front().map(|cluster| cluster * CLUSTER);
        current[cpu]
    }

    /// Takes a free slot for the swap cache and a virtual page.
    pub(super) fn occupy(&mut self, offset: u32, cpu: usize, vpn: u32) {
        debug_assert_eq!(self.state(offset), 0);
        if self.map.len() <= offset as usize {
            table::grow(&mut self.map, offset as usize + 1, 0);
        }
        self.map[offset as usize] = HAS_CACHE;
        if self.held.len() <= offset as usize {
            table::grow(&mut self.held, offset as usize + 1, Held { content: 0, vpn: 0, space: SpaceId(0) });
        }
        self.held[offset as usize].vpn = vpn;
        if offset == self.lowest {
            self.lowest += 1;
        }
        if offset == self.highest {
            self.highest -= 1;
        }
        self.in_use += 1;
        if self.in_use == self.usable_pages() {
            (self.lowest, self.highest) = (self.slots(), 0);
        }
        self.next = offset + 1;
        if let Clusters::PerCpu { used, free, current } = &mut self.clusters {
            let cluster = offset / CLUSTER;
            if used[cluster as usize] == 0 {
                // Only the first one is ever begun: the search goes through no free cluster while there is one.
                let first = free.pop_front();
                debug_assert_eq!(first, Some(cluster));
            }
            used[cluster as usize] += 1;
            if let Some(Some(place)) = current.get_mut(cpu)
                && *place / CLUSTER == cluster
            {
                let following = offset + 1;
                current[cpu] = (!following.is_multiple_of(CLUSTER)).then_some(following);
            }
        }
    }

    /// Makes a slot free.
    pub(super) fn release(&mut self, offset: u32) {
        debug_assert_eq!(self.state(offset), 0);
        self.lowest = self.lowest.min(offset);
        self.highest = self.highest.max(offset);
        self.in_use -= 1;
        if let Clusters::PerCpu { used, free, .. } = &mut self.clusters {
            let cluster = offset / CLUSTER;
            used[cluster as usize] -= 1;
            if used[cluster as usize] == 0 {
                free.push_back(cluster);
            }
        }
    }

    /// Slots in use, as a recount of the map and of the clusters says; `None` if these two disagree.
    pub(super) fn recount(&self) -> Option<u32> {
        let slots = self.map.iter().filter(|b| **b != 0 && **b != BAD).count() as u32;
        if let Clusters::PerCpu { used, free, .. } = &self.clusters {
            let held: u32 = used.iter().map(|n| u32::from(*n)).sum();
            let padding = 1 + used.len() as u32 * CLUSTER - self.slots();
            let free_ones = used.iter().filter(|n| **n == 0).count();
            if held != slots + padding || free_ones != free.len() {
                return None;
            }
        }
        Some(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(pages: u32, rotational: bool) -> SwapDevice {
        SwapDevice::new(&SwapSpec { device: 0, start_sector: 0, pages, priority: 0, rotational }, 0)
    }

    fn take(device: &mut SwapDevice, cpu: usize) -> Option<u32> {
        let offset = device.find(cpu, |_| false)?;
        device.occupy(offset, cpu, 0);
        Some(offset)
    }

    fn give(device: &mut SwapDevice, offset: u32) {
        device.map[offset as usize] = 0;
        device.release(offset);
    }

    #[test]
    fn each_cpu_fills_a_cluster_of_its_own() {
        let mut d = device(4 * CLUSTER, false);
        // Cluster 0 holds the header and is no free cluster: the first two are 1 and 2.
        assert_eq!(take(&mut d, 0), Some(CLUSTER));
        assert_eq!(take(&mut d, 1), Some(2 * CLUSTER));
        assert_eq!(take(&mut d, 0), Some(CLUSTER + 1));
        for n in 2..CLUSTER {
            assert_eq!(take(&mut d, 0), Some(CLUSTER + n));
        }
        assert_eq!(take(&mut d, 0), Some(3 * CLUSTER), "the next free cluster");
    }

    #[test]
    fn a_full_device_gives_nothing_and_a_freed_slot_comes_back() {
        for rotational in [false, true] {
            let mut d = device(CLUSTER + 10, rotational);
            let taken: Vec<u32> = std::iter::from_fn(|| take(&mut d, 0)).collect();
            assert_eq!(taken.len() as u32, d.usable_pages(), "rotational={rotational}");
            give(&mut d, 77);
            assert_eq!(take(&mut d, 0), Some(77));
            assert_eq!(take(&mut d, 0), None);
            assert_eq!(d.recount(), Some(d.usable_pages()));
        }
    }

    #[test]
    fn a_rotating_device_starts_a_run_at_the_first_hole_of_a_cluster() {
        let mut d = device(8 * CLUSTER, true);
        for n in 0..2 * CLUSTER {
            assert_eq!(take(&mut d, 0), Some(1 + n));
        }
        // A hole one short of a cluster at the start: the run after it goes on behind what is used.
        (1..CLUSTER).for_each(|at| give(&mut d, at));
        assert_eq!(take(&mut d, 0), Some(2 * CLUSTER + 1));
        for _ in 1..CLUSTER {
            take(&mut d, 0);
        }
        give(&mut d, CLUSTER);
        assert_eq!(take(&mut d, 0), Some(1), "now it is as long as a cluster");
    }
}
