//! Swap devices and the swap cache.
//!
//! Rule: a page that is to leave memory gets a slot; the slot is counted by the page table entry that refers to it
//! and by the page while it is in the swap cache, and is free when neither does. Devices are used by priority, equal
//! ones in turn.
//! Source: `struct swap_info_struct`, `get_swap_pages()`, `swap_free()` (mm/swapfile.c, 4.20 and 6.12).
//! Abstracted: a slot is numbered over all devices; 1 byte of host memory a slot, 9 once one like it was used. Without fork a slot has at most one
//! page table entry.
//! Omitted: the per-CPU cache of 64 slots (mm/swap_slots.c), huge pages swapped as a whole, swapoff, discard,
//! swap files with extents (a device is one extent).

mod cache;
mod device;
mod io;
mod kept;
#[cfg(test)]
mod kept_property;
#[cfg(test)]
mod kept_tests;
mod readahead;
mod shadow_nodes;
#[cfg(test)]
mod tests;
mod token;
mod validate;
mod zram;
mod zswap;

pub use device::{SwapDevice, SwapSpec};
pub use kept::PoolId;
pub use zram::Zram;
pub use zswap::ZswapStep;

use rules::SwapShadows;
use units::{Contents, NodeId, Pfn, SpaceId};

use device::{BAD, HAS_CACHE};
use readahead::ReadaheadState;
pub(crate) use readahead::readahead_size;
use shadow_nodes::SwapTrees;
use token::Token;
pub(crate) use token::TokenClaim;
use zswap::Zswap;

use crate::pagecache::NODE_SLOTS;
use crate::zsmalloc::ZsPool;

/// A slot on a swap device, numbered over all devices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SwapEntry(pub u32);

/// Marks a shadow in a slot's content.
const SHADOW: u32 = 1 << 31;

/// All swap devices.
#[derive(Debug, Default)]
pub struct Swap {
    devices: Vec<SwapDevice>,
    /// Numbers of the devices in the order in which they are tried.
    order: Vec<usize>,
    readahead: ReadaheadState,
    /// What pages hold.
    pub contents: Contents,
    zswap: Zswap,
    trees: SwapTrees,
    token: Token,
    total_pages: u64,
    free_pages: u64,
}

impl Swap {
    /// No device, for a kernel that does this with shadows.
    pub(crate) fn new(shadows: SwapShadows) -> Swap {
        Swap { trees: SwapTrees::new(shadows), ..Swap::default() }
    }

    /// Starts to use a device (`swapon`).
    pub fn add_device(&mut self, spec: &SwapSpec) {
        // Each device has trees of its own.
        let base = self.devices.last().map_or(0, |d| (d.base + d.slots()).next_multiple_of(NODE_SLOTS));
        assert!(u64::from(base) + u64::from(spec.pages) < u64::from(SHADOW), "more than 8 TiB of swap");
        let device = SwapDevice::new(spec, base);
        self.total_pages += u64::from(device.usable_pages());
        self.free_pages += u64::from(device.usable_pages());
        self.devices.push(device);
        let number = self.devices.len() - 1;
        let priority = |n: &usize| self.devices[*n].priority;
        let at = self.order.partition_point(|n| priority(n) >= spec.priority);
        self.order.insert(at, number);
    }

    /// The devices.
    pub fn devices(&self) -> &[SwapDevice] {
        &self.devices
    }

    /// zswap's pool.
    pub(crate) fn zswap_pool(&self) -> &ZsPool {
        &self.zswap.pool
    }

    /// Usable pages of all devices (`total_swap_pages`).
    pub fn total_pages(&self) -> u64 {
        self.total_pages
    }

    /// Free slots (`nr_swap_pages`).
    pub fn free_pages(&self) -> u64 {
        self.free_pages
    }

    /// Whether less than half of it is free, so that slots of pages in memory are given up (`vm_swap_full()`).
    pub fn is_full(&self) -> bool {
        self.free_pages * 2 < self.total_pages
    }

    /// The page that the swap cache holds for a slot.
    #[inline]
    pub(crate) fn cached(&self, entry: SwapEntry) -> Option<Pfn> {
        let (device, offset) = self.locate(entry);
        match self.devices[device].content(offset) {
            0 => None,
            word if word & SHADOW != 0 => None,
            word => Some(Pfn(word - 1)),
        }
    }

    /// The shadow left in a slot when its page was reclaimed.
    pub(crate) fn shadow(&self, entry: SwapEntry) -> Option<u32> {
        let (device, offset) = self.locate(entry);
        let word = self.devices[device].content(offset);
        (word & SHADOW != 0).then_some(word & !SHADOW)
    }

    /// Block device of a slot.
    pub(crate) fn device_of(&self, entry: SwapEntry) -> u16 {
        self.devices[self.locate(entry).0].device
    }

    /// Whether a page or a page table entry has the slot.
    pub(crate) fn is_taken(&self, entry: SwapEntry) -> bool {
        let (device, offset) = self.locate(entry);
        !matches!(self.devices[device].state(offset), 0 | BAD)
    }

    /// Whether a page table entry refers to the slot.
    #[inline]
    pub(crate) fn is_used(&self, entry: SwapEntry) -> bool {
        let (device, offset) = self.locate(entry);
        let count = self.devices[device].state(offset) & !HAS_CACHE;
        count != 0 && count != BAD
    }

    /// Device and offset of a slot.
    #[inline]
    fn locate(&self, entry: SwapEntry) -> (usize, u32) {
        let at = self.devices.partition_point(|d| d.base + d.slots() <= entry.0);
        (at, entry.0 - self.devices[at].base)
    }

    /// Takes a slot for the swap cache, from the device whose turn it is (`get_swap_page()`). `reusable` says whether the
    /// page of a slot that only the swap cache holds can give it up; such a slot is returned still taken.
    fn alloc(&mut self, cpu: usize, reusable: impl Fn(Pfn) -> bool) -> Option<SwapEntry> {
        if self.free_pages == 0 {
            return None;
        }
        let full = self.is_full();
        let turn = (0..self.order.len()).find(|turn| !self.devices[self.order[*turn]].is_full())?;
        let device = &mut self.devices[self.order[turn]];
        let offset = device.find(cpu, |holder| full && reusable(holder)).expect("a slot is free");
        let entry = SwapEntry(device.base + offset);
        self.requeue(turn);
        Some(entry)
    }

    /// Puts a device behind the others of its priority (`plist_requeue()`).
    fn requeue(&mut self, turn: usize) {
        let number = self.order[turn];
        let priority = self.devices[number].priority;
        let peers = self.order[turn..].iter().take_while(|n| self.devices[**n].priority == priority).count();
        self.order[turn..turn + peers].rotate_left(1);
    }

    /// Marks a free slot as held by the swap cache for a virtual page.
    fn occupy(&mut self, entry: SwapEntry, cpu: usize, vpn: u32) {
        let (device, offset) = self.locate(entry);
        self.devices[device].occupy(offset, cpu, vpn);
        self.free_pages -= 1;
    }

    /// The page that the swap cache holds for a slot from now on, which is on a NUMA node.
    fn set_cached(&mut self, entry: SwapEntry, pfn: Pfn, numa: NodeId) {
        let (device, offset) = self.locate(entry);
        *self.devices[device].state_mut(offset) |= HAS_CACHE;
        self.store(entry, pfn.0 + 1, numa);
    }

    /// What a slot in use holds from now on, by the rule of its content.
    fn store(&mut self, entry: SwapEntry, word: u32, numa: NodeId) {
        let (device, offset) = self.locate(entry);
        let old = std::mem::replace(&mut self.devices[device].held[offset as usize].content, word);
        self.trees.store(entry.0, old, word, numa);
    }

    /// The virtual page that a slot in use belongs to.
    #[inline]
    fn vpn(&self, entry: SwapEntry) -> u32 {
        let (device, offset) = self.locate(entry);
        self.devices[device].held[offset as usize].vpn
    }

    /// Space and virtual page of the page in the swap cache for a slot in use.
    #[inline]
    pub(crate) fn home(&self, entry: SwapEntry) -> (SpaceId, u32) {
        let (device, offset) = self.locate(entry);
        let held = &self.devices[device].held[offset as usize];
        (held.space, held.vpn)
    }

    /// A page of this space has the slot.
    pub(crate) fn set_space(&mut self, entry: SwapEntry, space: SpaceId) {
        let (device, offset) = self.locate(entry);
        self.devices[device].held[offset as usize].space = space;
    }

    /// A page table entry refers to the slot from now on (`swap_duplicate()`).
    pub(crate) fn get(&mut self, entry: SwapEntry) {
        let (device, offset) = self.locate(entry);
        let byte = self.devices[device].state_mut(offset);
        debug_assert_eq!(*byte & !HAS_CACHE, 0, "without fork a slot has one user");
        *byte += 1;
    }

    /// A page table entry does not refer to the slot any more (`swap_free()`); whether it is free now.
    pub(crate) fn put(&mut self, entry: SwapEntry) -> bool {
        let (device, offset) = self.locate(entry);
        let byte = self.devices[device].state_mut(offset);
        assert!(*byte & !HAS_CACHE == 1, "{entry:?} is put and was not used");
        *byte -= 1;
        self.release_if_unused(entry)
    }

    /// The swap cache does not hold the slot any more; leaves a shadow if the slot is still used. Whether it is free now.
    fn uncache(&mut self, entry: SwapEntry, shadow: Option<u32>) -> bool {
        let (device, offset) = self.locate(entry);
        let byte = self.devices[device].state_mut(offset);
        debug_assert!(*byte & HAS_CACHE != 0);
        *byte &= !HAS_CACHE;
        self.store(entry, shadow.map_or(0, |s| s | SHADOW), NodeId(0));
        self.release_if_unused(entry)
    }

    fn release_if_unused(&mut self, entry: SwapEntry) -> bool {
        let (device, offset) = self.locate(entry);
        let free = self.devices[device].state(offset) == 0;
        if free {
            self.store(entry, 0, NodeId(0));
            self.devices[device].release(offset);
            self.free_pages += 1;
        }
        free
    }

    /// Host bytes that slots occupy.
    pub fn host_bytes(&self) -> usize {
        let devices = self.devices.iter().map(SwapDevice::host_bytes).sum::<usize>();
        devices + self.zswap.host_bytes() + self.trees.host_bytes()
    }
}
