//! Sleeping where reclaim or writeback says so.

use mm::reclaim::ThrottleReason;
use mm::writeback::{FlushStep, FlushWork, Pause, WbId};
use mm::{Frame, Mm};
use units::{FileId, Nanos, NodeId};

use super::Task;
use super::flusher::STEP_PAGES;
use crate::reason::SleepReason;

impl Task {
    /// Sleeps for a reclaimer (`reclaim_throttle`, `congestion_wait`, `throttle_direct_reclaim`).
    pub(super) async fn throttle(&self, node: NodeId, reason: ThrottleReason, timeout: Nanos) {
        let queue = self.ctx.with(|world, _| world.queues.throttle(node, reason));
        let sleep = match reason {
            ThrottleReason::Reserve => SleepReason::DirectReclaimThrottle,
            _ => SleepReason::ReclaimThrottle,
        };
        self.ctx.wait_timeout(queue, sleep, timeout).await;
        self.mm(|mm, _| mm.throttle_end(node, reason));
    }

    /// Counts a page that this task dirtied and holds it back if it dirties too much
    /// (`balance_dirty_pages_ratelimited`).
    pub(crate) async fn balance_dirty_pages(&self, file: FileId, dirtied: u32) {
        let task = self.ctx.task();
        let mut dirtied = u64::from(dirtied);
        loop {
            let pause = self.ctx.with(|world, ctl| {
                let mut state = world.task_mut(task).dirty;
                let count = std::mem::take(&mut dirtied);
                let pause = world.enter(ctl, |mm, env| mm.balance_dirty_pages(env, file, count, &mut state));
                world.task_mut(task).dirty = state;
                pause
            });
            match pause {
                Pause::None => return,
                Pause::Sleep(time) => self.ctx.sleep(SleepReason::DirtyThrottle, time).await,
                Pause::Write(wb, wanted) => {
                    let pages = Box::pin(self.write_for_others(wb, wanted)).await;
                    self.ctx.with(|world, _| Mm::writer_wrote(&mut world.task_mut(task).dirty, pages));
                }
            }
            if self.fatal_signal_pending() {
                return;
            }
        }
    }

    /// Writes what a throttled writer has to write (`writeback_inodes_wb()`); returns how many pages that were.
    async fn write_for_others(&self, wb: WbId, wanted: u64) -> u64 {
        let mut work = self.mm(|_, env| FlushWork::of_writer(env, wanted));
        loop {
            self.wait_for_room(wb.device).await;
            match self.mm(|mm, env| mm.writeback_by_writer(env, wb, &mut work, STEP_PAGES)) {
                Some(FlushStep::Wait(pfn)) => self.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await,
                Some(FlushStep::Journal(wait)) => self.wait_for_journal(wait).await,
                Some(_) => self.ctx.preempt_point().await,
                None => return wanted.saturating_add_signed(-work.pages_left()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use mm::reclaim::ThrottleReason;
    use profile::{Kernel, Machine};
    use sim::Wake;
    use sys::{FileName, OpenMode, SpawnOptions, Sys};
    use units::{Bytes, Nanos, NodeId};

    use crate::RunSpec;
    use crate::reason::SleepReason;
    use crate::run::{boot, start_workload};

    /// Longer than a page stays dirty: `dirty_expire_centisecs` (30 s), until the flusher next looks (5 s).
    const MINUTE: Nanos = Nanos::secs(60);

    /// For how long who waits for congestion to end sleeps when another has written a page, and waited for one.
    fn slept(machine: &str) -> Nanos {
        let machine = Machine::load(machine).expect("built in");
        let mut sim = boot(&RunSpec::new(machine, Kernel::load("3.19-rc4").expect("built in"))).expect("it has room");
        let slept = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&slept);
        start_workload(&mut sim, |sys| async move {
            let writer = sys.spawn(SpawnOptions::process("writer"), |sys| async move {
                let name = FileName { dir: sys.mkdir("d").await.expect("new"), number: 0 };
                let fd = sys.open(name, OpenMode::Create).await.expect("new");
                sys.write(fd, Bytes(0), Bytes(4096)).await.expect("there is room");
                // That write is synchronous, and tells nobody.
                sys.fsync(fd).await.expect("the disk works");
                sys.write(fd, Bytes(4096), Bytes(4096)).await.expect("there is room");
            });
            let now = || sys.task.ctx.with(|_, ctl| ctl.now());
            let (queue, began) =
                (sys.task.ctx.with(|world, _| world.queues.throttle(NodeId(0), ThrottleReason::Device)), now());
            let wake = sys.task.ctx.wait_timeout(queue, SleepReason::ReclaimThrottle, MINUTE).await;
            seen.store(now().since(began).0, Ordering::Relaxed);
            assert_eq!(wake == Wake::Woken, now().since(began) < MINUTE);
            sys.join(writer).await;
            Ok(())
        });
        sim.run().expect("nobody waits for ever");
        Nanos(slept.load(Ordering::Relaxed))
    }

    #[test]
    fn who_waits_for_congestion_to_end_goes_on_when_the_flusher_has_written() {
        let slept_beside_cfq = slept("desktop-4g");
        assert!((Nanos::secs(30)..Nanos::secs(36)).contains(&slept_beside_cfq), "{slept_beside_cfq:?}");
        assert!(slept("skylake-1s") >= MINUTE, "a multi-queue says nothing");
    }
}
