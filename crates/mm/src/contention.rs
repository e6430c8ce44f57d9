//! Waiting for the LRU lock, and giving up where that lock or a zone's is held by others.
//!
//! Rule: one lock guards the LRU lists of a group on a node. Whoever takes it from another CPU waits for its turn, and finds the
//! list's neighbours and counters in that CPU's cache. How long a CPU waits follows from how often all CPUs took the lock
//! in the last millisecond and how long they held it: a closed network of as many customers as there are CPUs, each of which works,
//! takes the lock, holds it. Its mean values are exact for this model; near saturation nobody gets more out of the lock than it
//! can give. Who only tries a lock, that of the lists or a zone's (asynchronous compaction), fails as often as others held it in the last millisecond.
//! Source: `compact_trylock_irqsave()` (mm/compaction.c, 4.20); `lruvec->lru_lock` (mm/swap.c, mm/vmscan.c; one for each group since 6168d0da2b47, 5.11); mean value analysis, Reiser
//! and Lavenberg, J. ACM 27 (1980).
//! Abstracted: tasks are simulated one after the other, so that nobody meets a lock that is held; holding times are taken
//! to vary as in a Poisson process; who tries a lock that is held half the time fails every other time, and not by chance, and others count
//! as holding it no longer than while nobody waits; the groups of a node have a lock each until 5.10, too.
//! Omitted: waiting for the locks of zones, and those of the page cache's trees, of swap and of page tables.

use units::{CpuId, ZoneId};

use crate::irqs_off::IrqsOff;
use crate::{Env, LruvecId, Mm};

/// Over how long takers are counted.
const WINDOW: u64 = 1_000_000;
/// A whole window, in the parts in which it is told how long others held a lock in it.
const WHOLE: u64 = 1 << 16;
/// Fractions in which takings of the lock are counted: a pagevec takes it once for 15 pages.
pub(crate) const ONCE: u64 = 60;
/// A page's part in a pagevec's taking (`PAGEVEC_SIZE`).
pub(crate) const IN_PAGEVEC: u64 = ONCE / 15;

/// One lock.
#[derive(Clone, Debug, Default)]
struct Lock {
    /// When the present window began.
    since: u64,
    /// CPUs that took it in this window.
    cpus: u128,
    /// How often, in parts of [`ONCE`], and how long they held it, in ns.
    takes: u64,
    held: u64,
    /// How long each CPU held it as far as nobody waited, in ns: in this window, and in the last one.
    undisturbed: [Vec<u64>; 2],
    /// Length of the last window, in ns.
    last: u64,
    /// What each of them waits, in ns.
    wait: u64,
    /// Several CPUs took it in the last window.
    shared: bool,
    /// What parts of windows others held it when it was tried, added up: for each whole one fails.
    tried: u64,
}

/// All LRU locks and those of zones, and who takes them now.
#[derive(Debug, Default)]
pub(crate) struct Contention {
    now: u64,
    cpu: CpuId,
    lrus: Vec<Lock>,
    zones: Vec<Lock>,
    pub(crate) irqs_off: IrqsOff,
}

/// Mean wait of each of `customers` that work for `think` and then hold the lock for `hold`, in ns.
fn mean_wait(customers: u32, think: f64, hold: f64) -> f64 {
    let (mut waiting, mut response) = (0.0, hold);
    for k in 1..=customers {
        response = hold * (1.0 + waiting);
        waiting = f64::from(k) * response / (think + response);
    }
    response - hold
}

impl Lock {
    /// A window is over: what a CPU waits in the next one.
    fn roll(&mut self, now: u64) {
        let (elapsed, customers) = ((now - self.since) as f64, self.cpus.count_ones());
        let takes = self.takes as f64 / ONCE as f64;
        self.shared = customers > 1;
        let mut wait = 0.0;
        if self.shared && takes >= 1.0 {
            let hold = self.held as f64 / takes;
            let round = f64::from(customers) * elapsed / takes;
            let think = (round - hold - self.wait as f64).max(0.0);
            wait = mean_wait(customers, think, hold);
        }
        // Halfway, so that a burst in one window does not make everybody wait in the next.
        self.wait = (self.wait + wait as u64) / 2;
        self.last = now - self.since;
        self.undisturbed.swap(0, 1);
        self.undisturbed[0].clear();
        (self.since, self.cpus, self.takes, self.held) = (now, 0, 0, 0);
    }

    /// A CPU takes it so often, in parts of [`ONCE`], and holds it for so long, in ns: if others wait for it, and if nobody does.
    #[inline]
    fn hold(&mut self, cpu: CpuId, takes: u64, ns: u64, undisturbed: u64) {
        self.cpus |= 1 << (cpu.index() % u128::BITS as usize);
        self.takes += takes;
        self.held += ns;
        let (by_cpu, cpu) = (&mut self.undisturbed[0], cpu.index());
        if by_cpu.len() <= cpu {
            by_cpu.resize(cpu + 1, 0);
        }
        by_cpu[cpu] += undisturbed;
    }

    /// Whether it is free for a CPU that tries it.
    fn try_lock(&mut self, cpu: CpuId) -> bool {
        let by_cpu = &self.undisturbed[1];
        let others = by_cpu.iter().sum::<u64>() - by_cpu.get(cpu.index()).copied().unwrap_or(0);
        self.tried += (others * WHOLE / self.last.max(1)).min(WHOLE);
        let free = self.tried < WHOLE;
        self.tried %= WHOLE;
        free
    }
}

impl Contention {
    /// Host bytes of all locks.
    pub(crate) fn host_bytes(&self) -> usize {
        let by_cpu =
            |lock: &Lock| lock.undisturbed.iter().map(|held| held.capacity() * size_of::<u64>()).sum::<usize>();
        let locks = (self.lrus.capacity() + self.zones.capacity()) * size_of::<Lock>();
        locks + self.lrus.iter().chain(&self.zones).map(by_cpu).sum::<usize>() + self.irqs_off.host_bytes()
    }

    /// A lock of a table, in the present window.
    #[inline]
    fn lock(locks: &mut Vec<Lock>, at: usize, now: u64) -> &mut Lock {
        if locks.len() <= at {
            locks.resize(at + 1, Lock::default());
        }
        let lock = &mut locks[at];
        if now.saturating_sub(lock.since) >= WINDOW {
            lock.roll(now);
        }
        lock
    }

    /// A zone's lock.
    #[inline]
    fn zone(&mut self, zone: ZoneId) -> &mut Lock {
        Contention::lock(&mut self.zones, zone.index(), self.now)
    }
}

impl Mm {
    /// Says who calls from now on.
    #[inline]
    pub fn called_by(&mut self, env: &Env) {
        (self.contention.now, self.contention.cpu) = (env.now.0, env.cpu);
    }

    /// The CPU that the present caller has.
    pub(crate) fn caller_cpu(&self) -> CpuId {
        self.contention.cpu
    }

    /// When the present caller called, in ns.
    pub(crate) fn called_at(&self) -> u64 {
        self.contention.now
    }

    /// Takes the lock of some lists `takes` parts of [`ONCE`] and moves so many pages under it: charges what the CPU waits, and
    /// what the pages cost beyond an undisturbed move, which the caller charges.
    #[inline]
    pub(crate) fn lru_lock(&mut self, lru: LruvecId, pages: u64, takes: u64) {
        let [held, undisturbed] = [self.costs.lru_locked, self.costs.lru_move].map(|move_page| pages * move_page);
        self.take_lru_lock(lru, takes, held, undisturbed);
    }

    /// Takes the lock of some lists once and holds it for so long, in ns, which the caller charges: charges what the CPU waits.
    pub(crate) fn lru_lock_for(&mut self, lru: LruvecId, ns: u64) {
        self.take_lru_lock(lru, ONCE, ns, ns);
    }

    #[inline]
    fn take_lru_lock(&mut self, lru: LruvecId, takes: u64, held: u64, undisturbed: u64) {
        let handoff = takes * self.costs.lock_handoff / ONCE;
        let Contention { now, cpu, .. } = self.contention;
        let lock = self.lru_lock_of(lru);
        lock.hold(cpu, takes, held + handoff, undisturbed + handoff);
        let wait = lock.shared.then(|| lock.wait * takes / ONCE);
        let off = handoff + wait.map_or(undisturbed, |wait| wait + held);
        self.contention.irqs_off.locked(now, cpu, takes, off);
        if let Some(wait) = wait {
            self.charge(wait + held.saturating_sub(undisturbed));
        }
    }

    #[inline]
    fn lru_lock_of(&mut self, lru: LruvecId) -> &mut Lock {
        let at = self.nodes.len() * usize::from(lru.part) + lru.node.index();
        Contention::lock(&mut self.contention.lrus, at, self.contention.now)
    }

    /// How long the lock of some lists was held in this window, in ns.
    #[cfg(test)]
    pub(crate) fn lru_lock_held(&mut self, lru: LruvecId) -> u64 {
        self.lru_lock_of(lru).held
    }

    /// Takes the lock of some lists and holds it for so long, in ns, which the caller charges.
    pub(crate) fn hold_lru_lock(&mut self, lru: LruvecId, ns: u64) {
        let cpu = self.contention.cpu;
        self.lru_lock_of(lru).hold(cpu, ONCE, ns, ns);
    }

    /// Whether the lock of some lists is free for one who tries it.
    pub(crate) fn try_lru_lock(&mut self, lru: LruvecId) -> bool {
        let cpu = self.contention.cpu;
        self.lru_lock_of(lru).try_lock(cpu)
    }

    /// Takes a zone's lock and holds it for so long, in ns, which the caller charges.
    #[inline]
    pub(crate) fn hold_zone_lock(&mut self, zone: ZoneId, ns: u64) {
        let cpu = self.contention.cpu;
        self.contention.zone(zone).hold(cpu, ONCE, ns, ns);
    }

    /// Whether a zone's lock is free for one who tries it.
    pub(crate) fn try_zone_lock(&mut self, zone: ZoneId) -> bool {
        let cpu = self.contention.cpu;
        self.contention.zone(zone).try_lock(cpu)
    }

    /// Charges so many moves of blocks to or from the buddy lists of a zone, under its lock.
    #[inline]
    pub(crate) fn charge_buddy(&mut self, zone: ZoneId, blocks: u64) {
        let ns = blocks * self.costs.alloc_buddy;
        self.hold_zone_lock(zone, ns);
        self.charge(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_alone_and_a_crowd_gets_no_more_than_the_lock_gives() {
        assert_eq!(mean_wait(1, 1000.0, 100.0), 0.0);
        // Two: the second finds the first one at the lock with probability 100 / 1100.
        assert!((mean_wait(2, 1000.0, 100.0) - 100.0 * 100.0 / 1100.0).abs() < 1e-9);
        // 36 that need the lock for a tenth of their time: 36 rounds take 36 x 100 at least, so a round does.
        let round = 1000.0 + 100.0 + mean_wait(36, 1000.0, 100.0);
        assert!((3600.0..3700.0).contains(&round), "{round}");
    }

    #[test]
    fn the_wait_settles_where_throughput_and_wait_agree() {
        // 36 CPUs that work 10 us and hold the lock for 1 us: 36 us for a round, 25 us of wait.
        let mut lock = Lock::default();
        for window in 1..200_u64 {
            let round = 11_000 + lock.wait;
            lock.cpus = (1 << 36) - 1;
            lock.takes = 36 * WINDOW / round * ONCE;
            lock.held = 36 * WINDOW / round * 1000;
            lock.roll(window * WINDOW);
        }
        assert!((24_000..28_000).contains(&lock.wait), "{}", lock.wait);
    }
}
