//! The flusher of a group's writeback of a device: background, periodic and requested.
//!
//! Rule: requests come first, then a flush of everything that reclaim or sync asked for, then, every 5 s, inodes that
//! have been dirty for 30 s, then background work while more is dirty than the background limit. Each takes inodes from
//! the tail of `b_io`, in slices of at least 4 MiB, at most what the device writes in half a second and an eighth of the
//! dirty limit. Background and periodic work give way to requests. The limits are checked again after 100 ms. While it has everything to
//! write it is not asked for that again; who is woken while at work goes round once more.
//! Source: `wb_workfn()`, `wb_do_writeback()`, `wb_start_writeback()`, `wb_wakeup()`, `wb_writeback()`, `writeback_sb_inodes()`, `writeback_chunk_size()`,
//! `requeue_inode()`, fs/fs-writeback.c, `wb_over_bg_thresh()`, mm/page-writeback.c (4.20; 6.12 the same).
//! An inode that a task is writing is put off by others who come to it, for `b_more_io`.
//! Since/until: [`BackgroundLimit`], [`BackgroundInodes`]; until 4.10 reclaim asks for a number of pages ([`WakeFlusher::Pages`]), until 3.1
//! throttled writers write too (see writer_writes.rs); [`CyclicWriteback`]. What reclaim asked for by a number of pages begins with each file's first page, which it did until 4.14.
//! Abstracted: ext4's own `ext4_writepages()` goes on at a file's beginning to this day, and begins behind the page that it wrote last;
//! here it does as the others. With that, wbstrm under 5.10 and 6.1 was further off (medians of 4.6 and 2.6 % instead of 1.8 and 2.7, 90th
//! percentiles of 23.7 and 17.8 instead of 22.1 and 11.4), for a reason that is not known.
//! Abstracted: an inode's slice is written in steps, between which the caller may wait for the device's queue. A
//! request writes as many pages of each file as were dirty when it got there (Linux tags them).
//! Abstracted: where a slice wraps the next begins with the last page of the run written last, where XFS, which writes a run from its first
//! page, begins with that; and what sync(2) asks of all flushers is one flag and cyclic, which it is since 4.15.
//! Abstracted: a request writes an inode beside another task, where Linux waits for that one's slice.
//! Abstracted: slices of 2.6.39 follow the device as 3.1's do; until 3.0 they are 4 MiB (`MAX_WRITEBACK_PAGES`).
//! Omitted: the memory that a request takes, without which it is not made.

use rules::{BackgroundInodes, BackgroundLimit, CyclicWriteback};
use smallvec::SmallVec;
use units::{FileId, Nanos, Pfn};

use super::foreign::RecordId;
use super::inodes::On;
use super::limits::DirtyLimits;
use super::submit::{JournalWait, OpenBio, WriteRun, Written};
use super::{HZ, Request, WbId, jiffies};
use crate::stat::NodeStat;
use crate::{Effect, Env, Mm, WakeFlusher};

/// Smallest slice of an inode in pages (`MIN_WRITEBACK_PAGES`): 4 MiB.
const SLICE_MIN: u64 = 1024;
/// Share of the dirty limit that a slice may take (`DIRTY_SCOPE`).
const DIRTY_SCOPE: u64 = 8;
/// Jiffies after which the flusher looks at the limits again.
const BATCH: u64 = HZ / 10;

/// Why the flusher writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    /// Somebody waits for everything.
    Sync { ticket: u64 },
    /// A group wants written what some of its pages are among.
    Foreign(RecordId),
    /// Reclaim or sync wants as much written as is dirty now.
    All,
    /// Reclaim wants so many pages written.
    Pages,
    /// A throttled writer writes so many pages.
    Writer,
    /// Old data.
    Kupdate,
    /// More is dirty than the background limit.
    Background,
}

/// One piece of work (`struct wb_writeback_work`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Work {
    reason: Reason,
    /// Pages still to be written.
    nr_pages: i64,
    /// When it began.
    since: Nanos,
    /// The present batch: when it began, pages and inodes written in it.
    batch: Option<(u64, u64)>,
    inode: Option<Slice>,
}

impl Work {
    /// Whether somebody waits until all of it is on the device (`WB_SYNC_ALL`).
    fn is_sync(&self) -> bool {
        matches!(self.reason, Reason::Sync { .. })
    }

    /// Whether a file is written from where the last slice ended (`range_cyclic`), instead of from its beginning.
    fn is_cyclic(&self) -> bool {
        !matches!(self.reason, Reason::Sync { .. } | Reason::Pages)
    }
}

/// The inode that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slice {
    file: FileId,
    /// Pages that it may still write.
    left: u64,
    /// Pages that are still to be looked at: from `next` to before `end`.
    next: u32,
    end: u32,
    /// The page looked at last.
    looked_at: u32,
    /// Pages before this one come after the file's last.
    wraps_to: Option<u32>,
    wrote: u64,
    open: OpenBio,
    /// Pages were left because the inode was locked.
    skipped: bool,
}

impl Slice {
    /// Counts what a step of it did.
    fn add(&mut self, run: &WriteRun) {
        if run.next > self.next {
            self.looked_at = run.next - 1;
        }
        self.next = run.next;
        self.left -= u64::from(run.pages);
        self.wrote += u64::from(run.pages);
        self.skipped |= run.skipped;
    }

    /// Goes on at the file's beginning, if it still may.
    fn wrap(&mut self) -> bool {
        let end = if self.left > 0 { self.wraps_to.take() } else { None };
        if let Some(end) = end {
            (self.next, self.end, self.looked_at) = (0, end, 0);
        }
        end.is_some()
    }
}

/// What a flusher is at; the task keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlushWork {
    stage: Stage,
    work: Option<Work>,
}

/// Why there is no inode to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BatchEnd {
    /// The limits are to be looked at again.
    Batch,
    /// Other tasks write all that is left.
    Busy,
    /// The work has ended.
    Work,
}

/// What is looked for next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    #[default]
    Requests,
    All,
    Kupdate,
    Background,
    /// Everything was looked for once.
    End,
}

/// What a step of the flusher did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushStep {
    /// Something; call again when the device's queue has room.
    More,
    /// Wait until the page is neither locked nor under writeback, then call again.
    Wait(Pfn),
    /// Wait for the journal, then call again.
    Journal(JournalWait),
    /// Other tasks write every inode that is left; call again once some write has ended.
    Busy,
    /// Nothing is left; sleep until then, or until woken if there is no time.
    Idle(Option<Nanos>),
}

impl FlushWork {
    /// What a throttled writer has to write: so many pages, of any inode that is dirty now.
    pub fn of_writer(env: &Env, pages: u64) -> FlushWork {
        let nr_pages = i64::try_from(pages).unwrap_or(i64::MAX);
        let work = Work { reason: Reason::Writer, nr_pages, since: env.now, batch: None, inode: None };
        FlushWork { stage: Stage::End, work: Some(work) }
    }

    /// Pages still to be written; less than none if an inode's slice was longer.
    pub fn pages_left(&self) -> i64 {
        self.work.map_or(0, |work| work.nr_pages)
    }
}

impl Mm {
    /// One step of a throttled writer's own writeback: up to `budget` pages of one inode; `None` once it has done one batch,
    /// or if there is nothing to write (`writeback_inodes_wb()`).
    pub fn writeback_by_writer(
        &mut self,
        env: &Env,
        wb: WbId,
        flush: &mut FlushWork,
        budget: u32,
    ) -> Option<FlushStep> {
        self.writeback.wbs.get_mut(wb);
        let work = flush.work.as_mut()?;
        if work.inode.is_none() && self.next_inode(env, wb, work).is_some() {
            return None;
        }
        Some(self.write_slice(env, wb, work, budget))
    }

    /// Interval of the periodic flush.
    pub(super) fn flush_interval(&self) -> Nanos {
        Nanos::millis(self.tunables.dirty_writeback_centisecs * 10)
    }

    /// Age at which what is dirty is old.
    pub(super) fn expire_interval(&self) -> Nanos {
        Nanos::millis(self.tunables.dirty_expire_centisecs * 10)
    }

    /// Whether a flusher, which has not worked since it was armed, is to wake up now: there is one timer
    /// (`bdi_writeback.dwork`), and whoever wakes the flusher before takes it.
    pub fn flusher_is_due(&self, wb: WbId, now: Nanos) -> bool {
        self.writeback.wbs.get(wb).is_some_and(|state| state.armed == Some(now))
    }

    /// Something is asked of all flushers ([`Effect::WakeFlushers`]): those that have something dirty, and do not have to write
    /// everything already, are to be woken (`wb_start_writeback()`).
    pub fn ask_flushers(&mut self, reason: WakeFlusher) -> SmallVec<[WbId; 8]> {
        let mut woken = self.writeback.wbs.ids();
        woken.retain(|wb| {
            let state = &mut self.writeback.wbs[*wb];
            let wakes = match reason {
                _ if !state.has_dirty_io() => false,
                WakeFlusher::Vmscan | WakeFlusher::Sync => !std::mem::replace(&mut state.start_all, true),
                WakeFlusher::Pages(pages) => {
                    state.requests.push_back(Request::Pages(pages));
                    true
                }
            };
            state.again |= wakes && state.running;
            wakes
        });
        woken
    }

    /// Asks all flushers to write what is dirty now (`wakeup_flusher_threads()`).
    pub fn wakeup_flusher_threads(&mut self, reason: WakeFlusher) {
        self.effects.push(Effect::WakeFlushers(reason));
    }

    /// Whether background writeback should go on (`wb_over_bg_thresh()`).
    pub fn wb_over_bg_thresh(&mut self, env: &Env, wb: WbId) -> bool {
        let (dirtyable, dirty) = (self.global_dirtyable_memory().0, self.stat.node_sum(NodeStat::FileDirty));
        let background = DirtyLimits::new(dirtyable, &self.tunables).background;
        if dirty > background {
            return true;
        }
        if self.rules.background_limit == BackgroundLimit::Machine {
            return false;
        }
        let share = self.wb_share(wb, jiffies(env.now));
        self.has_more_than(wb, background, share) || self.group_over_bg_thresh(env, wb, (dirtyable, dirty))
    }

    /// The same for the limit of its group.
    fn group_over_bg_thresh(&mut self, env: &Env, wb: WbId, machine: (u64, u64)) -> bool {
        let Some(group) = self.memcg_dirty_limits(wb.group, machine, false) else { return false };
        let background = group.limits.background;
        let share = self.wb_share_of_group(wb, jiffies(env.now));
        group.dirty.dirty > background || self.has_more_than(wb, background, share)
    }

    /// Whether it has more dirty pages than its share of a limit.
    fn has_more_than(&self, wb: WbId, limit: u64, (num, den): (u64, u64)) -> bool {
        self.writeback.wbs[wb].reclaimable > limit * num / den
    }

    /// One step of a flusher: writes up to `budget` pages of one inode.
    pub fn writeback_step(&mut self, env: &Env, wb: WbId, flush: &mut FlushWork, budget: u32) -> FlushStep {
        let state = self.writeback.wbs.get_mut(wb);
        (state.running, state.armed) = (true, None);
        let Some(work) = flush.work.as_mut() else {
            return self.next_work(env, wb, flush);
        };
        if work.inode.is_none()
            && let Some(end) = self.next_inode(env, wb, work)
        {
            match end {
                BatchEnd::Batch => {}
                BatchEnd::Busy => return FlushStep::Busy,
                BatchEnd::Work => {
                    self.finish_work(wb, work);
                    flush.work = None;
                }
            }
            return FlushStep::More;
        }
        self.write_slice(env, wb, work, budget)
    }

    /// Looks for work in the order of the stages.
    fn next_work(&mut self, env: &Env, wb: WbId, flush: &mut FlushWork) -> FlushStep {
        let nr_dirty = self.stat.node_sum(NodeStat::FileDirty);
        let begin = |reason, nr_pages| Some(Work { reason, nr_pages, since: env.now, batch: None, inode: None });
        let state = &mut self.writeback.wbs[wb];
        flush.work = match flush.stage {
            Stage::Requests => match state.requests.pop_front() {
                Some(Request::Sync { ticket }) => {
                    state.dirty_dir = None;
                    begin(Reason::Sync { ticket }, i64::MAX)
                }
                Some(Request::Foreign { record, pages }) => begin(Reason::Foreign(record), pages as i64),
                Some(Request::Pages(pages)) => begin(Reason::Pages, i64::try_from(pages).unwrap_or(i64::MAX)),
                None => {
                    flush.stage = Stage::All;
                    None
                }
            },
            Stage::All => {
                flush.stage = Stage::Kupdate;
                if state.start_all && nr_dirty > 0 {
                    let part = self.part_of_all(wb);
                    begin(Reason::All, part as i64)
                } else {
                    state.start_all = false;
                    None
                }
            }
            Stage::Kupdate => {
                flush.stage = Stage::Background;
                if self.old_flush_due(env, wb) && nr_dirty > 0 {
                    let all = self.asked_of_old(env, wb);
                    begin(Reason::Kupdate, all as i64)
                } else {
                    None
                }
            }
            Stage::Background => {
                flush.stage = Stage::End;
                if self.wb_over_bg_thresh(env, wb) && self.writeback.wbs[wb].has_dirty_io() {
                    begin(Reason::Background, i64::MAX)
                } else {
                    None
                }
            }
            Stage::End => {
                flush.stage = Stage::Requests;
                return self.sleep_unless_asked(env, wb);
            }
        };
        FlushStep::More
    }

    /// Even if more is dirty than the background limit: what could not be written then waits for the next wake-up.
    fn sleep_unless_asked(&mut self, env: &Env, wb: WbId) -> FlushStep {
        let state = &mut self.writeback.wbs[wb];
        if std::mem::take(&mut state.again) || !state.requests.is_empty() {
            return FlushStep::More;
        }
        state.running = false;
        let again = state.has_dirty_io() && self.tunables.dirty_writeback_centisecs > 0;
        FlushStep::Idle(again.then(|| env.now + self.flush_interval()))
    }

    /// Whether the periodic flush is due; if so, the next is an interval away.
    fn old_flush_due(&mut self, env: &Env, wb: WbId) -> bool {
        let interval = jiffies(self.flush_interval());
        let state = &mut self.writeback.wbs[wb];
        let now = jiffies(env.now);
        if interval == 0 || now < state.last_old_flush + interval {
            return false;
        }
        state.last_old_flush = now;
        true
    }

    fn finish_work(&mut self, wb: WbId, work: &Work) {
        let state = &mut self.writeback.wbs[wb];
        match work.reason {
            Reason::Sync { ticket } => state.tickets_done = ticket,
            Reason::Foreign(record) => self.writeback.foreign.done(record),
            Reason::All => state.start_all = false,
            Reason::Pages | Reason::Writer | Reason::Kupdate | Reason::Background => {}
        }
    }

    /// Chooses the next inode; `None` if there is one.
    fn next_inode(&mut self, env: &Env, wb: WbId, work: &mut Work) -> Option<BatchEnd> {
        let now = jiffies(env.now);
        match work.batch {
            None => {
                if self.work_is_over(env, wb, work) {
                    return Some(BatchEnd::Work);
                }
                let until = self.dirtied_until(env, work);
                let (state, records) = (&mut self.writeback.wbs[wb], &mut self.writeback.records);
                if state.b_io.is_empty() {
                    state.queue_io(records, until);
                }
                work.batch = Some((now, 0));
            }
            Some((began, wrote)) => {
                let enough = wrote > 0 && (now > began + BATCH || work.nr_pages <= 0);
                if enough || self.writeback.wbs[wb].b_io.is_empty() {
                    return Some(self.end_batch(wb, work, now, wrote));
                }
            }
        }
        let waits = work.is_sync();
        let (state, records) = (&mut self.writeback.wbs[wb], &mut self.writeback.records);
        let Some(file) = state.next_to_write(records, waits) else {
            let (_, wrote) = work.batch.unwrap_or_default();
            return Some(self.end_batch(wb, work, now, wrote));
        };
        let file = FileId(file);
        let left = self.slice_pages(wb, file, work);
        let first = if work.is_cyclic() { self.pagecache.trees.writeback_index.get(file.0) } else { 0 };
        self.writeback.records[file.0].set_syncing(true);
        work.inode = Some(Slice {
            file,
            left,
            next: first,
            end: u32::MAX,
            looked_at: first,
            wraps_to: (first > 0 && self.rules.cyclic_writeback == CyclicWriteback::Wraps).then_some(first),
            wrote: 0,
            open: if work.is_sync() { OpenBio::default() } else { OpenBio::trylock() },
            skipped: false,
        });
        None
    }

    fn end_batch(&mut self, wb: WbId, work: &mut Work, now: u64, wrote: u64) -> BatchEnd {
        work.batch = None;
        let (state, records) = (&mut self.writeback.wbs[wb], &mut self.writeback.records);
        state.update_bandwidth(now, jiffies(work.since), &[]);
        match (wrote, state.b_more_io.back()) {
            (0, None) => BatchEnd::Work,
            (0, Some(last)) if records[last].syncing() => BatchEnd::Busy,
            _ => BatchEnd::Batch,
        }
    }

    /// Whether a piece of work has nothing to do any more.
    fn work_is_over(&mut self, env: &Env, wb: WbId, work: &Work) -> bool {
        let yields = matches!(work.reason, Reason::Background | Reason::Kupdate);
        work.nr_pages <= 0
            || (yields && !self.writeback.wbs[wb].requests.is_empty())
            || (work.reason == Reason::Background && !self.wb_over_bg_thresh(env, wb))
    }

    /// Inodes dirtied after this instant are not taken; none at all before time began.
    fn dirtied_until(&self, env: &Env, work: &Work) -> Option<Nanos> {
        match work.reason {
            Reason::Kupdate => env.now.0.checked_sub(self.expire_interval().0).map(Nanos),
            Reason::Background if self.rules.background_inodes == BackgroundInodes::DirtyNow => Some(env.now),
            Reason::Background => Some(work.since),
            Reason::Sync { .. } | Reason::Foreign(_) | Reason::All | Reason::Pages | Reason::Writer => Some(work.since),
        }
    }

    /// Pages that an inode may write at a time (`writeback_chunk_size()`).
    fn slice_pages(&self, wb: WbId, file: FileId, work: &Work) -> u64 {
        if work.is_sync() {
            return u64::from(self.pagecache.trees.nr_dirty(file.0));
        }
        let state = &self.writeback.wbs[wb];
        let left = u64::try_from(work.nr_pages).unwrap_or(0);
        slice(state.avg_write_bandwidth, self.writeback.dirty_limit, left)
    }

    /// Writes a part of the inode's slice.
    fn write_slice(&mut self, env: &Env, wb: WbId, work: &mut Work, budget: u32) -> FlushStep {
        let Some(mut slice) = work.inode else { return FlushStep::More };
        if self.writeback.records.get(slice.file).is_none() {
            // It was truncated meanwhile.
            self.submit_open(env, &mut slice.open);
            work.inode = None;
            return FlushStep::More;
        }
        let sync = work.is_sync();
        let max = slice.left.min(u64::from(budget.max(1))) as u32;
        slice.open.set_left(slice.left);
        let run = self.write_into(env, slice.file, slice.next..slice.end, max, sync, &mut slice.open);
        slice.add(&run);
        work.nr_pages -= i64::from(run.pages);
        let goes_on = run.stop == Written::End && slice.wrap();
        work.inode = Some(slice);
        match run.stop {
            Written::Wait(pfn) => return FlushStep::Wait(pfn),
            Written::Journal(wait) => return FlushStep::Journal(wait),
            Written::Enough if slice.left > 0 => return FlushStep::More,
            Written::End if goes_on => return FlushStep::More,
            Written::Enough | Written::End => self.submit_open(env, &mut slice.open),
        }
        let ended = run.stop == Written::End;
        if ended || work.is_cyclic() {
            self.keep_place(&slice, ended);
        }
        work.inode = None;
        let clean = self.requeue_inode(env, wb, &slice, sync);
        if let Some((_, wrote)) = &mut work.batch {
            *wrote += slice.wrote + u64::from(clean);
        }
        FlushStep::More
    }

    /// Keeps where the next cyclic slice of a file begins (`writeback_index`); whether this one came to the file's end.
    fn keep_place(&mut self, slice: &Slice, ended: bool) {
        let place = match self.rules.cyclic_writeback {
            CyclicWriteback::Wraps => slice.looked_at,
            CyclicWriteback::Ends if ended => 0,
            CyclicWriteback::Ends => slice.next,
        };
        self.pagecache.trees.writeback_index.set(slice.file.0, place);
    }

    /// Puts an inode where it belongs after its slice; says whether it is clean.
    fn requeue_inode(&mut self, env: &Env, wb: WbId, slice: &Slice, sync: bool) -> bool {
        let Some(record) = self.writeback.records.get_mut(slice.file) else { return true };
        record.set_syncing(false);
        let listed = record.on() != On::Nothing;
        if self.pagecache.trees.nr_dirty(slice.file.0) == 0 {
            if listed {
                self.unlist_dirty_inode(slice.file);
            }
            return true;
        }
        let file = slice.file.0;
        let (state, records) = (&mut self.writeback.wbs[wb], &mut self.writeback.records);
        if sync {
            let jiffy = state.dirtied_now(records, env.now);
            records[file].set_dirtied_when(jiffy);
        }
        if slice.left == 0 && !sync && !slice.skipped {
            state.move_inode(records, file, On::MoreIo);
        } else {
            state.redirty_tail(records, file, env.now);
        }
        false
    }
}

/// A slice in pages, for a device that writes `bandwidth` pages a second.
fn slice(bandwidth: u64, dirty_limit: u64, left: u64) -> u64 {
    let pages = (bandwidth / 2).min(dirty_limit / DIRTY_SCOPE).min(left);
    (pages + SLICE_MIN) / SLICE_MIN * SLICE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_half_a_second_rounded_to_the_next_4_mib() {
        // 25600 pages a second: 12800 + 1024 rounded down to 1024: 13 * 1024.
        assert_eq!(slice(25_600, 1_000_000, u64::MAX), 13 * 1024);
        assert_eq!(slice(25_600, 8 * 1023, u64::MAX), 1024);
        assert_eq!(slice(25_600, 8 * 1024, u64::MAX), 2048);
        assert_eq!(slice(25_600, 1_000_000, 0), 1024);
    }
}
