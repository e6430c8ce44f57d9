//! What a thread's program uses of its own memory whenever it runs: its stack, the data of its libraries, its heap.
//!
//! Rule: a thread that has slept writes to these pages before it goes on in user mode; they are there from its first sleep to its end.
//! While it sleeps they grow old like other anonymous memory. Where page cache leaves little room for that, they are in swap when it
//! wakes up, and are written there anew each time: the last few pages of the inactive list, which kswapd meets under writeback again
//! and again.
//! Source: as many pages as the workload says ([`sys::SpawnOptions::own_pages`]).
//! Abstracted: a thread that was only preempted finds them as it left them. Omitted: what the threads of a process share, and pages that a
//! program comes by now and then; mapped programs.

use mm::anon::{Advice, Touch};

use super::SysTwin;
use crate::run::QUANTUM;
use crate::world::OwnPages;

impl SysTwin {
    /// Accesses the thread's own pages after a sleep.
    pub(super) async fn use_own_pages(&self) {
        let (vpn, pages) = self.map_own_pages();
        let touch = Touch::new(self.space(), vpn, pages, true, QUANTUM.0);
        if let Err(error) = self.fault_pages(touch).await
            && !self.task.fatal_signal_pending()
        {
            sys::Sys::fail(self, error);
        }
        let task = self.task.ctx.task();
        self.task.ctx.with(|world, ctl| world.task_mut(task).own_pages.used_at = ctl.sleeps(task));
    }

    fn own_pages(&self) -> OwnPages {
        let task = self.task.ctx.task();
        self.task.ctx.with(|world, _| world.task(task).own_pages)
    }

    /// First of the thread's own pages, which the first call maps, and how many they are. They never grow into a huge page.
    fn map_own_pages(&self) -> (u32, u32) {
        let OwnPages { pages, first, .. } = self.own_pages();
        if let Some(vpn) = first {
            return (vpn, pages);
        }
        let (task, space) = (self.task.ctx.task(), self.space());
        let vpn = self.task.mm(|mm, env| {
            let vpn = mm.mmap_anon(space, pages, 1);
            mm.madvise(env, space, vpn, pages, Advice::NoHuge);
            vpn
        });
        self.task.ctx.with(|world, _| world.task_mut(task).own_pages.first = Some(vpn));
        (vpn, pages)
    }

    /// Gives the pages back at the end of a thread whose process goes on.
    pub(super) fn free_own_pages(&self) {
        let OwnPages { pages, first, .. } = self.own_pages();
        if let Some(vpn) = first {
            let space = self.space();
            self.task.mm(|mm, env| mm.munmap(env, space, vpn, pages));
        }
    }
}

#[cfg(test)]
mod tests {
    use mm::stat::{NodeStat, VmEvent};
    use profile::{Kernel, Machine};
    use sys::{Access, SpawnOptions, Sys};
    use units::{Bytes, Nanos, NodeId, PAGE_SIZE};

    use super::*;
    use crate::RunSpec;
    use crate::run::{boot, start_workload};

    /// Runs a program to its end on a machine with swap.
    fn run<Fut>(program: impl FnOnce(SysTwin) -> Fut)
    where
        Fut: Future<Output = sys::Result<()>> + 'static,
    {
        let machine = Machine::load("guest-384m").expect("built in");
        let kernel = Kernel::load("6.12").expect("built in");
        let mut sim = boot(&RunSpec::new(machine, kernel)).expect("it has room");
        start_workload(&mut sim, program);
        sim.run().expect("nobody waits for ever");
        assert_eq!(sim.world().log.failure, None);
        assert_eq!(sim.world().mm.validate(), []);
    }

    #[test]
    fn a_thread_has_pages_of_its_own_from_its_first_sleep_to_its_end() {
        run(|sys| async move {
            let mapped = |sys: &SysTwin| sys.task.look(|mm| mm.stat.node(NodeId(0), NodeStat::AnonMapped));
            let before = mapped(&sys);
            let thread = sys.spawn(SpawnOptions::thread("other").own_pages(5), move |sys| async move {
                assert_eq!(mapped(&sys), before);
                for _ in 0..2 {
                    sys.sleep(Nanos::millis(1)).await;
                    assert_eq!(mapped(&sys), before + 5);
                }
            });
            sys.join(thread).await;
            assert_eq!(mapped(&sys), before, "this one has none");
            Ok(())
        });
    }

    #[test]
    fn who_slept_while_memory_was_short_reads_its_pages_from_swap() {
        run(|sys| async move {
            let faults = |sys: &SysTwin| sys.task.look(|mm| mm.stat.event(VmEvent::Pgmajfault));
            let sleeper = sys.spawn(SpawnOptions::process("sleeper").own_pages(3), move |sys| async move {
                sys.sleep(Nanos::millis(1)).await;
                sys.sleep(Nanos::secs(600)).await;
            });
            let size = Bytes::mib(500);
            let hog = sys.mmap(size, Bytes(PAGE_SIZE)).await?;
            sys.touch(hog, Bytes(0), size, Access::Write).await?;
            sys.munmap(hog).await?;
            let before = faults(&sys);
            assert!(sys.clock() < Nanos::secs(600), "the other sleeps");
            sys.join(sleeper).await;
            assert!(faults(&sys) > before);
            Ok(())
        });
    }
}
