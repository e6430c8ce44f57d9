//! `Sys` over the model: what a workload's system calls do on the twin.

mod descriptors;
mod files;
mod kernel;
mod memory;
mod process;
mod threads;

use std::future::Future;

use mm::vfs::Need;
use sim::Ctx;
use sys::{
    Access, Advice, Barrier, Dir, Fd, FileAdvice, FileName, Mapping, OpenMode, PageBlock, Result, SpawnOptions, Sys,
    SysError, SystemInfo, Thread,
};
use units::{Bytes, Gfp, Nanos, Order};

pub(crate) use process::Processes;

use crate::reason::SleepReason;
use crate::snapshot::vmstat;
use crate::task::Task;
use crate::world::World;

/// A thread of the workload on the twin.
#[derive(Clone)]
pub struct SysTwin {
    pub(crate) task: Task,
    /// Its process.
    process: u32,
}

impl SysTwin {
    pub(crate) fn new(ctx: Ctx<World>, process: u32) -> SysTwin {
        SysTwin { task: Task::new(ctx), process }
    }

    /// Charges the entry to and the return from the kernel, and gives way if the time slice is over.
    async fn enter(&self) -> Result<()> {
        self.task.mm(|mm, _| mm.charge(mm.costs.syscall));
        self.task.ctx.preempt_point().await;
        if self.task.oom_killed() { Err(SysError::Killed) } else { Ok(()) }
    }

    /// Provides what an operation lacks.
    async fn satisfy(&self, need: Need) -> Result<()> {
        self.task.satisfy(need).await.ok_or(SysError::NoMemory)
    }
}

impl Sys for SysTwin {
    fn info(&self) -> SystemInfo {
        self.task.ctx.with(|world, ctl| SystemInfo {
            mem_total: world.mm.total_pages(),
            node_mem: world.mm.nodes.iter().map(|n| world.mm.node_pages(n.id)).collect(),
            cpus: ctl.topology().nr_cpus() as u32,
        })
    }

    fn seed(&self) -> u64 {
        self.task.ctx.with(|world, _| world.processes.seed)
    }

    fn clock(&self) -> Nanos {
        self.task.ctx.now()
    }

    async fn sleep(&self, time: Nanos) {
        self.task.ctx.sleep(SleepReason::Workload, time).await;
    }

    async fn compute(&self, time: Nanos) {
        self.compute_for(time).await;
    }

    fn spawn<F, Fut>(&self, options: SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.spawn_thread(options, body)
    }

    async fn join(&self, thread: Thread) {
        self.task.ctx.join(sim::TaskId(thread.0), SleepReason::Join).await;
    }

    fn stop(&self, thread: Thread) {
        self.task.ctx.with(|_, ctl| ctl.kill(sim::TaskId(thread.0)));
    }

    fn stopping(&self) -> bool {
        self.task.ctx.killed()
    }

    fn barrier(&self, parties: u32) -> Barrier {
        self.new_barrier(parties)
    }

    async fn barrier_wait(&self, barrier: Barrier) {
        self.wait_at_barrier(barrier).await;
    }

    async fn mmap(&self, length: Bytes, align: Bytes) -> Result<Mapping> {
        self.map_anonymous(length, align).await
    }

    async fn munmap(&self, mapping: Mapping) -> Result<()> {
        self.unmap(mapping).await
    }

    async fn madvise(&self, mapping: Mapping, advice: Advice) -> Result<()> {
        self.advise(mapping, advice).await
    }

    async fn touch(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()> {
        self.touch_range(mapping, offset, length, access).await
    }

    async fn poke(&self, mapping: Mapping, offset: Bytes, access: Access) -> Result<()> {
        self.fault_in(mapping, offset, Bytes(1), access).await
    }

    fn mincore(&self, mapping: Mapping, offset: Bytes) -> bool {
        self.is_resident(mapping, offset)
    }

    async fn mkdir(&self, name: &str) -> Result<Dir> {
        self.make_directory(name).await
    }

    async fn open(&self, name: FileName, mode: OpenMode) -> Result<Fd> {
        self.open_file(name, mode).await
    }

    async fn close(&self, fd: Fd) -> Result<()> {
        self.close_file(fd).await
    }

    async fn read(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        self.read_file(fd, offset, length).await
    }

    async fn write(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        self.write_file(fd, offset, length).await
    }

    async fn fadvise(&self, fd: Fd, advice: FileAdvice) -> Result<()> {
        self.advise_file(fd, advice).await
    }

    async fn fsync(&self, fd: Fd) -> Result<()> {
        self.sync_file(fd).await
    }

    async fn truncate(&self, fd: Fd, length: Bytes) -> Result<()> {
        self.truncate_file(fd, length).await
    }

    async fn unlink(&self, name: FileName) -> Result<()> {
        self.unlink_file(name).await
    }

    async fn sync(&self) -> Result<()> {
        self.sync_all().await
    }

    async fn alloc_pages(&self, gfp: Gfp, order: Order) -> Result<Option<PageBlock>> {
        self.module_alloc(gfp, order).await
    }

    async fn free_pages(&self, block: PageBlock) -> Result<()> {
        self.module_free(block).await
    }

    async fn sysctl(&self, name: &str) -> Result<u64> {
        self.read_sysctl(name).await
    }

    async fn set_sysctl(&self, name: &str, value: u64) -> Result<()> {
        self.write_sysctl(name, value).await
    }

    fn sample(&self, metric: &'static str, value: f64) {
        self.task.ctx.with(|world, _| world.log.sample(metric, value));
    }

    fn fail(&self, error: SysError) {
        self.task.ctx.with(|world, ctl| {
            world.log.failure.get_or_insert(error);
            ctl.stop();
        });
    }

    fn phase(&self, name: &str) {
        self.task.ctx.with(|world, ctl| {
            let (vmstat, cpu) = (vmstat(&world.mm, world.era), world.cpu_time(ctl));
            world.log.begin_phase(ctl.now(), name, vmstat, cpu);
        });
    }

    fn progress(&self, done: f64) {
        self.task.ctx.with(|world, _| world.log.done = done);
    }
}
