//! `Sys` by real system calls.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::time::Timespec;
use sys::{
    Access, Advice, Barrier, Cgroup, CgroupLimit, Dir, Fd, FileAdvice, FileName, Mapping, OpenMode, PageBlock, Pipe,
    Result, SpawnOptions, Sys, SysError, SystemInfo, Thread,
};
use units::{Bytes, Gfp, Nanos, Order};

use crate::process::Process;
use crate::shared::monotonic;

/// A thread of a workload on the kernel that this program runs on.
#[derive(Clone)]
pub struct SysLinux {
    pub(crate) process: Arc<Process>,
    pub(crate) thread: u32,
    pub(crate) buffer: Rc<RefCell<Vec<u8>>>,
}

impl Sys for SysLinux {
    fn info(&self) -> SystemInfo {
        self.process.config.info.clone()
    }

    fn seed(&self) -> u64 {
        self.process.config.seed
    }

    fn clock(&self) -> Nanos {
        self.process.shared.now()
    }

    async fn sleep(&self, time: Nanos) {
        let end = monotonic() + time;
        loop {
            let left = end.since(monotonic());
            if left == Nanos::ZERO {
                return;
            }
            let left = Timespec { tv_sec: (left.0 / 1_000_000_000) as i64, tv_nsec: (left.0 % 1_000_000_000) as i64 };
            // A signal wakes early; the loop sleeps again.
            let _ = rustix::thread::nanosleep(&left);
        }
    }

    async fn compute(&self, time: Nanos) {
        self.process.spinner.spin(time);
    }

    fn cpu_time(&self) -> Nanos {
        crate::spin::cpu_time()
    }

    fn spawn<F, Fut>(&self, options: SpawnOptions, body: F) -> Thread
    where
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        if options.process { self.spawn_process(&options, body) } else { self.spawn_thread(&options, body) }
    }

    async fn join(&self, thread: Thread) {
        self.join_thread(thread);
    }

    fn stop(&self, thread: Thread) {
        self.process.shared.thread(thread.0).stop.store(1, Ordering::Release);
    }

    fn stopping(&self) -> bool {
        self.process.shared.is_stopping(self.thread)
    }

    fn barrier(&self, parties: u32) -> Barrier {
        Barrier(self.process.shared.new_barrier(parties))
    }

    async fn barrier_wait(&self, barrier: Barrier) {
        self.process.shared.wait_at_barrier(barrier.0);
    }

    async fn mmap(&self, length: Bytes, align: Bytes) -> Result<Mapping> {
        self.map_anonymous(length, align)
    }

    async fn mmap_file(&self, fd: Fd, length: Bytes) -> Result<Mapping> {
        self.map_file(fd, length)
    }

    async fn munmap(&self, mapping: Mapping) -> Result<()> {
        self.unmap(mapping)
    }

    async fn madvise(&self, mapping: Mapping, advice: Advice) -> Result<()> {
        self.advise(mapping, advice)
    }

    async fn touch(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()> {
        self.touch_range(mapping, offset, length, access)
    }

    async fn poke(&self, mapping: Mapping, offset: Bytes, access: Access) -> Result<()> {
        self.poke_byte(mapping, offset, access)
    }

    fn mincore(&self, mapping: Mapping, offset: Bytes) -> bool {
        self.is_resident(mapping, offset)
    }

    async fn mkdir(&self, name: &str) -> Result<Dir> {
        self.make_directory(name)
    }

    async fn open(&self, name: FileName, mode: OpenMode) -> Result<Fd> {
        self.open_file(name, mode)
    }

    async fn close(&self, fd: Fd) -> Result<()> {
        self.close_file(fd)
    }

    async fn read(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<Bytes> {
        self.read_file(fd, offset, length)
    }

    async fn write(&self, fd: Fd, offset: Bytes, length: Bytes) -> Result<()> {
        self.write_file(fd, offset, length)
    }

    async fn write_from(&self, fd: Fd, offset: Bytes, source: Mapping, length: Bytes) -> Result<()> {
        self.write_mapped(fd, offset, source, length)
    }

    async fn fadvise(&self, fd: Fd, advice: FileAdvice) -> Result<()> {
        self.advise_file(fd, advice)
    }

    async fn fsync(&self, fd: Fd) -> Result<()> {
        self.sync_file(fd)
    }

    async fn truncate(&self, fd: Fd, length: Bytes) -> Result<()> {
        self.truncate_file(fd, length)
    }

    async fn stat(&self, name: FileName) -> Result<Bytes> {
        self.stat_file(name)
    }

    async fn unlink(&self, name: FileName) -> Result<()> {
        self.unlink_file(name)
    }

    async fn rmdir(&self, dir: Dir) -> Result<()> {
        self.remove_directory(dir)
    }

    async fn sync(&self) -> Result<()> {
        self.sync_all()
    }

    async fn pipe(&self) -> Result<Pipe> {
        self.make_pipe()
    }

    async fn close_pipe(&self, pipe: Pipe) -> Result<()> {
        self.close_ends(pipe)
    }

    async fn read_stdin(&self, length: Bytes) -> Result<Bytes> {
        self.read_from_stdin(length)
    }

    async fn write_stdout(&self, length: Bytes) -> Result<()> {
        self.write_to_stdout(length)
    }

    async fn alloc_pages(&self, gfp: Gfp, order: Order) -> Result<Option<PageBlock>> {
        self.alloc_block(gfp, order)
    }

    async fn free_pages(&self, _block: PageBlock) -> Result<()> {
        self.free_block()
    }

    async fn sysctl(&self, name: &str) -> Result<u64> {
        self.read_sysctl(name)
    }

    async fn set_sysctl(&self, name: &str, value: u64) -> Result<()> {
        self.write_sysctl(name, value)
    }

    async fn cgroup(&self, path: &str) -> Result<Cgroup> {
        self.make_cgroup(path)
    }

    async fn cgroup_set(&self, group: Cgroup, limit: CgroupLimit, value: Option<Bytes>) -> Result<()> {
        self.set_cgroup_limit(group, limit, value)
    }

    async fn cgroup_enter(&self, group: Cgroup) -> Result<()> {
        self.enter_cgroup(group)
    }

    async fn cgroup_file(&self, group: Cgroup, file: &str) -> Result<String> {
        self.read_cgroup_file(group, file)
    }

    fn sample(&self, metric: &'static str, value: f64) {
        self.process.shared.sample(metric, value);
    }

    fn fail(&self, error: SysError) {
        self.fail_run(error);
    }

    fn phase(&self, name: &str) {
        self.process.shared.phase(name);
        self.process.tell();
    }

    fn progress(&self, done: f64) {
        if self.process.shared.set_done(done) {
            self.process.tell();
        }
    }
}
