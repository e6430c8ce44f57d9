//! What a mechanism wants done outside: collected here, carried out by the caller.

use units::{CpuId, FileId, MemcgId, Nanos, NodeId, Order, Pfn, SpaceId};

use crate::bio_pool::BioPart;
use crate::reclaim::ThrottleReason;
use crate::vfs::FsId;
use crate::writeback::{IoendId, WbId};

/// Why all flushers are woken (`enum wb_reason`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeFlusher {
    /// Reclaim met dirty pages at the tail of the LRU.
    Vmscan,
    /// Reclaim scanned so many pages and wants as many written, of each device.
    Pages(u64),
    /// `sync`.
    Sync,
}

/// What a bio carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BioTarget {
    /// Pages `index .. index + pages` of a file.
    File {
        /// The file.
        file: FileId,
        /// First page in the file.
        index: u32,
    },
    /// One page to or from swap; the frame is pinned by its writeback or lock flag.
    Swap {
        /// The frame.
        pfn: Pfn,
    },
    /// File system metadata that no page of the page cache stands for.
    Metadata,
}

/// The bio itself, its vectors, and what the file system keeps beside it.
pub(crate) type BioParts = [BioPart; 3];

/// What a bio takes in memory until its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BioMemory {
    /// Its parts.
    pub(crate) parts: BioParts,
    /// The write that it is part of.
    pub(crate) ioend: IoendId,
}

impl BioMemory {
    /// None: the bio and its few vectors stand on a stack.
    pub const NONE: BioMemory = BioMemory { parts: [BioPart::Nothing; 3], ioend: IoendId::NONE };
}

/// A request for a block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bio {
    /// Device number, as the machine lists them.
    pub device: u16,
    /// First sector (512 B).
    pub sector: u64,
    /// Pages (4 KiB).
    pub pages: u32,
    /// Write or read.
    pub write: bool,
    /// Somebody waits for it.
    pub sync: bool,
    /// What it carries.
    pub target: BioTarget,
    /// What it takes in memory.
    pub memory: BioMemory,
}

impl Bio {
    /// First page of the file that it carries.
    pub(crate) fn first_index(&self) -> u32 {
        let BioTarget::File { index, .. } = self.target else { unreachable!("a bio of a file") };
        index
    }

    /// Whether it carries a page to or from swap.
    pub(crate) fn is_swap(&self) -> bool {
        matches!(self.target, BioTarget::Swap { .. })
    }

    /// Whether it carries a page to swap.
    pub(crate) fn is_swap_out(&self) -> bool {
        self.write && self.is_swap()
    }
}

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Wake kswapd of a node; order and zone are in the node already.
    WakeKswapd(NodeId),
    /// Wake kcompactd of a node for an order.
    WakeKcompactd(NodeId, Order),
    /// Hand this to [`crate::Mm::ask_flushers`], and wake the flushers that it names.
    WakeFlushers(WakeFlusher),
    /// Wake the flusher of a group's writeback of a device.
    WakeFlusher(WbId),
    /// Start I/O.
    Submit(Bio),
    /// A device begins with what it was given, even if more is to come at this instant.
    Unplug(u16),
    /// A read that the caller is to hand to [`crate::Mm::submit`]: it may be preempted before.
    HeldRead(Bio),
    /// A bio was copied at once: its device counts it.
    Copied {
        /// What was copied.
        bio: Bio,
        /// Whether it counts as the root group's, of which no limit knows.
        of_root: bool,
    },
    /// Wake who waits for this frame's lock or writeback.
    WakePage(Pfn),
    /// Wake the reclaimers of a node that sleep until a new generation begins.
    WakeAging(NodeId),
    /// Wake the reclaimers of a node that were throttled for this reason.
    WakeThrottled(NodeId, ThrottleReason),
    /// Wake who writes the log and the metadata of a file system.
    WakeLog(FsId),
    /// The first object waits for a grace period: the next tick is to be told of ([`crate::Mm::rcu_tick`]).
    ArmRcu,
    /// XFS has an evicted inode again: who frees those now and then begins to wait.
    ArmReclaim,
    /// Wake who waits for room in a journal to reserve.
    WakeReserved,
    /// Wake who ends writes that change metadata.
    WakeEndIo,
    /// What was being written to a journal is there.
    WakeJournalled,
    /// The first inode of a group became dirty on a device: its flusher there, if it sleeps, wakes at this time at the latest.
    ArmFlusher(WbId, Nanos),
    /// Wake the worker of a CPU that tells of reclaim's pressure.
    WakePressure(CpuId),
    /// Something happened in a memory cgroup that `memory.events` counts.
    MemcgEvent(MemcgId),
    /// Wake khugepaged: the first space came into its queue.
    WakeKhugepaged,
    /// Wake the worker that shrinks zswap's pool.
    WakeZswap,
    /// Have the other CPUs that run this space forget its translations.
    FlushTlb(SpaceId),
}

/// Everything that is to be done, in order.
#[derive(Default, Debug)]
pub struct Effects {
    pending: Vec<Effect>,
}

impl Effects {
    /// Adds one.
    #[inline]
    pub fn push(&mut self, effect: Effect) {
        self.pending.push(effect);
    }

    /// Whether there is nothing to do.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether what was added last is a read that the caller is to submit.
    #[inline]
    pub(crate) fn ends_with_held_read(&self) -> bool {
        matches!(self.pending.last(), Some(Effect::HeldRead(_)))
    }

    /// Whether kswapd of a node is to be woken, which takes the CPU then.
    #[inline]
    pub(crate) fn wakes_kswapd(&self) -> bool {
        self.pending.iter().any(|effect| matches!(effect, Effect::WakeKswapd(_)))
    }

    /// Moves all into `into`, which is emptied first; both keep their capacity.
    pub fn take_into(&mut self, into: &mut Vec<Effect>) {
        into.clear();
        std::mem::swap(&mut self.pending, into);
    }
}
