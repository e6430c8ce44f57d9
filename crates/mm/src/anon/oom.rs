//! The OOM killer's choice.
//!
//! Rule: badness is resident, swapped and page table pages, plus `oom_score_adj` thousandths of all memory; the space
//! with the most is chosen. While a victim still holds memory nobody else is killed. A space with -1000 never is.
//! Source: `oom_badness()`, `oom_evaluate_task()`, `__oom_kill_process()`, `__oom_reap_task_mm()` (mm/oom_kill.c; 4.20 and 6.12).
//! Since/until: badness of an eligible space is at least 1 in 4.20 and may be negative in 6.12: `rules.oom_score`.
//! Abstracted: a process is its space. Of equals the oldest is taken, as in 4.20 (6.12 takes the youngest).
//! Where a group is at its limit, the choice is among its processes and those of the groups below it.
//! Omitted: constraints by cpuset and policy; `memory.oom.group`; `oom_task_origin`; `vm.panic_on_oom`, `vm.oom_kill_allocating_task`.

use rules::OomScore;
use units::{MemcgId, SpaceId};

use crate::memcg::{MemcgEvent, ROOT};
use crate::stat::VmEvent;
use crate::{Env, Mm};

/// What the OOM killer decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OomChoice {
    /// This one is to be killed.
    Kill(SpaceId),
    /// An earlier victim is still releasing its memory: wait.
    Pending(SpaceId),
    /// Nobody can be killed.
    Nobody,
}

impl Mm {
    /// How much killing a space would help, in pages adjusted by `oom_score_adj`; `None` if it must not be killed.
    pub fn oom_badness(&self, space: SpaceId, within: MemcgId) -> Option<i64> {
        let s = &self.spaces[space];
        if !s.live || s.oom_score_adj == -1000 || s.oom_skip {
            return None;
        }
        let pages = (s.rss + s.swapents + s.tables.nr_frames()) as i64;
        let points = pages + i64::from(s.oom_score_adj) * (self.oom_total_pages(within) / 1000);
        Some(match self.rules.oom_score {
            OomScore::AtLeastOne => points.max(1),
            OomScore::Signed => points,
        })
    }

    /// Memory and swap together that a group may use, in pages.
    fn oom_total_pages(&self, within: MemcgId) -> i64 {
        if within != ROOT {
            let limits = self.memcg[within].limits;
            let swap = limits.swap_max.min(self.swap.total_pages());
            return limits.max.min(self.total_pages().0).saturating_add(swap) as i64;
        }
        let managed: u64 = self.zones.iter().map(|z| z.managed).sum();
        (managed + self.swap.total_pages()) as i64
    }

    /// Whom the OOM killer would kill now of a group and those below it.
    pub fn oom_select(&self, within: MemcgId) -> OomChoice {
        let mut worst: Option<(i64, SpaceId)> = None;
        for id in self.spaces.live() {
            let space = &self.spaces[id];
            if !self.memcg.upwards(space.memcg).any(|memcg| memcg == within) {
                continue;
            }
            if space.oom_victim && !space.oom_skip {
                return OomChoice::Pending(id);
            }
            if let Some(points) = self.oom_badness(id, within)
                && worst.is_none_or(|(most, _)| points > most)
            {
                worst = Some((points, id));
            }
        }
        worst.map_or(OomChoice::Nobody, |(_, id)| OomChoice::Kill(id))
    }

    /// Marks a space as killed. Its task may use the reserves from now on; the caller makes it exit.
    pub fn oom_kill(&mut self, space: SpaceId) {
        let victim = &mut self.spaces[space];
        assert!(victim.live && !victim.oom_victim, "{space:?} is killed twice");
        victim.oom_victim = true;
        let memcg = victim.memcg;
        self.stat.count(VmEvent::OomKill, 1);
        self.memcg_event(memcg, MemcgEvent::OomKill);
    }

    /// Frees all pages of a killed space that has not exited yet, as the OOM reaper does. Its page tables stay until it
    /// exits.
    pub fn oom_reap(&mut self, env: &Env, space: SpaceId) {
        assert!(self.spaces[space].oom_victim, "{space:?} was not killed");
        for at in 0..self.spaces[space].vmas.len() {
            let vma = self.spaces[space].vmas[at];
            self.zap_range(env, space, vma.start..vma.end);
        }
        self.spaces[space].oom_skip = true;
    }
}
