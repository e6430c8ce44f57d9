//! Picking by deadlines: who is owed time, and until when.
//!
//! **Rule.** The queue's virtual time is the mean of its tasks' virtual runtimes, by weight. A task that has had less is
//! eligible. A task asks for one slice at a time, and its deadline is when a CPU of its own share would have given it; of the
//! eligible tasks the one with the earliest deadline runs. Once picked it keeps the CPU for that slice, unless it has had more
//! than its due. Whether the slice is over is seen at the tick and when a task is woken on this CPU. A task
//! that goes to sleep keeps what it is owed; what it owes is forgiven as the others catch up. A new task begins with half a
//! slice.
//!
//! **Source.** `pick_eevdf()`, `place_entity()`, `update_curr()`, `update_deadline()`, `entity_lag()`, `did_preempt_short()`,
//! `yield_task_fair()`, kernel/sched/fair.c (6.12); features PLACE_LAG, PLACE_DEADLINE_INITIAL, PLACE_REL_DEADLINE,
//! RUN_TO_PARITY, DELAY_DEQUEUE, DELAY_ZERO.
//!
//! **Abstracted.** A sleeper that owes time does not weigh in the mean while its debt lasts.
//!
//! **Omitted.** Slices of a task's own (`sched_setattr()`), and with them PREEMPT_SHORT between tasks of different slices.

use super::{Scheduler, Slice, fair};
use crate::TaskId;
use units::{CpuId, Nanos};

impl Scheduler {
    /// Virtual time of a slice of this task.
    fn slice(&self, task: TaskId) -> i64 {
        fair::virtual_time(self.params.min_granularity, self.weight(task))
    }

    /// Sum over the tasks of a CPU of (vruntime - `zero`) times weight, and of the weights.
    fn weighted(&self, cpu: CpuId, now: Nanos, zero: i64) -> (i128, i128) {
        let rq = &self.cpus[cpu.index()];
        let current = rq.current.zip(self.current_vruntime(cpu, now));
        let queued = rq.queue.iter().map(|queued| (queued.task, queued.vruntime));
        queued.chain(current).fold((0, 0), |(sum, load), (task, vruntime)| {
            let weight = i128::from(self.weight(task));
            (sum + i128::from(vruntime - zero) * weight, load + weight)
        })
    }

    /// The queue's virtual time at `now` (`avg_vruntime()`).
    fn virtual_now(&self, cpu: CpuId, now: Nanos) -> i64 {
        let zero = self.cpus[cpu.index()].min_vruntime;
        let (sum, load) = self.weighted(cpu, now, zero);
        if load == 0 { zero } else { zero + sum.div_euclid(load) as i64 }
    }

    /// Whether a task of this vruntime is owed time (`vruntime_eligible()`).
    fn eligible(&self, cpu: CpuId, now: Nanos, vruntime: i64) -> bool {
        let (sum, load) = self.weighted(cpu, now, vruntime);
        sum >= 0 || load == 0
    }

    /// Gives a task that joins its CPU's queue its vruntime and deadline (`place_entity()`).
    pub(super) fn place_by_lag(&mut self, task: TaskId, now: Nanos, initial: bool) {
        let entity = &self.entities[task.index()];
        let (cpu, slice, weight) = (entity.cpu, self.slice(task), i128::from(self.weight(task)));
        let virtual_now = self.virtual_now(cpu, now);
        let lag = match entity.lag {
            _ if initial => 0,
            // Still on its way to eligibility (`sched_delayed`).
            lag if lag < 0 => (virtual_now - entity.vruntime).min(0),
            lag => {
                let (_, load) = self.weighted(cpu, now, 0);
                if load == 0 { 0 } else { (i128::from(lag) * (load + weight) / load) as i64 }
            }
        };
        let entity = &mut self.entities[task.index()];
        entity.vruntime = virtual_now - lag;
        entity.deadline = entity.vruntime + if initial { slice / 2 } else { slice };
    }

    /// Notes what the current task, which goes to sleep, is owed (`update_entity_lag()`).
    pub(super) fn note_lag(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        let virtual_now = self.virtual_now(cpu, now);
        let limit = Nanos((2 * self.params.min_granularity.0).max(self.params.tick.0));
        let limit = fair::virtual_time(limit, self.weight(task));
        let entity = &mut self.entities[task.index()];
        entity.lag = (virtual_now - entity.vruntime).clamp(-limit, limit);
    }

    /// Of the tasks in a CPU's queue, the eligible one of the earliest deadline (`pick_eevdf()` without a current task).
    pub(super) fn earliest_eligible(&self, cpu: CpuId, now: Nanos) -> Option<TaskId> {
        let queue = self.cpus[cpu.index()].queue.iter();
        let eligible = queue.filter(|queued| self.eligible(cpu, now, queued.vruntime));
        eligible.map(|queued| queued.task).min_by_key(|task| self.entities[task.index()].deadline)
    }

    /// A task becomes current: it keeps the CPU until its deadline (`set_protect_slice()`).
    pub(super) fn protect(&mut self, task: TaskId) {
        let entity = &mut self.entities[task.index()];
        entity.protected = entity.deadline;
    }

    /// Brings the current task's deadline up to date; whether it has to give way to another (`update_curr()`).
    fn slice_is_over(&mut self, cpu: CpuId, now: Nanos) -> bool {
        let rq = &self.cpus[cpu.index()];
        let (Some(task), Some(vruntime)) = (rq.current, self.current_vruntime(cpu, now)) else { return false };
        let over = vruntime >= self.entities[task.index()].deadline;
        if over {
            self.entities[task.index()].deadline = vruntime + self.slice(task);
        }
        let entity = &self.entities[task.index()];
        let protected = entity.protected == entity.deadline;
        !self.cpus[cpu.index()].queue.is_empty() && (over || (!protected && !self.eligible(cpu, now, vruntime)))
    }

    /// Whether the current task gives way at the end of a slice of the simulation, where a tick lay in it.
    pub(super) fn tick_preempts(&mut self, cpu: CpuId, slice: Slice) -> bool {
        let (tick, end) = (self.params.tick.0, slice.start + slice.charged);
        slice.start.0 / tick != end.0 / tick && self.slice_is_over(cpu, end)
    }

    /// Whether a task that was just put in the queue takes the CPU from the current one (`check_preempt_wakeup_fair()`).
    pub(super) fn wakeup_preempts(&mut self, cpu: CpuId, woken: TaskId, now: Nanos) -> bool {
        if self.slice_is_over(cpu, now) {
            return true;
        }
        let rq = &self.cpus[cpu.index()];
        let (Some(task), Some(vruntime)) = (rq.current, self.current_vruntime(cpu, now)) else { return false };
        let current = &self.entities[task.index()];
        let stays = self.eligible(cpu, now, vruntime);
        if stays && current.protected == current.deadline {
            return false;
        }
        let best = self.earliest_eligible(cpu, now);
        best == Some(woken) && !(stays && current.deadline < self.entities[woken.index()].deadline)
    }

    /// A task that yields forgoes the rest of its slice (`yield_task_fair()`).
    pub(super) fn forgo_slice(&mut self, cpu: CpuId, task: TaskId, now: Nanos) {
        if self.eligible(cpu, now, self.entities[task.index()].vruntime) {
            let slice = self.slice(task);
            let entity = &mut self.entities[task.index()];
            entity.vruntime = entity.vruntime.max(entity.deadline);
            entity.deadline = entity.vruntime + slice;
        }
    }
}
