//! `Sys` over the model: what a workload's system calls do on the twin.

mod cgroups;
mod descriptors;
mod exit;
mod files;
mod kernel;
mod memory;
mod names;
mod namespace;
mod own_pages;
mod pipes;
mod process;
mod threads;

use std::future::Future;
use std::pin::pin;

use mm::Costs;
use mm::vfs::Need;
use sim::Ctx;
use sys::{
    Access, Advice, Barrier, Cgroup, CgroupLimit, Dir, Fd, FileAdvice, FileName, Mapping, OpenMode, PageBlock, Pipe,
    Result, SpawnOptions, Sys, SysError, SystemInfo, Thread,
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

    /// A system call: its entry, what it does, and the return to user mode. The call is pinned by its caller: futures are large, and one that
    /// is handed over is copied.
    async fn syscall<R>(&self, call: impl Future<Output = R> + Unpin) -> R {
        self.enter_kernel(|costs| costs.program_call);
        self.user_mode(call).await
    }

    /// One that takes a path.
    async fn named_syscall<R>(&self, call: impl Future<Output = R> + Unpin) -> R {
        self.enter_kernel(|costs| costs.program_call + costs.program_name);
        self.user_mode(call).await
    }

    /// The entry of a system call, and what the program did for it.
    fn enter_kernel(&self, program: impl FnOnce(&Costs) -> u64) {
        self.task.ctx.with(|world, ctl| {
            let program = program(&world.mm.costs);
            world.user_time += Nanos(program);
            world.enter(ctl, |mm, _| mm.charge(program + mm.costs.syscall));
        });
    }

    /// What a thread does between two moments in user mode, where it may be preempted and may be made to end.
    async fn user_mode<R>(&self, call: impl Future<Output = R> + Unpin) -> R {
        self.task.ctx.preempt_point().await;
        self.return_to_user().await;
        let result = call.await;
        self.return_to_user().await;
        result
    }

    /// Provides what an operation lacks, as far as it cannot do without.
    async fn satisfy(&self, need: Need) -> Result<()> {
        let error = if need == Need::Space { SysError::NoSpace } else { SysError::NoMemory };
        let provided = Box::pin(self.task.satisfy(need)).await;
        provided.or_else(|| need.is_optional().then_some(())).ok_or(error)
    }
}

impl Sys for SysTwin {
    fn info(&self) -> SystemInfo {
        self.task.ctx.with(|world, ctl| SystemInfo {
            mem_total: world.mm.total_pages(),
            node_mem: world.mm.nodes.iter().map(|n| world.mm.node_pages(n.id)).collect(),
            cpus: ctl.topology().nr_cpus() as u32,
            cpu_speed: world.cpu_speed,
        })
    }

    fn seed(&self) -> u64 {
        self.task.ctx.with(|world, _| world.processes.seed)
    }

    fn clock(&self) -> Nanos {
        self.task.ctx.now()
    }

    async fn sleep(&self, time: Nanos) {
        self.syscall(pin!(self.task.ctx.sleep(SleepReason::Workload, time))).await;
    }

    async fn compute(&self, time: Nanos) {
        self.user_mode(pin!(self.compute_for(time))).await;
    }

    fn cpu_time(&self) -> Nanos {
        let task = self.task.ctx.task();
        self.task.ctx.with(|_, ctl| ctl.task_cpu_time(task))
    }

    fn spawn<F, Fut>(&self, options: SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.spawn_thread(options, body)
    }

    async fn join(&self, thread: Thread) {
        self.syscall(pin!(self.wait_for(thread))).await;
    }

    fn stop(&self, thread: Thread) {
        self.stop_line(thread);
    }

    fn stopping(&self) -> bool {
        self.task.ctx.killed()
    }

    fn barrier(&self, parties: u32) -> Barrier {
        self.new_barrier(parties)
    }

    async fn barrier_wait(&self, barrier: Barrier) {
        self.syscall(pin!(self.wait_at_barrier(barrier))).await;
    }

    async fn mmap(&self, length: Bytes, align: Bytes) -> Result<Mapping> {
        self.syscall(pin!(self.map_anonymous(length, align))).await
    }

    async fn mmap_file(&self, fd: Fd, length: Bytes) -> Result<Mapping> {
        self.syscall(pin!(self.map_file(fd, length))).await
    }

    async fn munmap(&self, mapping: Mapping) -> Result<()> {
        self.syscall(pin!(self.unmap(mapping))).await
    }

    async fn madvise(&self, mapping: Mapping, advice: Advice) -> Result<()> {
        self.syscall(pin!(self.advise(mapping, advice))).await
    }

    async fn touch(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()> {
        self.user_mode(pin!(self.touch_range(mapping, offset, length, access))).await
    }

    async fn poke(&self, mapping: Mapping, offset: Bytes, access: Access) -> Result<()> {
        self.user_mode(pin!(self.fault_in(mapping, offset, Bytes(1), access))).await
    }

    async fn poke_many(&self, mapping: Mapping, offsets: &[u64], access: Access) -> Result<()> {
        self.user_mode(pin!(self.fault_in_many(mapping, offsets, access))).await
    }

    fn mincore(&self, mapping: Mapping, offset: Bytes) -> bool {
        self.is_resident(mapping, offset)
    }

    async fn mkdir(&self, name: &str) -> Result<Dir> {
        self.named_syscall(pin!(self.make_directory(name))).await
    }

    async fn open(&self, name: FileName, mode: OpenMode) -> Result<Fd> {
        self.named_syscall(pin!(self.open_file(name, mode))).await
    }

    async fn close(&self, fd: Fd) -> Result<()> {
        self.syscall(pin!(self.close_file(fd))).await
    }

    async fn read(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        self.syscall(pin!(self.read_file(fd, offset, length))).await
    }

    async fn read_batch(&self, fd: Fd, pages: &[u32]) -> Result<()> {
        self.syscall(pin!(self.read_file_batch(fd, pages))).await
    }

    async fn write(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        self.syscall(pin!(self.write_file(fd, offset, length, None))).await
    }

    async fn write_from(&self, fd: Fd, offset: Bytes, source: Mapping, length: Bytes) -> Result<()> {
        self.syscall(pin!(self.write_mapped(fd, offset, source, length))).await
    }

    async fn fadvise(&self, fd: Fd, advice: FileAdvice) -> Result<()> {
        self.syscall(pin!(self.advise_file(fd, advice))).await
    }

    async fn fsync(&self, fd: Fd) -> Result<()> {
        self.syscall(pin!(self.sync_file(fd))).await
    }

    async fn truncate(&self, fd: Fd, length: Bytes) -> Result<()> {
        self.syscall(pin!(self.truncate_file(fd, length))).await
    }

    async fn stat(&self, name: FileName) -> Result<Bytes> {
        self.named_syscall(pin!(self.stat_file(name))).await
    }

    async fn unlink(&self, name: FileName) -> Result<()> {
        self.named_syscall(pin!(self.unlink_file(name))).await
    }

    async fn rmdir(&self, dir: Dir) -> Result<()> {
        self.named_syscall(pin!(self.remove_directory(dir))).await
    }

    async fn sync(&self) -> Result<()> {
        self.syscall(pin!(self.sync_all())).await
    }

    async fn pipe(&self) -> Result<Pipe> {
        self.syscall(pin!(self.make_pipe())).await
    }

    async fn close_pipe(&self, pipe: Pipe) -> Result<()> {
        self.syscall(pin!(self.close_ends(pipe))).await
    }

    async fn read_stdin(&self, length: Bytes) -> Result<Bytes> {
        self.syscall(pin!(self.read_from_stdin(length))).await
    }

    async fn write_stdout(&self, length: Bytes) -> Result<()> {
        self.syscall(pin!(self.write_to_stdout(length))).await
    }

    async fn alloc_pages(&self, gfp: Gfp, order: Order) -> Result<Option<PageBlock>> {
        self.module_alloc(gfp, order).await
    }

    async fn free_pages(&self, block: PageBlock) -> Result<()> {
        self.module_free(block).await
    }

    async fn cgroup(&self, path: &str) -> Result<Cgroup> {
        self.syscall(pin!(self.make_cgroup(path))).await
    }

    async fn cgroup_set(&self, group: Cgroup, limit: CgroupLimit, value: Option<Bytes>) -> Result<()> {
        self.syscall(pin!(self.set_cgroup_limit(group, limit, value))).await
    }

    async fn cgroup_enter(&self, group: Cgroup) -> Result<()> {
        self.syscall(pin!(self.enter_cgroup(group))).await
    }

    async fn cgroup_file(&self, group: Cgroup, file: &str) -> Result<String> {
        self.syscall(pin!(self.read_cgroup_file(group, file))).await
    }

    async fn sysctl(&self, name: &str) -> Result<u64> {
        self.syscall(pin!(self.read_sysctl(name))).await
    }

    async fn set_sysctl(&self, name: &str, value: u64) -> Result<()> {
        self.syscall(pin!(self.write_sysctl(name, value))).await
    }

    fn sample(&self, metric: &'static str, value: f64) {
        self.task.ctx.with(|world, _| world.log.sample(metric, value));
    }

    fn fail(&self, error: SysError) {
        self.task.ctx.with(|world, ctl| world.fail(ctl, error));
    }

    fn phase(&self, name: &str) {
        self.task.ctx.with(|world, ctl| {
            let (vmstat, cpu) = (vmstat(&world.mm, world.era), world.cpu_time(ctl));
            let io = world.devices.io_time();
            world.log.begin_phase(ctl.now(), name, vmstat, cpu, io);
        });
    }

    fn progress(&self, done: f64) {
        self.task.ctx.with(|world, _| world.log.done = done);
    }
}
