//! Writers are throttled to what the devices can write.
//!
//! Rule: a writer looks at the limits after `nr_dirtied_pause` pages. Below freerun, midway between the background and
//! the dirty limit, nothing happens but that the flusher is woken above the background limit. Above, it pauses as long
//! as the pages that it dirtied should have taken at its rate, less the time that it took for them.
//! Since/until: since 3.2 ([`DirtyThrottle::Rate`]); before, see writer_writes.rs.
//! Source: `balance_dirty_pages()`, `balance_dirty_pages_ratelimited()`,
//! mm/page-writeback.c (4.20; 6.12 the same without flags).
//! A writer to an inode that a memory cgroup owns (owner.rs) keeps the limits of that group too (`memcg::dirty`), and pauses by whichever of the two is nearer.
//! Abstracted: the error of counters by CPU only decides whether a writer above the limit goes on (`wb_stat_error()`).

use rules::DirtyThrottle;
use smallvec::SmallVec;
use units::{FileId, Nanos};

use super::pause::{self, POLL_THRESH};
use super::position::{DirtyControl, RATIO_SHIFT};
use super::proportion::PageShare;
use super::writer_writes::Writer;
use super::{DirtyLimits, HZ, WbId, bandwidth, from_jiffies, jiffies};
use crate::stat::NodeStat;
use crate::{Effect, Env, Mm};

/// Pages after which a writer looks while its device's dirty pages exceed the limits: 32 KiB.
const EXCEEDED_THRESH: u64 = 8;

/// Dirty throttling state of a task (`current->nr_dirtied` and so on).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskDirty {
    /// Pages dirtied since the last pause.
    pub nr_dirtied: u64,
    /// Pages that it may dirty before it looks.
    nr_dirtied_pause: u64,
    /// When its last pause ended, in jiffies; 0 before the first.
    paused_when: u64,
    /// In the midst of throttling: pages dirtied, and since when, in jiffies.
    again: Option<(u64, u64)>,
    /// In the midst of writing what others dirtied, where writers do that.
    pub(super) writer: Option<Writer>,
    /// Its share of the pages dirtied of late, there.
    pub(super) share: PageShare,
}

impl Default for TaskDirty {
    fn default() -> TaskDirty {
        TaskDirty {
            nr_dirtied: 0,
            nr_dirtied_pause: POLL_THRESH,
            paused_when: 0,
            again: None,
            writer: None,
            share: PageShare::default(),
        }
    }
}

/// What a writer has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Go on.
    None,
    /// Sleep so long, then ask again.
    Sleep(Nanos),
    /// Write so many pages ([`FlushWork::of_writer`], [`Mm::writeback_by_writer`]), say what came of it
    /// ([`Mm::writer_wrote`]), then ask again.
    Write(WbId, u64),
}

impl Mm {
    /// Counts one page that the task dirtied, and says whether it must pause; to be called after each page that
    /// `write_page` says was dirtied, and again after each pause until there is none.
    #[inline]
    pub fn balance_dirty_pages(&mut self, env: &Env, file: FileId, dirtied: u64, task: &mut TaskDirty) -> Pause {
        if self.writeback.cpu_dirtied.len() <= env.cpu.index() {
            self.writeback.cpu_dirtied.resize(env.cpu.index() + 1, 0);
            self.writeback.cpu_leaks.resize(env.cpu.index() + 1, 0);
        }
        if self.rules.dirty_throttle == DirtyThrottle::WriterWrites {
            return self.balance_by_writing(env, file, dirtied, task);
        }
        if dirtied == 0 && task.again.is_none() {
            // Its pause is over, and the next look comes with the next page, however soon that is to be.
            return Pause::None;
        }
        task.nr_dirtied += dirtied;
        let cpu = &mut self.writeback.cpu_dirtied[env.cpu.index()];
        *cpu += dirtied;
        let below = task.nr_dirtied < task.nr_dirtied_pause && *cpu < self.writeback.ratelimit_pages;
        let usual = self.writeback.nr_exceeded == 0 && self.writeback.cpu_leaks[env.cpu.index()] == 0;
        if below && usual && task.again.is_none() {
            return Pause::None;
        }
        self.balance_ratelimited(env, file, task)
    }

    /// A task that dirtied pages ends: what it was not throttled for is charged to others on its CPU.
    pub fn dirty_task_exit(&mut self, env: &Env, task: &TaskDirty) {
        if let Some(leaks) = self.writeback.cpu_leaks.get_mut(env.cpu.index()) {
            *leaks += task.nr_dirtied;
        }
    }

    fn balance_ratelimited(&mut self, env: &Env, file: FileId, task: &mut TaskDirty) -> Pause {
        if let Some((pages, since)) = task.again {
            return self.throttle(env, file, task, pages, since);
        }
        let exceeded = self.writeback.wbs.get(self.wb_of(file)).is_some_and(|wb| wb.dirty_exceeded);
        let mut limit = task.nr_dirtied_pause;
        if exceeded {
            limit = limit.min(EXCEEDED_THRESH);
        }
        let cpu = env.cpu.index();
        if task.nr_dirtied >= limit {
            self.writeback.cpu_dirtied[cpu] = 0;
        } else if self.writeback.cpu_dirtied[cpu] >= self.writeback.ratelimit_pages {
            self.writeback.cpu_dirtied[cpu] = 0;
            limit = 0;
        }
        let leaked = self.writeback.cpu_leaks[cpu].min(limit.saturating_sub(task.nr_dirtied));
        self.writeback.cpu_leaks[cpu] -= leaked;
        task.nr_dirtied += leaked;
        if task.nr_dirtied < limit {
            return Pause::None;
        }
        let pages = task.nr_dirtied;
        self.throttle(env, file, task, pages, jiffies(env.now))
    }

    /// Dirty pages and limits of the machine as a writer to an inode sees them.
    fn dirty_control(&mut self, wb: WbId, limits: DirtyLimits, dirty: u64, now: u64) -> DirtyControl {
        let (num, den) = self.wb_share(wb, now);
        DirtyControl {
            limits,
            dirty,
            slow_limit: self.writeback.dirty_limit,
            wb_dirty: self.writeback.wbs[wb].all_dirty(),
            wb_thresh: limits.dirty * num / den,
        }
    }

    /// The same of the group that owns the inode.
    fn group_control(&mut self, wb: WbId, machine: (u64, u64), now: u64) -> Option<DirtyControl> {
        let group = self.memcg_dirty_limits(wb.group, machine, true)?;
        let (num, den) = self.wb_share_of_group(wb, now);
        Some(DirtyControl {
            limits: group.limits,
            dirty: group.dirty.dirty + group.dirty.writeback,
            slow_limit: self.memcg[wb.group].domain.dirty_limit,
            wb_dirty: self.writeback.wbs[wb].all_dirty(),
            wb_thresh: group.limits.dirty * num / den,
        })
    }

    /// One round of `balance_dirty_pages()`.
    fn throttle(&mut self, env: &Env, file: FileId, task: &mut TaskDirty, pages: u64, since: u64) -> Pause {
        task.again = None;
        let (now, wb) = (jiffies(env.now), self.wb_of(file));
        let reclaimable = self.stat.node_sum(NodeStat::FileDirty);
        let dirty = reclaimable + self.stat.node_sum(NodeStat::Writeback);
        let dirtyable = self.global_dirtyable_memory().0;
        let limits = DirtyLimits::new(dirtyable, &self.tunables);
        let group = self.group_control(wb, (dirtyable, dirty), now);
        if reclaimable > limits.background {
            self.start_background(wb);
        }
        if dirty <= limits.freerun() && group.is_none_or(|group| group.dirty <= group.limits.freerun()) {
            (task.paused_when, task.nr_dirtied) = (now, 0);
            let interval = pause::poll_interval(dirty, limits.dirty);
            let of_group = group.map_or(u64::MAX, |group| pause::poll_interval(group.dirty, group.limits.dirty));
            task.nr_dirtied_pause = interval.min(of_group);
            self.writeback.set_exceeded(wb, false);
            return Pause::None;
        }
        self.start_background(wb);
        self.flush_foreign(env, wb.group);
        let mut control = self.dirty_control(wb, limits, dirty, now);
        self.writeback.set_exceeded(wb, control.exceeded() || group.is_some_and(|group| group.exceeded()));
        let state = &self.writeback.wbs[wb];
        let by_machine = control.position_ratio(state.avg_write_bandwidth);
        let by_group = group.map(|group| (group, group.position_ratio(state.avg_write_bandwidth)));
        if now > state.bw_time_stamp + bandwidth::INTERVAL {
            if state.measures(now, since) {
                self.writeback.update_dirty_limit(&control, now);
                control.slow_limit = self.writeback.dirty_limit;
                if let Some(group) = &group {
                    self.memcg[wb.group].domain.update_dirty_limit(group, now);
                }
            }
            let state = &mut self.writeback.wbs[wb];
            let both = [Some((control, by_machine)), by_group];
            state.update_bandwidth(now, since, &both.into_iter().flatten().collect::<SmallVec<[_; 2]>>());
        }
        let nearer = by_group.filter(|(_, ratio)| *ratio < by_machine);
        let (control, ratio) = nearer.unwrap_or((control, by_machine));
        let state = &self.writeback.wbs[wb];
        let task_rate = (state.dirty_ratelimit * ratio) >> RATIO_SHIFT;
        let max = pause::max_pause(state.avg_write_bandwidth, control.wb_dirty);
        let (min, next) = pause::min_pause(state.avg_write_bandwidth, max, task_rate, state.dirty_ratelimit);
        let pause = task.pause_for(pages, now, task_rate, (min, max), next);
        if task_rate == 0 && control.wb_dirty > self.writeback.stat_error {
            task.again = Some((pages, since));
        }
        pause
    }

    /// Wakes a flusher for background work unless it is at work (`wb_start_background_writeback()`).
    pub(super) fn start_background(&mut self, wb: WbId) {
        if !self.writeback.wbs.get_mut(wb).running {
            self.effects.push(Effect::WakeFlusher(wb));
        }
    }
}

impl TaskDirty {
    /// The pause for `pages` pages at a rate, between the shortest and the longest; `next` pages to the next look.
    fn pause_for(&mut self, pages: u64, mut now: u64, rate: u64, (min, max): (u64, u64), next: u64) -> Pause {
        let pause = if let Some(period) = (HZ * pages).checked_div(rate) {
            let thought = if self.paused_when == 0 { 0 } else { now - self.paused_when.min(now) };
            let ahead = self.paused_when.saturating_sub(now);
            let pause = (period + ahead) as i64 - thought as i64;
            if pause < min as i64 {
                self.skip_pause(pages, now, period, pause);
                return Pause::None;
            }
            let pause = pause as u64;
            if pause > max {
                now += (pause - max).min(max);
            }
            pause.min(max)
        } else {
            max
        };
        self.paused_when = now + pause;
        self.nr_dirtied = 0;
        self.nr_dirtied_pause = next;
        Pause::Sleep(from_jiffies(pause))
    }

    /// The pause would be too short: the pages are charged to the next one.
    fn skip_pause(&mut self, pages: u64, now: u64, period: u64, pause: i64) {
        if pause < -(HZ as i64) {
            (self.paused_when, self.nr_dirtied) = (now, 0);
        } else if period > 0 {
            self.paused_when += period;
            self.nr_dirtied = 0;
        } else if self.nr_dirtied_pause <= pages {
            self.nr_dirtied_pause += pages;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_makes_up_for_what_the_pages_should_have_taken() {
        let mut task = TaskDirty { nr_dirtied: 200, paused_when: 1000, ..TaskDirty::default() };
        // 200 pages at 2500 a second: 20 jiffies, of which 5 have passed.
        assert_eq!(task.pause_for(200, 1005, 2500, (2, 50), 100), Pause::Sleep(Nanos::millis(15 * 4)));
        assert_eq!((task.paused_when, task.nr_dirtied, task.nr_dirtied_pause), (1020, 0, 100));
    }

    #[test]
    fn short_pauses_are_saved_up() {
        let mut task = TaskDirty { nr_dirtied: 20, paused_when: 1000, ..TaskDirty::default() };
        // 2 jiffies, 1 passed: shorter than 2, so it goes on, and its clock runs ahead.
        assert_eq!(task.pause_for(20, 1001, 2500, (2, 50), 100), Pause::None);
        assert_eq!((task.paused_when, task.nr_dirtied), (1002, 0));
        // The same again at once: 2 more, 1001 behind 1002: 3 jiffies.
        assert_eq!(task.pause_for(20, 1001, 2500, (2, 50), 100), Pause::Sleep(Nanos::millis(12)));
    }

    #[test]
    fn more_than_a_second_of_thinking_is_forgotten() {
        let mut task = TaskDirty { nr_dirtied: 20, paused_when: 1000, ..TaskDirty::default() };
        // period 2, pause 2 - 253 = -251 < -250.
        assert_eq!(task.pause_for(20, 1253, 2500, (2, 50), 100), Pause::None);
        assert_eq!(task.paused_when, 1253);
        let mut task = TaskDirty { nr_dirtied: 20, paused_when: 1000, ..TaskDirty::default() };
        assert_eq!(task.pause_for(20, 1252, 2500, (2, 50), 100), Pause::None);
        assert_eq!(task.paused_when, 1002, "a second exactly is made up for");
    }

    #[test]
    fn beyond_the_limit_a_writer_sleeps_longest() {
        let mut task = TaskDirty { nr_dirtied: 20, ..TaskDirty::default() };
        assert_eq!(task.pause_for(20, 1000, 0, (2, 50), 7), Pause::Sleep(Nanos::millis(200)));
        assert_eq!((task.paused_when, task.nr_dirtied_pause), (1050, 7));
    }

    #[test]
    fn a_pause_that_is_over_is_not_followed_by_another_before_the_next_page() {
        let mut rig = crate::pagecache::rig::Rig::new(1, 1 << 14);
        let file = rig.create();
        let limit = rig.mm.global_dirty_limits().dirty.max(rig.mm.writeback.dirty_limit);
        for index in 0..limit as u32 + 100 {
            rig.write(file, index);
        }
        // Held to so little that the next look comes with the next page.
        let mut task = TaskDirty { nr_dirtied_pause: 0, ..TaskDirty::default() };
        assert_eq!(rig.mm.balance_dirty_pages(&rig.env, file, 0, &mut task), Pause::None);
        assert!(matches!(rig.mm.balance_dirty_pages(&rig.env, file, 1, &mut task), Pause::Sleep(_)));
    }
}
