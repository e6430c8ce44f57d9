//! Writers that exceed the limits write themselves.
//!
//! Rule: a writer looks at the limits whenever its CPU has dirtied 1/32 of a CPU's share of the memory, 4 MiB at most, and
//! after 8 pages while its device's limit is exceeded. Above it - the device's share of the dirty limit, less up to an eighth in
//! proportion to what of the recently dirtied pages the writer dirtied - or above the machine's limit, it writes one and a
//! half times as many pages as brought it here, of whatever inodes are next on the device's list, and may go on once it has
//! done so. What it cannot write it waits for, in naps of 2 jiffies, 4, 8, ... up to 100 ms; after 200 ms it may go on if
//! the limits are only just exceeded.
//! Source: `balance_dirty_pages()`, `balance_dirty_pages_ratelimited_nr()`, `sync_writeback_pages()`, `task_dirty_limit()`,
//! `writeback_set_ratelimit()` (mm/page-writeback.c), `writeback_inodes_wb()` (fs/fs-writeback.c), lib/proportions.c; 3.1.
//! Since/until: [`DirtyThrottle::WriterWrites`](rules::DirtyThrottle), until 3.1.
//! Shares of devices and tasks: see proportion.rs.

use units::FileId;

use super::balance::{Pause, TaskDirty};
use super::{DirtyLimits, HZ, WbId, from_jiffies, jiffies};
use crate::stat::NodeStat;
use crate::{Env, Mm};

/// Share of a device's limit that is taken off for the heaviest writer (`TASK_LIMIT_FRACTION`).
const TASK_LIMIT_FRACTION: u64 = 8;
/// Pages after which a CPU's writers look while the limit of their device is exceeded.
const EXCEEDED_RATELIMIT: u64 = 8;
/// Most pages between two looks: 4 MiB.
const RATELIMIT_MAX: u64 = 1024;
/// Longest nap in jiffies.
const NAP_MAX: u64 = HZ / 10;
/// Jiffies after which a writer may go on that exceeds the limits only just (`MAX_PAUSE`).
const MAX_PAUSE: u64 = HZ / 5;

/// A writer in the midst of `balance_dirty_pages()`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Writer {
    /// Pages that it is to write.
    chunk: u64,
    /// Pages that it has written.
    written: u64,
    /// Length of its next nap in jiffies.
    nap: u64,
    /// When it began, in jiffies.
    since: u64,
    at: At,
}

/// Where the writer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// It looks at the limits.
    Limits,
    /// It has written what it could.
    Written,
    /// It naps; whether it may go on if its time is over.
    Nap(bool),
}

/// Limits and dirty pages as a writer sees them.
#[derive(Clone, Copy, Debug)]
struct Look {
    limits: DirtyLimits,
    /// Dirty pages of the machine, and with those under writeback.
    reclaimable: u64,
    dirty: u64,
    /// The same of the device.
    wb_reclaimable: u64,
    wb_dirty: u64,
    /// Share of the limit of the device, and of the writer.
    wb_thresh: u64,
    task_thresh: u64,
}

impl Look {
    fn is_exceeded(&self) -> bool {
        self.wb_dirty > self.task_thresh || self.dirty > self.limits.dirty
    }

    /// No task at all exceeds anything.
    fn is_clear(&self) -> bool {
        let lowest = self.wb_thresh - self.wb_thresh / TASK_LIMIT_FRACTION;
        self.wb_dirty <= lowest && self.dirty <= self.limits.dirty
    }

    /// The limits are exceeded only just.
    fn is_close(&self, hard_limit: u64) -> bool {
        self.dirty < hard_limit && self.wb_dirty < (self.task_thresh + self.wb_thresh) / 2
    }
}

/// The limit of a writer that has dirtied `num / den` of the pages dirtied of late.
fn task_limit(wb_thresh: u64, (num, den): (u64, u64)) -> u64 {
    let less = wb_thresh / TASK_LIMIT_FRACTION * num / den;
    (wb_thresh - less).max(wb_thresh / 2)
}

impl Mm {
    /// Pages that a CPU may dirty before a writer on it looks at the limits.
    fn writer_ratelimit(&self) -> u64 {
        let total: u64 = self.zones.iter().map(|zone| zone.managed).sum();
        let nr_cpus = self.pcps.nr_cpus().max(1) as u64;
        (total / (nr_cpus * 32)).clamp(16, RATELIMIT_MAX)
    }

    /// Counts pages that a task dirtied, and says what it must do; see [`Mm::balance_dirty_pages`].
    pub(super) fn balance_by_writing(&mut self, env: &Env, file: FileId, dirtied: u64, task: &mut TaskDirty) -> Pause {
        if let Some(writer) = task.writer.take() {
            return self.writer_goes_on(env, file, task, writer);
        }
        let length = self.writeback.completion_period;
        self.writeback.dirtied += dirtied;
        task.share.count(dirtied, self.writeback.dirtied, length);
        let ratelimit = self.writer_ratelimit();
        let wb = self.wb_of(file);
        let exceeded = self.writeback.wbs.get_mut(wb).dirty_exceeded;
        let cpu = &mut self.writeback.cpu_dirtied[env.cpu.index()];
        *cpu += dirtied;
        if *cpu < if exceeded { EXCEEDED_RATELIMIT } else { ratelimit } {
            return Pause::None;
        }
        let dirtied = std::mem::take(cpu).max(ratelimit);
        let chunk = dirtied + dirtied / 2;
        let writer = Writer { chunk, written: 0, nap: 1, since: jiffies(env.now), at: At::Limits };
        self.writer_goes_on(env, file, task, writer)
    }

    /// The writer has tried to write; `pages` is what it managed.
    pub fn writer_wrote(task: &mut TaskDirty, pages: u64) {
        if let Some(writer) = &mut task.writer {
            writer.written += pages;
        }
    }

    fn writer_goes_on(&mut self, env: &Env, file: FileId, task: &mut TaskDirty, mut writer: Writer) -> Pause {
        let wb = self.wb_of(file);
        let look = self.writer_looks(env, wb, task);
        match writer.at {
            At::Limits => {}
            At::Written if writer.written >= writer.chunk => return self.writer_ends(wb, &look),
            At::Written => return self.writer_naps(task, writer, &look),
            At::Nap(may_go) => {
                if may_go && jiffies(env.now) > writer.since + MAX_PAUSE {
                    return self.writer_ends(wb, &look);
                }
                writer.nap = (writer.nap * 2).min(NAP_MAX);
            }
        }
        if look.dirty <= look.limits.freerun() || !look.is_exceeded() {
            return self.writer_ends(wb, &look);
        }
        self.writeback.set_exceeded(wb, true);
        let now = jiffies(env.now);
        self.writeback.track_dirty_limit(look.limits.dirty, look.dirty, now);
        self.writeback.wbs[wb].update_bandwidth(now, writer.since, &[]);
        if look.wb_reclaimable > look.task_thresh {
            writer.at = At::Written;
            task.writer = Some(writer);
            return Pause::Write(wb, writer.chunk);
        }
        self.writer_naps(task, writer, &look)
    }

    fn writer_naps(&mut self, task: &mut TaskDirty, mut writer: Writer, look: &Look) -> Pause {
        let nap = writer.nap;
        writer.at = At::Nap(look.is_close(look.limits.dirty.max(self.writeback.dirty_limit)));
        task.writer = Some(writer);
        Pause::Sleep(from_jiffies(nap))
    }

    fn writer_ends(&mut self, wb: WbId, look: &Look) -> Pause {
        if look.is_clear() {
            self.writeback.set_exceeded(wb, false);
        }
        if look.reclaimable > look.limits.background {
            self.start_background(wb);
        }
        Pause::None
    }

    fn writer_looks(&mut self, env: &Env, wb: WbId, task: &mut TaskDirty) -> Look {
        let reclaimable = self.stat.node_sum(NodeStat::FileDirty);
        let limits = self.global_dirty_limits();
        let (length, everybody) = (self.writeback.completion_period, self.writeback.dirtied);
        let (num, den) = self.wb_share(wb, jiffies(env.now));
        let state = &self.writeback.wbs[wb];
        let wb_thresh = limits.dirty * num / den;
        Look {
            limits,
            reclaimable,
            dirty: reclaimable + self.stat.node_sum(NodeStat::Writeback),
            wb_reclaimable: state.reclaimable,
            wb_dirty: state.reclaimable + state.writeback,
            wb_thresh,
            task_thresh: task_limit(wb_thresh, task.share.fraction(everybody, length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_writer_gets_an_eighth_less_than_one_that_hardly_writes() {
        // 8000 - 8000 / 8 * 1 and 8000 - 8000 / 8 * 1 / 10.
        assert_eq!(task_limit(8000, (1, 1)), 7000);
        assert_eq!(task_limit(8000, (1, 10)), 7900);
        assert_eq!(task_limit(8000, (0, 10)), 8000);
    }

    #[test]
    fn a_writer_may_go_on_when_it_exceeds_its_limit_by_less_than_half_of_what_was_taken_off() {
        let limits = DirtyLimits { background: 100, dirty: 1000 };
        let look = |wb_dirty| Look {
            limits,
            reclaimable: 0,
            dirty: 900,
            wb_reclaimable: 0,
            wb_dirty,
            wb_thresh: 800,
            task_thresh: 700,
        };
        assert!(look(701).is_exceeded() && !look(700).is_exceeded());
        assert!(look(749).is_close(1000) && !look(750).is_close(1000));
        assert!(look(700).is_clear() && !look(701).is_clear(), "800 - 800 / 8");
        assert!(!look(749).is_close(900), "the machine's limit is reached");
    }
}
