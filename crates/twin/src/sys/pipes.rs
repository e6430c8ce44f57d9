//! Pipes: who holds their ends, who waits.
//!
//! Rule: a writer that finds no room wakes those who wait for bytes and waits itself, as often as it takes; when it is done it wakes them again.
//! A reader that has emptied a buffer wakes those who wait for room. Both waits end with a fatal signal. An end is closed with the last that
//! refers to it, a call under way among them; that wakes those who wait at the other one. Bytes are gone once nobody is left to read them.
//! Source: `pipe_write()`, `pipe_read()`, `pipe_wait()`, `pipe_release()`, fs/pipe.c; 4.20 and 6.12. What a pipe holds: `mm::pipe`.
//! Abstracted: all who wait are woken, also since 5.5, where that is done only if the pipe was full, or empty, before, and since 5.6, where one
//! is woken and wakes the next; who finds nothing for it waits again. Going to sleep and coming back takes what it takes at a futex, and
//! `read()` and `write()` what they take for a file beside its pages.

use std::collections::{BTreeMap, BTreeSet};

use mm::pipe::{PipeEnd, PipeId, PipeObjects, PipeWrite, PipeWriteStop};
use mm::vfs::Need;
use sim::{Ctl, WaitQueueId};
use sys::{Pipe, Result, SpawnOptions, SysError};
use units::{Bytes, Nanos};

use super::SysTwin;
use crate::reason::SleepReason;
use crate::world::World;

/// The ends that a process holds.
#[derive(Debug, Default)]
pub(crate) struct HeldEnds {
    ends: BTreeSet<(PipeId, PipeEnd)>,
    /// The pipe that it reads from, and that which it writes to, by the end: stdin, stdout.
    standard: [Option<PipeId>; 2],
}

impl HeldEnds {
    /// The pipe that stands for stdin or stdout, if it was not closed.
    fn standard(&self, end: PipeEnd) -> Result<PipeId> {
        let pipe = self.standard[end as usize].filter(|pipe| self.ends.contains(&(*pipe, end)));
        pipe.ok_or(SysError::BadFd)
    }

    /// Lets go of the ends of a pipe.
    fn take(&mut self, pipe: PipeId) -> impl Iterator<Item = PipeEnd> + use<'_> {
        PipeEnd::ALL.into_iter().filter(move |end| self.ends.remove(&(pipe, *end)))
    }
}

/// Where those wait who need bytes, or room, in each pipe that is open.
#[derive(Debug, Default)]
pub(crate) struct PipeQueues {
    of: BTreeMap<PipeId, [WaitQueueId; 2]>,
    /// Those of pipes that are gone.
    unused: Vec<[WaitQueueId; 2]>,
}

impl PipeQueues {
    fn add(&mut self, ctl: &mut Ctl<World>, pipe: PipeId) {
        let queues = self.unused.pop().unwrap_or_else(|| PipeEnd::ALL.map(|_| ctl.new_wait_queue()));
        self.of.insert(pipe, queues);
    }

    fn remove(&mut self, pipe: PipeId) {
        self.unused.extend(self.of.remove(&pipe));
    }

    /// Where those wait who hold this end.
    fn at(&self, pipe: PipeId, end: PipeEnd) -> WaitQueueId {
        self.of[&pipe][end as usize]
    }
}

impl SysTwin {
    fn held_ends<R>(&self, call: impl FnOnce(&mut HeldEnds) -> R) -> R {
        self.task.ctx.with(|world, _| call(&mut world.processes.of_mut(self.process).pipes))
    }

    pub(super) async fn make_pipe(&self) -> Result<Pipe> {
        let mut objects = PipeObjects::default();
        loop {
            match self.task.mm(|mm, env| mm.pipe_create(env, &mut objects)) {
                Ok(pipe) => {
                    self.task.ctx.with(|world, ctl| world.processes.pipe_queues.add(ctl, pipe));
                    self.held_ends(|held| held.ends.extend(PipeEnd::ALL.map(|end| (pipe, end))));
                    return Ok(Pipe(pipe.0));
                }
                Err(need) => {
                    if let Err(error) = self.satisfy(need).await {
                        self.task.mm(|mm, env| mm.pipe_give_up(env, objects));
                        return Err(error);
                    }
                }
            }
        }
    }

    pub(super) async fn close_ends(&self, pipe: Pipe) -> Result<()> {
        let ends: Vec<PipeEnd> = self.held_ends(|held| held.take(PipeId(pipe.0)).collect());
        for end in &ends {
            self.put_end(PipeId(pipe.0), *end);
        }
        if ends.is_empty() { Err(SysError::BadFd) } else { Ok(()) }
    }

    /// Lets go of all ends, as the process ends.
    pub(super) fn exit_pipes(&self) {
        for (pipe, end) in self.held_ends(std::mem::take).ends {
            self.put_end(pipe, end);
        }
    }

    /// Gives a new process its stdin and stdout; the run fails if this one does not hold their pipes.
    pub(super) fn hand_on_ends(&self, options: &SpawnOptions, process: u32) {
        let wanted = [(options.stdin, PipeEnd::Read), (options.stdout, PipeEnd::Write)];
        for (pipe, end) in wanted.into_iter().filter_map(|(pipe, end)| Some((PipeId(pipe?.0), end))) {
            self.task.ctx.with(|world, ctl| {
                if !world.processes.of(self.process).pipes.ends.contains(&(pipe, end)) {
                    return world.fail(ctl, SysError::BadFd);
                }
                world.mm.pipes.hold(pipe, end);
                let held = &mut world.processes.of_mut(process).pipes;
                held.ends.insert((pipe, end));
                held.standard[end as usize] = Some(pipe);
            });
        }
    }

    /// Holds stdin or stdout for a call, until [`SysTwin::put_end`].
    fn hold_standard(&self, end: PipeEnd) -> Result<PipeId> {
        let pipe = self.held_ends(|held| held.standard(end))?;
        self.task.ctx.with(|world, _| world.mm.pipes.hold(pipe, end));
        Ok(pipe)
    }

    /// A reference to an end is given up.
    fn put_end(&self, pipe: PipeId, end: PipeEnd) {
        if !self.task.mm(|mm, env| mm.pipe_put(env, pipe, end)) {
            return;
        }
        if self.task.look(|mm| mm.pipes.is_open(pipe)) {
            self.wake_at(pipe, end.other());
        } else {
            self.task.ctx.with(|world, _| world.processes.pipe_queues.remove(pipe));
        }
    }

    /// Wakes those who wait at an end.
    fn wake_at(&self, pipe: PipeId, end: PipeEnd) {
        self.task.ctx.with(|world, ctl| {
            let queue = world.processes.pipe_queues.at(pipe, end);
            while ctl.has_waiters(queue) {
                ctl.charge(Nanos(world.mm.costs.wake_up));
                ctl.wake_one(queue);
            }
        });
    }

    /// Waits at an end until woken, unless this thread is to end.
    async fn wait_at(&self, pipe: PipeId, end: PipeEnd) -> Result<()> {
        if self.task.fatal_signal_pending() {
            return Err(SysError::Killed);
        }
        let queue = self.task.ctx.with(|world, ctl| {
            ctl.charge(Nanos(world.mm.costs.futex_wait));
            world.processes.pipe_queues.at(pipe, end)
        });
        self.task.ctx.wait(queue, SleepReason::Pipe).await;
        Ok(())
    }

    pub(super) async fn write_to_stdout(&self, length: Bytes) -> Result<()> {
        let pipe = self.hold_standard(PipeEnd::Write)?;
        self.task.mm(|mm, _| mm.charge(mm.costs.write_call));
        let mut result = Ok(());
        if length > Bytes(0) {
            let mut write = PipeWrite::new(pipe, length.0);
            result = self.write_pipe(pipe, &mut write).await;
            self.task.mm(|mm, env| mm.free_hand(env, &mut write.hand));
            self.wake_at(pipe, PipeEnd::Read);
        }
        self.put_end(pipe, PipeEnd::Write);
        result
    }

    async fn write_pipe(&self, pipe: PipeId, write: &mut PipeWrite) -> Result<()> {
        loop {
            match self.task.mm(|mm, env| mm.pipe_write(env, write)) {
                PipeWriteStop::Done => return Ok(()),
                PipeWriteStop::NoReader => return Err(SysError::BrokenPipe),
                PipeWriteStop::Full => self.wait_for_room(pipe).await?,
                PipeWriteStop::Need(Need::Page(request)) => {
                    let page = self.task.alloc_pages_slowpath(request).await;
                    write.hand = Some(page.ok_or(SysError::NoMemory)?);
                }
                PipeWriteStop::Need(need) => self.satisfy(need).await?,
            }
        }
    }

    async fn wait_for_room(&self, pipe: PipeId) -> Result<()> {
        self.wake_at(pipe, PipeEnd::Read);
        let waits = |begins| self.task.ctx.with(|world, _| world.mm.pipes.writer_waits(pipe, begins));
        waits(true);
        let woken = self.wait_at(pipe, PipeEnd::Write).await;
        waits(false);
        woken
    }

    pub(super) async fn read_from_stdin(&self, length: Bytes) -> Result<Bytes> {
        let pipe = self.hold_standard(PipeEnd::Read)?;
        self.task.mm(|mm, _| mm.charge(mm.costs.read_call));
        let result = self.read_pipe(pipe, length.0).await;
        self.put_end(pipe, PipeEnd::Read);
        result.map(Bytes)
    }

    async fn read_pipe(&self, pipe: PipeId, wanted: u64) -> Result<u64> {
        let mut done = 0;
        loop {
            let found = self.task.mm(|mm, env| mm.pipe_read(env, pipe, wanted - done));
            done += found.bytes;
            let waits = self.task.look(|mm| mm.pipe_read_waits(pipe, done, wanted));
            if found.emptied {
                self.wake_at(pipe, PipeEnd::Write);
            }
            if !waits {
                return Ok(done);
            }
            self.wait_at(pipe, PipeEnd::Read).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use profile::{Kernel, Machine};
    use sys::Sys;

    use super::*;
    use crate::RunSpec;
    use crate::run::{boot, start_workload};

    /// Runs a program to its end; the error that it failed with.
    fn run<Fut>(kernel: &str, program: impl FnOnce(SysTwin) -> Fut) -> Option<SysError>
    where
        Fut: Future<Output = Result<()>> + 'static,
    {
        let machine = Machine::load("guest-512m-free").expect("built in");
        let kernel = Kernel::load(kernel).expect("built in");
        let mut sim = boot(&RunSpec::new(machine, kernel)).expect("it has room");
        start_workload(&mut sim, program);
        sim.run().expect("nobody waits for ever");
        let world = sim.world();
        assert!(world.log.failure.is_some() || world.mm.pipes.is_empty() && world.processes.pipe_queues.of.is_empty());
        assert_eq!(world.mm.validate(), []);
        world.log.failure
    }

    #[test]
    fn a_process_cannot_be_given_a_pipe_that_its_parent_does_not_hold() {
        for closes in [false, true] {
            let failed = run("6.12", move |sys| async move {
                let pipe = sys.pipe().await?;
                if closes {
                    sys.close_pipe(pipe).await?;
                }
                let child = sys.spawn(SpawnOptions::process("child").stdin(pipe), |_| async {});
                sys.join(child).await;
                Ok(())
            });
            assert_eq!(failed, closes.then_some(SysError::BadFd));
        }
    }

    /// The thread's wait ends with its process, which holds both ends itself, and those of the other process are not enough to write.
    #[test]
    fn a_process_that_ends_interrupts_who_waits_in_it_and_closes_its_ends() {
        for reads in [true, false] {
            let failed = run("6.12", move |sys| async move {
                let pipe = sys.pipe().await?;
                let process = SpawnOptions::process("child").stdin(pipe).stdout(pipe);
                let child = sys.spawn(process, move |sys| async move {
                    let _ = sys.spawn(SpawnOptions::thread("waits"), move |sys| async move {
                        let _ = if reads {
                            sys.read_stdin(Bytes(1)).await.map(drop)
                        } else {
                            sys.write_stdout(Bytes::mib(1)).await
                        };
                        unreachable!("it is killed");
                    });
                    sys.sleep(Nanos::millis(1)).await;
                });
                let writer = sys.spawn(SpawnOptions::process("writer").stdout(pipe), |sys| async move {
                    sys.sleep(Nanos::millis(2)).await;
                    assert_eq!(sys.write_stdout(Bytes(1)).await, Err(SysError::BrokenPipe));
                });
                sys.close_pipe(pipe).await?;
                sys.join(child).await;
                sys.join(writer).await;
                Ok(())
            });
            assert_eq!(failed, None);
        }
    }

    /// A write of four times what a pipe holds is read with one call where a reader waits for a writer that waits.
    #[test]
    fn a_large_read_takes_what_the_rule_says() {
        for (kernel, expected) in [("4.20-rc3", 4 * 65_536), ("6.12", 65_536)] {
            let read = Arc::new(AtomicU64::new(0));
            let first = Arc::clone(&read);
            let failed = run(kernel, move |sys| async move {
                let pipe = sys.pipe().await?;
                let writer = sys.spawn(SpawnOptions::process("writer").stdout(pipe), |sys| async move {
                    assert_eq!(sys.write_stdout(Bytes(4 * 65_536)).await, Ok(()));
                });
                let reader = sys.spawn(SpawnOptions::process("reader").stdin(pipe), move |sys| async move {
                    // The writer has filled the pipe.
                    sys.sleep(Nanos::millis(1)).await;
                    first.store(sys.read_stdin(Bytes(4 * 65_536)).await.expect("it has stdin").0, Ordering::Relaxed);
                    while sys.read_stdin(Bytes(65_536)).await.is_ok_and(|read| read > Bytes(0)) {}
                });
                sys.close_pipe(pipe).await?;
                sys.join(writer).await;
                sys.join(reader).await;
                Ok(())
            });
            assert_eq!((failed, read.load(Ordering::Relaxed)), (None, expected), "{kernel}");
        }
    }
}
