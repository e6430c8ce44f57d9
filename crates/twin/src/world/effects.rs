//! What a mechanism asks of the world around it, carried out: who is woken, what is submitted, what is armed.
//!
//! kswapd has slept for long where it is woken, so that the scheduler gives it its waker's CPU (`check_preempt_wakeup()`, kernel/sched/fair.c):
//! traced guests of 5.10, 6.1 and 6.12 do so within 3 to 8 us.
//!
//! Abstracted: who wakes another than kswapd or a worker of its own CPU goes on for the rest of its quantum before it is seen whether that one
//! takes the CPU.

use mm::writeback::WbId;
use mm::{Asked, Bio, Effect, WakeFlusher};
use rules::Flushers;
use sim::{Class, Ctl, TaskState};
use units::{CpuId, MemcgId, Nanos, NodeId, SpaceId};

use super::{Event, World};
use crate::notify::Told;
use crate::reason::SleepReason;

impl World {
    pub(super) fn carry_out(&mut self, ctl: &mut Ctl<World>) {
        let mut effects = std::mem::take(&mut self.effects);
        self.mm.effects.take_into(&mut effects);
        for effect in &effects {
            self.carry_out_one(ctl, effect);
        }
        self.effects = effects;
    }

    fn carry_out_one(&mut self, ctl: &mut Ctl<World>, effect: &Effect) {
        let sleepers = match *effect {
            Effect::WakeKcompactd(node, _) => self.queues.kcompactd[node.index()],
            Effect::WakeAging(node) => self.queues.aging[node.index()],
            Effect::WakeThrottled(node, reason) => self.queues.throttle(node, reason),
            Effect::WakeLog(_) => self.queues.log,
            Effect::ArmReclaim => self.queues.evicted,
            Effect::WakeJournalled => self.queues.journalled,
            Effect::WakeReserved => self.queues.reserved,
            Effect::WakeEndIo => self.queues.end_io,
            Effect::WakePage(pfn) => self.queues.page(pfn),
            Effect::WakeKhugepaged => self.queues.khugepaged,
            Effect::WakeZswap => self.queues.zswap,
            Effect::WakeKswapd(node) => return self.wake_kswapd(ctl, node),
            Effect::WakeFlushers(reason) => return self.wake_flushers(ctl, reason),
            Effect::WakeFlusher(wb) => return self.wake_flusher(ctl, wb),
            Effect::ArmFlusher(wb, at) => return arm(ctl, at.max(ctl.now()), Event::Flusher(wb)),
            Effect::ArmRcu => return arm(ctl, self.next_tick(ctl.now()), Event::Rcu),
            Effect::Submit(bio) => return self.submit(ctl, bio, None),
            Effect::Unplug(device) => return self.devices.unplug(ctl, device),
            Effect::HeldRead(bio) => return self.held_reads.push(bio),
            Effect::Copied { bio, of_root } => return self.pass_copied(ctl, bio, of_root),
            Effect::WakePressure(cpu) => return self.wake_worker(ctl, cpu),
            Effect::MemcgEvent(memcg) => return self.memcg_event(ctl, memcg),
            Effect::FlushTlb(space) => return self.flush_tlb(ctl, space),
        };
        ctl.wake_all(sleepers);
    }

    /// Wakes kswapd, which may take the CPU from who asked at the next preemption point.
    fn wake_kswapd(&self, ctl: &mut Ctl<World>, node: NodeId) {
        ctl.wake_all(self.queues.kswapd[node.index()]);
        ctl.set_need_resched();
    }

    fn wake_flushers(&mut self, ctl: &mut Ctl<World>, reason: WakeFlusher) {
        for wb in self.mm.ask_flushers(reason) {
            self.wake_flusher(ctl, wb);
        }
    }

    /// Has a device count a bio that its submitter has copied.
    fn pass_copied(&mut self, ctl: &mut Ctl<World>, bio: Bio, of_root: bool) {
        self.devices.pass(ctl, bio, of_root);
        if bio.write {
            ctl.wake_all(self.queues.written);
        }
    }

    /// Has the watchers of a memory cgroup told of an event, now or when they may be told again.
    fn memcg_event(&mut self, ctl: &mut Ctl<World>, memcg: MemcgId) {
        match self.notifier.event(memcg, ctl.now()) {
            Told::Now => self.notify(ctl),
            Told::At(at) => arm(ctl, at, Event::Notify(memcg)),
            Told::WithNext => {}
        }
    }

    /// Wakes a flusher, be it asleep with nothing to do or, if it is a thread, for a request. A thread that sleeps for
    /// anything else would only look again.
    pub(super) fn wake_flusher(&mut self, ctl: &mut Ctl<World>, wb: WbId) {
        ctl.wake_all(self.queues.flusher(wb));
        // Kernels whose flushers are threads have those of the root group alone.
        let flusher = self.flushers[usize::from(wb.device)];
        if self.mm.rules.flushers == Flushers::Threads
            && let TaskState::Blocked { reason: SleepReason::RequestQueue, .. } = ctl.task_state(flusher)
        {
            ctl.wake_task(flusher);
        }
    }

    /// Has the worker of this CPU tell the watchers of a memory cgroup.
    pub(super) fn notify(&mut self, ctl: &mut Ctl<World>) {
        let cpu = self.env(ctl).cpu;
        self.notifier.ask(cpu);
        self.wake_worker(ctl, cpu);
    }

    /// Wakes the worker of this CPU, which may take it from who asked at the next preemption point.
    fn wake_worker(&self, ctl: &mut Ctl<World>, cpu: CpuId) {
        ctl.wake_all(self.queues.worker[cpu.index()]);
        ctl.set_need_resched();
    }

    /// Interrupts the other CPUs that run threads of a space and waits for them (`flush_tlb_multi()`), as long as one of them has interrupts off. Those
    /// that ran a thread before forget the space when they turn to another.
    fn flush_tlb(&mut self, ctl: &mut Ctl<World>, space: SpaceId) {
        let Some(current) = ctl.current() else { return };
        let process = self.processes.with_space(space);
        let mut others = Asked::new();
        for cpu in ctl.topology().cpus() {
            let task = ctl.task_on(cpu).filter(|task| *task != current);
            if process.is_some() && task.is_some_and(|task| self.task(task).process == process) {
                ctl.interrupt(cpu, Nanos(self.mm.costs.tlb_flush_irq));
                others.push(cpu);
            }
        }
        if !others.is_empty() {
            let wait = self.mm.irqs_off_wait(ctl.now(), &others);
            ctl.charge(Nanos(wait + self.mm.costs.tlb_flush + others.len() as u64 * self.mm.costs.tlb_flush_cpu));
        }
    }
}

/// Has something happen at a time.
fn arm(ctl: &mut Ctl<World>, at: Nanos, event: Event) {
    ctl.schedule_at(at, Class::Timer, event);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use mm::writeback::WbId;
    use profile::{Kernel, Machine};
    use sim::Ctl;
    use sys::{FileName, OpenMode, Sys};
    use units::{Bytes, Nanos};

    use crate::RunSpec;
    use crate::run::{boot, start_workload};
    use crate::world::World;

    /// Whether a flusher that waits for a request sleeps on after it was woken.
    fn sleeps_on(kernel: &str) -> bool {
        let machine = Machine::load("desktop-4g").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, Kernel::load(kernel).expect("built in"))).expect("it has room");
        let sleeps_on = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&sleeps_on);
        start_workload(&mut sim, |sys| async move {
            let name = FileName { dir: sys.mkdir("d").await?, number: 0 };
            let fd = sys.open(name, OpenMode::Create).await?;
            // More than a tenth of the memory, which is written in the background then, faster than the disk takes it.
            sys.write(fd, Bytes(0), Bytes::mib(700)).await?;
            let waits = |world: &World, ctl: &Ctl<World>| ctl.has_waiters(world.devices.list[0].room(0));
            while !sys.task.ctx.with(|world, ctl| waits(world, ctl)) {
                sys.sleep(Nanos::millis(1)).await;
            }
            let sleeps = sys.task.ctx.with(|world, ctl| {
                world.wake_flusher(ctl, WbId::root(0));
                waits(world, ctl)
            });
            seen.store(sleeps, Ordering::Relaxed);
            Ok(())
        });
        sim.run().expect("nobody waits for ever");
        sleeps_on.load(Ordering::Relaxed)
    }

    #[test]
    fn a_flusher_that_is_a_thread_is_woken_from_a_full_queue() {
        assert!(!sleeps_on("3.1-rc"));
        assert!(sleeps_on("3.19-rc4"));
    }
}
