//! Dirty memory: limits, throttling of writers, and the flushers' work.
//!
//! Each memory cgroup has a `bdi_writeback` for each device ([`WbId`]): what of its inodes is dirty or being written, how fast
//! it writes, the rate at which its writers may dirty pages, and the dirty inodes. Times of the control loop are in jiffies, as
//! in the kernel, because its rounding is part of the rules.
//!
//! Abstracted: `HZ` is 250 (Debian, SUSE and Fedora's is 1000 or 250). The counters by CPU are exact.
//! Omitted: strict limits, laptop mode, `dirtytime`.

mod balance;
mod bandwidth;
mod bios;
mod boot_limit;
mod complete;
mod dirty;
mod end_io;
mod errors;
mod flusher;
#[cfg(test)]
mod flusher_tests;
mod foreign;
mod groups;
mod ilock;
mod inodes;
#[cfg(test)]
mod integrity_tests;
mod ioend;
mod journal;
mod limits;
mod owner;
mod pageout;
mod pause;
mod position;
mod proportion;
mod submit;
mod sync;
#[cfg(test)]
mod tests;
mod validate;
mod wbs;
mod writer_writes;

use std::collections::{BTreeMap, VecDeque};

use units::{Nanos, PAGE_SHIFT};

pub use balance::{Pause, TaskDirty};
pub(crate) use bios::BIO_VECTOR_BYTES;
pub use bios::RequestLimits;
pub use end_io::EndIoStep;
pub use errors::ErrorsSeen;
pub use flusher::{FlushStep, FlushWork};
pub use ilock::TASK_SLICE;
pub(crate) use ioend::IoendId;
pub use limits::DirtyLimits;
pub use submit::JournalWait;
pub(crate) use submit::{OpenBio, Written};
pub use sync::{Fsync, FsyncStep, SyncTickets};
pub use wbs::WbId;

use crate::env::JIFFY;
use crate::links::IdList;
use inodes::Records;
use journal::Journal;
pub(crate) use proportion::Total;
use proportion::{PageShare, Share};
use wbs::Wbs;

/// Ticks a second.
pub(super) const HZ: u64 = Nanos::secs(1).0 / JIFFY.0;
/// Bandwidth that a device is thought to have at first: 100 MB/s, in pages (`INIT_BW`).
const INITIAL_BANDWIDTH: u64 = 100 << (20 - PAGE_SHIFT);

/// An instant in jiffies.
fn jiffies(at: Nanos) -> u64 {
    (u128::from(at.0) * u128::from(HZ) / 1_000_000_000) as u64
}

/// So many jiffies as a duration.
fn from_jiffies(ticks: u64) -> Nanos {
    Nanos(ticks * (1_000_000_000 / HZ))
}

/// Work that somebody asked a flusher for (`struct wb_writeback_work`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Request {
    /// All that is dirty now, for which somebody waits. The tickets of a flusher are counted.
    Sync { ticket: u64 },
    /// So many pages, for a group that some of them are of.
    Foreign { record: foreign::RecordId, pages: u64 },
    /// So many pages, for reclaim.
    Pages(u64),
}

/// What is known of a group's writeback of a device (`struct bdi_writeback`).
#[derive(Debug)]
pub(super) struct Wb {
    /// Dirty pages (`WB_RECLAIMABLE`).
    reclaimable: u64,
    /// Pages under writeback (`WB_WRITEBACK`).
    writeback: u64,
    /// Pages dirtied so far (`WB_DIRTIED`).
    dirtied: u64,
    /// Pages written so far (`WB_WRITTEN`).
    written: u64,
    /// When the bandwidths were last updated, in jiffies.
    bw_time_stamp: u64,
    dirtied_stamp: u64,
    written_stamp: u64,
    /// Pages a second, smoothed over some 3 s.
    write_bandwidth: u64,
    /// The same, smoothed once more.
    avg_write_bandwidth: u64,
    /// Pages a second that each writer may dirty at the set point.
    dirty_ratelimit: u64,
    balanced_dirty_ratelimit: u64,
    /// Its share of what the machine writes, and of what its group does on all devices.
    share: Share,
    group_share: Share,
    /// The former where shares fade with pages (`completions`).
    page_share: PageShare,
    /// Its dirty pages exceed its share, and those of the machine the limit.
    dirty_exceeded: bool,
    /// Inodes with dirty pages, newest first.
    b_dirty: IdList,
    /// Inodes that are being written.
    b_io: IdList,
    /// Inodes that used their slice up.
    b_more_io: IdList,
    /// When the oldest of its dirty directories became so, in jiffies.
    dirty_dir: Option<u64>,
    /// When old data was last flushed, in jiffies.
    last_old_flush: u64,
    /// When its flusher is to wake up unless it has worked before ([`Effect::ArmFlusher`](crate::Effect::ArmFlusher)).
    armed: Option<Nanos>,
    /// Everything is to be written, or is being written (`WB_start_all`).
    start_all: bool,
    /// The flusher works (`WB_writeback_running`).
    running: bool,
    /// It was woken while it worked: it goes round once more.
    again: bool,
    requests: VecDeque<Request>,
    tickets: u64,
    tickets_done: u64,
}

impl Wb {
    fn new() -> Wb {
        Wb {
            reclaimable: 0,
            writeback: 0,
            dirtied: 0,
            written: 0,
            bw_time_stamp: 0,
            dirtied_stamp: 0,
            written_stamp: 0,
            write_bandwidth: INITIAL_BANDWIDTH,
            avg_write_bandwidth: INITIAL_BANDWIDTH,
            dirty_ratelimit: INITIAL_BANDWIDTH,
            balanced_dirty_ratelimit: INITIAL_BANDWIDTH,
            share: Share::default(),
            group_share: Share::default(),
            page_share: PageShare::default(),
            dirty_exceeded: false,
            b_dirty: IdList::EMPTY,
            b_io: IdList::EMPTY,
            b_more_io: IdList::EMPTY,
            dirty_dir: None,
            last_old_flush: 0,
            armed: None,
            start_all: false,
            running: false,
            again: false,
            requests: VecDeque::new(),
            tickets: 0,
            tickets_done: 0,
        }
    }

    /// Pages dirty and under writeback.
    fn all_dirty(&self) -> u64 {
        self.reclaimable + self.writeback
    }

    /// Whether an inode is on any of the lists (`wb_has_dirty_io()`).
    fn has_dirty_io(&self) -> bool {
        !(self.b_dirty.is_empty() && self.b_io.is_empty() && self.b_more_io.is_empty())
    }
}

/// Dirty state of the machine.
#[derive(Debug, Default)]
pub struct Writeback {
    wbs: Wbs,
    /// Group that an inode's dirty pages are written for.
    owners: owner::Owners,
    /// Writebacks of others that groups have dirty pages in.
    foreign: foreign::Foreign,
    /// Logs by device.
    journals: Vec<Journal>,
    records: Records,
    /// Everybody's writeback, for the shares of each.
    total: Total,
    /// The same in pages, where shares fade with these (`vm_completions`).
    completions: u64,
    /// Limit that follows the computed one down slowly, in pages (`dirty_limit`).
    pub(crate) dirty_limit: u64,
    /// Pages after which what counts of the past is halved, where shares fade with pages (`vm_completions.pg->shift`).
    completion_period: u64,
    /// When the limit was last updated, in jiffies.
    dirty_limit_tstamp: u64,
    /// Pages that a CPU may dirty before it looks at the limits (`ratelimit_pages`).
    ratelimit_pages: u64,
    /// Pages dirtied by each CPU since then (`bdp_ratelimits`).
    cpu_dirtied: Vec<u64>,
    /// Pages dirtied by tasks that are gone, by CPU (`dirty_throttle_leaks`).
    cpu_leaks: Vec<u64>,
    /// Devices whose writers look more often (`dirty_exceeded`).
    nr_exceeded: u32,
    /// How wrong the kernel's counters of a device may be (`wb_stat_error()`).
    stat_error: u64,
    /// Locks of XFS's inodes.
    ilocks: ilock::Ilocks,
    /// Writes of XFS under way.
    ioends: ioend::Ioends,
    /// By device.
    request_limits: Vec<RequestLimits>,
    /// Pages whose write failed so far.
    write_errors: u64,
    /// Files with failed writes that were not reported, or not to all, by number.
    errors: BTreeMap<u32, errors::FileErrors>,
    /// Pages dirtied so far by tasks that are throttled (`vm_dirties`).
    dirtied: u64,
    /// What waits for a worker to change its file's metadata.
    ended: VecDeque<end_io::Ended>,
}

impl Writeback {
    fn set_exceeded(&mut self, wb: WbId, exceeded: bool) {
        let was = std::mem::replace(&mut self.wbs.get_mut(wb).dirty_exceeded, exceeded);
        self.nr_exceeded += u32::from(exceeded);
        self.nr_exceeded -= u32::from(was);
    }

    /// Dirty pages and pages under writeback of a group on a device.
    pub fn pages_of(&self, wb: WbId) -> (u64, u64) {
        self.wbs.get(wb).map_or((0, 0), |wb| (wb.reclaimable, wb.writeback))
    }

    /// Bandwidth with which a device writes for a group, and rate at which each of the group's writers may dirty pages, in pages a second.
    pub fn rates_of(&self, wb: WbId) -> (u64, u64) {
        let initial = (INITIAL_BANDWIDTH, INITIAL_BANDWIDTH);
        self.wbs.get(wb).map_or(initial, |wb| (wb.avg_write_bandwidth, wb.dirty_ratelimit))
    }

    /// Pages whose write failed so far.
    pub fn write_errors(&self) -> u64 {
        self.write_errors
    }

    /// Host bytes of the records of dirty inodes, and of what is asked of flushers.
    pub fn host_bytes(&self) -> usize {
        self.records.host_bytes()
            + self.wbs.host_bytes()
            + self.owners.host_bytes()
            + self.ioends.host_bytes()
            + self.ended.capacity() * size_of::<end_io::Ended>()
    }
}
