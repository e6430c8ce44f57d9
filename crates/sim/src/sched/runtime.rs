//! Picking by virtual runtime: who has had the least.
//!
//! **Rule.** CPU time is scaled by 1024 / weight, 1.25 times the weight per nice level. The member of a level that has had the
//! least of it runs, until a tick finds its share of the scheduling period over, or one that is woken is far enough behind it. A woken task
//! gets at most half a period of credit for its sleep; a new one on a busy CPU starts with a debit.
//!
//! **Source.** `sched_slice()`, `place_entity()`, `check_preempt_tick()`, `entity_tick()`, `wakeup_preempt_entity()`,
//! `pick_next_entity()`, kernel/sched/fair.c (4.20); features GENTLE_FAIR_SLEEPERS and START_DEBIT. Until 6.5.
//!
//! **Abstracted.** A new task's debit is capped at a granularity.

use super::level::{LevelId, Member};
use super::runqueue::Queued;
use super::{Scheduler, fair};
use units::{CpuId, Nanos};

impl Scheduler {
    /// The member with the least virtual runtime, unless a buddy goes first or it is to be skipped (`pick_next_entity()`).
    pub(super) fn least_runtime(&self, at: LevelId) -> Option<Member> {
        let level = self.level(at);
        let queued = |member| Queued { vruntime: self.entity(at.cpu, member).vruntime, member };
        let mut waiting = level.queue.iter();
        // Behind those of equal vruntime, as it would stand in the queue.
        let (first, second) = match (level.current.map(queued), waiting.next()) {
            (Some(current), Some(left)) if current.vruntime < left.vruntime => (current, Some(left)),
            (Some(current), Some(left)) => {
                let next = waiting.next().filter(|next| next.vruntime <= current.vruntime);
                (left, next.or(Some(current)))
            }
            (None, Some(left)) => (left, waiting.next()),
            (current, None) => (current?, None),
        };
        let first = first.member;
        let instead = second.map(|second| second.member).filter(|_| level.buddies.skip == Some(first));
        let second = instead.filter(|second| self.is_close(at.cpu, *second, first));
        self.buddy_instead_of(at, first).or(second).or(Some(first))
    }

    /// By how much vruntime a queued member must be behind to preempt by being woken (`wakeup_gran()`).
    pub(super) fn wakeup_credit(&self, cpu: CpuId, member: Member) -> i64 {
        fair::virtual_time(self.params.wakeup_granularity, self.weight(cpu, member))
    }

    /// Whether the woken member is far enough behind the one that runs (`check_preempt_wakeup()`).
    pub(super) fn is_far_behind(&self, at: LevelId, woken: Member, now: Nanos) -> bool {
        let credit = self.wakeup_credit(at.cpu, woken);
        let behind = |vruntime| vruntime - self.entity(at.cpu, woken).vruntime;
        self.current_vruntime(at, now).is_some_and(|vruntime| behind(vruntime) > credit)
    }

    /// Whether another member of its level is entitled to the CPU more than the current one (`check_preempt_tick()`).
    pub(super) fn share_is_over(&mut self, at: LevelId, member: Member) -> bool {
        if !self.has_had_share(at, member, Nanos::ZERO) {
            return false;
        }
        let entity = self.entity(at.cpu, member);
        if entity.used.since(entity.used_at_pick) > self.share(at, member) {
            self.level_mut(at).buddies.clear(member);
        }
        true
    }

    /// Whether a member will have had its share once it has run for `more`, as far as others of its level wait for theirs.
    pub(super) fn has_had_share(&self, at: LevelId, member: Member, more: Nanos) -> bool {
        let Some(first) = self.level(at).queue.first() else { return false };
        let (entity, share) = (self.entity(at.cpu, member), self.share(at, member));
        let ran = entity.used.since(entity.used_at_pick) + more;
        let ahead = entity.vruntime + fair::virtual_time(more, self.weight(at.cpu, member)) - first.vruntime;
        ran > share || ran >= self.params.min_granularity && ahead > share.0 as i64
    }

    /// What a member gets of a period: its part of its level's part (`sched_slice()`).
    fn share(&self, at: LevelId, member: Member) -> Nanos {
        let part = |at: LevelId, member, whole| fair::part(whole, self.weight(at.cpu, member), self.load(at));
        let share = part(at, member, self.params.period(self.nr_running(at.cpu)));
        at.above().map_or(share, |(root, group)| part(root, group, share))
    }

    /// Gives a woken member its vruntime: at most half a period of credit (`place_entity()`).
    pub(super) fn place_by_credit(&mut self, at: LevelId, member: Member) {
        let floor = self.level(at).min_vruntime - (self.params.latency.0 / 2) as i64;
        let entity = self.entity_mut(at.cpu, member);
        entity.vruntime = entity.vruntime.max(floor);
    }

    /// Gives a new member its vruntime: behind by a share, so that forking does not gain time (START_DEBIT), but by a
    /// granularity at most, and where nobody else runs not at all: tasks started together are to stay within a
    /// granularity of each other, whatever the order.
    pub(super) fn place_by_debit(&mut self, at: LevelId, member: Member) {
        let weight = self.weight(at.cpu, member);
        let debit = if self.level(at).is_empty() {
            0
        } else {
            let load = self.load(at) + u64::from(weight);
            let share = fair::part(self.params.period(self.nr_running(at.cpu)), weight, load);
            fair::virtual_time(share, weight).min(self.params.min_granularity.0 as i64)
        };
        let start = self.level(at).min_vruntime + debit;
        self.entity_mut(at.cpu, member).vruntime = start;
    }
}
