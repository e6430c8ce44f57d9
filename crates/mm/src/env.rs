//! Who calls a mechanism, where, when, and what for.

use units::{CpuId, Gfp, MemcgId, Nanos, NodeId, Order, SpaceId};

/// One tick of the timer (`CONFIG_HZ=250`, of all kernels).
pub const JIFFY: Nanos = Nanos::millis(4);

/// Mobility of a page, and of the pageblock it should live in (`enum migratetype`, include/linux/mmzone.h).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    Unmovable = 0,
    /// Anonymous memory and page cache.
    Movable = 1,
    /// Slabs that a shrinker can free.
    Reclaimable = 2,
    /// Reserved for high-order atomic allocations.
    HighAtomic = 3,
    /// Taken out of service.
    Isolate = 4,
}

impl MigrateType {
    /// Types with free lists.
    pub const COUNT: usize = 5;
    /// Types that per-CPU lists hold (`MIGRATE_PCPTYPES`).
    pub const PCP_COUNT: usize = 3;
    /// All, in the order of their values.
    pub const ALL: [MigrateType; 5] = [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
        MigrateType::HighAtomic,
        MigrateType::Isolate,
    ];

    /// The type with this value.
    #[inline]
    pub fn from_index(index: usize) -> MigrateType {
        MigrateType::ALL[index]
    }

    /// The type that an allocation with these flags is for (`gfp_migratetype()`).
    #[inline]
    pub fn of(gfp: Gfp) -> MigrateType {
        if gfp.contains(Gfp::MOVABLE) {
            MigrateType::Movable
        } else if gfp.contains(Gfp::RECLAIMABLE) {
            MigrateType::Reclaimable
        } else {
            MigrateType::Unmovable
        }
    }

    /// Name as in `/proc/pagetypeinfo`.
    pub fn name(self) -> &'static str {
        ["Unmovable", "Movable", "Reclaimable", "HighAtomic", "Isolate"][self as usize]
    }
}

/// What is special about the calling task (`current->flags`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskFlags {
    /// `PF_MEMALLOC`: reclaims now; may use the reserves and never reclaims again.
    pub memalloc: bool,
    /// Is a kswapd.
    pub kswapd: bool,
    /// `PF_KTHREAD`: is a kernel thread that allocates huge pages.
    pub kthread: bool,
    /// Chosen by the OOM killer; may use the reserves.
    pub oom_victim: bool,
    /// Handles a page fault (`current->in_lru_fault`): what it adds to the LRU is hot.
    pub in_lru_fault: bool,
    /// Submits what it reads itself, after the call ([`crate::Effect::HeldRead`]).
    pub holds_reads: bool,
    /// Device of the file that it writes to (`current->backing_dev_info`).
    pub writes_to: Option<u16>,
    /// Address space that it runs in (`current->mm`).
    pub space: Option<SpaceId>,
    /// Group that what it brings into memory belongs to.
    pub memcg: MemcgId,
}

/// Where and when a mechanism is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Env {
    /// Virtual time.
    pub now: Nanos,
    /// CPU that the task runs on: whose per-CPU lists it uses.
    pub cpu: CpuId,
    /// Node of that CPU.
    pub node: NodeId,
    /// The calling task.
    pub task: TaskFlags,
}

/// An allocation that could not be served on the fast path, to be repeated on the slow one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AllocRequest {
    /// Flags.
    pub gfp: Gfp,
    /// Order.
    pub order: Order,
    /// Node to prefer.
    pub node: NodeId,
}
