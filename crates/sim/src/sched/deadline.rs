//! Picking by deadlines: who is owed time, and until when.
//!
//! **Rule.** The queue's virtual time is the mean of its members' virtual runtimes, by weight. A member that has had less is
//! eligible. It asks for one slice at a time, and its deadline is when a CPU of its own share would have given it; of the
//! eligible members the one with the earliest deadline runs. Once picked it keeps the CPU for that slice, unless it has had more
//! than its due. Whether the slice is over is seen at the tick, when a task is woken on this CPU and when one is picked. A member
//! that goes to sleep keeps what it is owed; one that owes time stays in its queue (`delayed`). A new task begins with half a
//! slice. All this holds among the members of one level: a group that runs alone on its CPU is protected for one slice, and open to
//! whoever is woken after that.
//!
//! **Source.** `pick_eevdf()`, `place_entity()`, `update_curr()`, `update_deadline()`, `entity_lag()`, `did_preempt_short()`,
//! `yield_task_fair()`, kernel/sched/fair.c (6.12); features PLACE_LAG, PLACE_DEADLINE_INITIAL, PLACE_REL_DEADLINE,
//! RUN_TO_PARITY.
//!
//! **Omitted.** Slices of a task's own (`sched_setattr()`), and with them PREEMPT_SHORT between tasks of different slices.

use super::level::{LevelId, Member};
use super::{Scheduler, fair};
use crate::TaskId;
use units::{CpuId, Nanos};

impl Scheduler {
    /// Virtual time of a slice of this member.
    fn slice(&self, cpu: CpuId, member: Member) -> i64 {
        fair::virtual_time(self.params.min_granularity, self.weight(cpu, member))
    }

    /// Sum over a level's members of (vruntime - `zero`) times weight, and of the weights.
    fn weighted(&self, at: LevelId, now: Nanos, zero: i64) -> (i128, i128) {
        let level = self.level(at);
        let current = level.current.zip(self.current_vruntime(at, now));
        let queued = level.queue.iter().map(|queued| (queued.member, queued.vruntime));
        queued.chain(current).fold((0, 0), |(sum, load), (member, vruntime)| {
            let weight = i128::from(self.weight(at.cpu, member));
            (sum + i128::from(vruntime - zero) * weight, load + weight)
        })
    }

    /// The level's virtual time at `now` (`avg_vruntime()`).
    pub(super) fn virtual_now(&self, at: LevelId, now: Nanos) -> i64 {
        let zero = self.level(at).min_vruntime;
        let (sum, load) = self.weighted(at, now, zero);
        if load == 0 { zero } else { zero + sum.div_euclid(load) as i64 }
    }

    /// Whether a member of this vruntime is owed time (`vruntime_eligible()`).
    pub(super) fn eligible(&self, at: LevelId, now: Nanos, vruntime: i64) -> bool {
        let (sum, load) = self.weighted(at, now, vruntime);
        sum >= 0 || load == 0
    }

    /// Gives a member that joins its queue its vruntime and deadline (`place_entity()`).
    pub(super) fn place_by_lag(&mut self, at: LevelId, member: Member, now: Nanos) {
        let entity = self.entity(at.cpu, member);
        let (slice, weight) = (self.slice(at.cpu, member), i128::from(self.weight(at.cpu, member)));
        let initial = !entity.started;
        let virtual_now = self.virtual_now(at, now);
        let lag = match entity.lag {
            _ if initial => 0,
            lag => {
                let (_, load) = self.weighted(at, now, 0);
                if load == 0 { 0 } else { (i128::from(lag) * (load + weight) / load) as i64 }
            }
        };
        let entity = self.entity_mut(at.cpu, member);
        entity.vruntime = virtual_now - lag;
        entity.deadline = entity.vruntime + if initial { slice / 2 } else { slice };
    }

    /// Notes what the current member, which goes to sleep, is owed (`update_entity_lag()`).
    pub(super) fn note_lag(&mut self, at: LevelId, member: Member, now: Nanos) {
        let virtual_now = self.virtual_now(at, now);
        let limit = Nanos((2 * self.params.min_granularity.0).max(self.params.tick.0));
        let limit = fair::virtual_time(limit, self.weight(at.cpu, member));
        let entity = self.entity_mut(at.cpu, member);
        entity.lag = (virtual_now - entity.vruntime).clamp(-limit, limit);
    }

    /// The member that is to go next, if it is owed time (`pick_next_entity()`).
    pub(super) fn next_eligible(&self, at: LevelId, now: Nanos) -> Option<Member> {
        let next = self.level(at).buddies.next?;
        self.eligible(at, now, self.entity(at.cpu, next).vruntime).then_some(next)
    }

    /// The eligible member of the earliest deadline; the current one if its slice is protected (`pick_eevdf()`).
    pub(super) fn earliest_eligible(&self, at: LevelId, now: Nanos) -> Option<Member> {
        let level = self.level(at);
        let deadline = |member: &Member| self.entity(at.cpu, *member).deadline;
        let owed = self.current_vruntime(at, now).is_some_and(|vruntime| self.eligible(at, now, vruntime));
        let current = level.current.filter(|_| owed);
        if let Some(current) = current
            && self.protected(at.cpu, current)
        {
            return Some(current);
        }
        let queue = level.queue.iter().filter(|queued| self.eligible(at, now, queued.vruntime));
        let best = queue.map(|queued| queued.member).min_by_key(deadline);
        match (current, best) {
            (Some(current), Some(best)) if deadline(&current) < deadline(&best) => Some(current),
            (current, best) => best.or(current).or(level.current),
        }
    }

    /// Whether a member is still within the slice that it was picked for.
    fn protected(&self, cpu: CpuId, member: Member) -> bool {
        let entity = self.entity(cpu, member);
        entity.protected == entity.deadline
    }

    /// Brings the current member's deadline up to date; whether it has to give way to another, and then is no buddy any more (`update_curr()`).
    pub(super) fn slice_is_over(&mut self, at: LevelId, now: Nanos) -> bool {
        let (Some(member), Some(vruntime)) = (self.level(at).current, self.current_vruntime(at, now)) else {
            return false;
        };
        let over = vruntime >= self.entity(at.cpu, member).deadline;
        if over {
            self.entity_mut(at.cpu, member).deadline = vruntime + self.slice(at.cpu, member);
        }
        let exposed = || !self.protected(at.cpu, member) && !self.eligible(at, now, vruntime);
        let gives_way = !self.level(at).queue.is_empty() && (over || exposed());
        if gives_way {
            self.level_mut(at).buddies.clear(member);
        }
        gives_way
    }

    /// Whether a member that was just put in the queue takes the CPU from the current one (`check_preempt_wakeup_fair()`).
    pub(super) fn wakeup_preempts(&mut self, at: LevelId, woken: Member, now: Nanos) -> bool {
        self.slice_is_over(at, now) || self.earliest_eligible(at, now) == Some(woken)
    }

    /// A task that yields forgoes the rest of its slice (`yield_task_fair()`).
    pub(super) fn forgo_slice(&mut self, task: TaskId, now: Nanos) {
        let (at, member) = (self.level_of(task), Member::Task(task));
        if self.eligible(at, now, self.entity(at.cpu, member).vruntime) {
            let slice = self.slice(at.cpu, member);
            let entity = self.entity_mut(at.cpu, member);
            entity.vruntime = entity.vruntime.max(entity.deadline);
            entity.deadline = entity.vruntime + slice;
        }
    }
}
