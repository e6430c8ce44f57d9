//! The flushers, and what waits for them.
//!
//! Source: `wb_workfn()`, `sync_inodes_sb()` (fs/fs-writeback.c), `xfsaild()`, `xfs_reclaim_worker()` (fs/xfs), 4.20 and
//! 6.12. What they do is in `mm::writeback` and `mm::vfs`; here they sleep.
//! Abstracted: each flusher is a task, where workers take from a queue what is to be done (`bdi_wq`); `sync` waits until the device has nothing in flight instead of for each page.
//! Omitted: memory for a flusher's transactions, for which it may reclaim.

use mm::memcg::ROOT;
use mm::vfs::{FsId, FsKind, Logged, OrderedStep};
use mm::writeback::{EndIoStep, FlushStep, FlushWork, Fsync, FsyncStep, JournalWait, WbId};
use mm::{Frame, Mm, WakeFlusher};
use sim::{CpuSet, CpuTopology, Ctx, SpawnOptions};
use units::{FileId, Nanos};

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

/// Pages of one inode written between two looks at the device's queue.
pub(super) const STEP_PAGES: u32 = 256;
/// Time after which a flusher that finds every inode busy looks again though no write has ended.
const BUSY_RETRY: Nanos = Nanos::millis(10);
/// `xfs_syncd_centisecs / 6`: how often XFS frees reclaimable inodes by itself.
const RECLAIM_INTERVAL: Nanos = Nanos::secs(5);
/// `xfs_syncd_centisecs`: how often XFS pushes everything that is only in its log.
const PUSH_INTERVAL: Nanos = Nanos::secs(30);
/// Metadata blocks gone over, and then written, at a time.
const PUSH_BLOCKS: usize = 128;

/// What flushers are spawned with: on any CPU.
pub(crate) fn flusher_options(topology: &CpuTopology, wb: WbId) -> SpawnOptions {
    let name = match wb.group {
        ROOT => format!("kworker/flush-{}", wb.device),
        group => format!("kworker/flush-{}-{}", wb.device, group.0),
    };
    SpawnOptions::new(name, CpuSet::all(topology)).daemon()
}

/// Flusher of a group's writeback of a device; runs until the end of the simulation.
pub(crate) async fn flusher(ctx: Ctx<World>, wb: WbId) {
    let task = Task::new(ctx);
    let queue = task.ctx.with(|world, _| world.queues.flusher(wb));
    let mut work = FlushWork::default();
    loop {
        task.wait_for_room(wb.device).await;
        match task.mm(|mm, env| mm.writeback_step(env, wb, &mut work, STEP_PAGES)) {
            FlushStep::More => task.ctx.preempt_point().await,
            FlushStep::Wait(pfn) => task.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await,
            FlushStep::Journal(wait) => task.wait_for_journal(wait).await,
            FlushStep::Busy => {
                let written = task.ctx.with(|world, _| world.queues.written);
                task.ctx.wait_timeout(written, SleepReason::FlusherBusy, BUSY_RETRY).await;
            }
            FlushStep::Idle(until) => {
                task.ctx.with(|world, ctl| ctl.wake_all(world.queues.written));
                match until {
                    Some(at) => {
                        let timeout = at.since(task.ctx.now());
                        task.ctx.wait_timeout(queue, SleepReason::FlusherIdle, timeout).await;
                    }
                    None => task.ctx.wait(queue, SleepReason::FlusherIdle).await,
                }
            }
        }
    }
}

/// Ends the writes that change metadata (`xfs_end_io()`, `ext4_end_io_rsv_work()`).
pub(crate) async fn end_io(ctx: Ctx<World>) {
    let task = Task::new(ctx);
    loop {
        match task.mm(|mm, env| mm.end_io_step(env)) {
            EndIoStep::Done => {
                task.ctx.with(|world, ctl| {
                    ctl.wake_all(world.queues.written);
                    // What was still held of the bio is free.
                    ctl.wake_all(world.queues.bio_pool);
                });
                task.ctx.preempt_point().await;
            }
            EndIoStep::Journal => task.wait_for_journal(JournalWait::Block).await,
            EndIoStep::Idle => {
                let queue = task.ctx.with(|world, _| world.queues.end_io);
                task.ctx.wait(queue, SleepReason::FlusherIdle).await;
            }
        }
    }
}

/// Frees inodes that the VFS let go: the first time 5 seconds after there is one, and so on while there are any
/// (`xfs_reclaim_work_queue()`, `xfs_reclaim_worker()`).
pub(crate) async fn fs_reclaim(ctx: Ctx<World>) {
    let task = Task::new(ctx);
    loop {
        while task.look(|mm| mm.vfs.reclaimable_inodes()) == 0 {
            let queue = task.ctx.with(|world, _| world.queues.evicted);
            task.ctx.wait(queue, SleepReason::FlusherIdle).await;
        }
        task.ctx.sleep(SleepReason::FlusherIdle, RECLAIM_INTERVAL).await;
        task.mm(|mm, env| mm.vfs_background_reclaim(env));
    }
}

/// Writes checkpoints to the log when they are full, and every 30 seconds, when what was in the log before is to be written in place
/// (`xlog_cil_push_work()`, `xfs_log_worker()`).
pub(crate) async fn fs_log(ctx: Ctx<World>, fs: FsId) {
    let task = Task::new(ctx);
    let mut due = PUSH_INTERVAL;
    loop {
        let timer = task.wait_for_log(&mut due, |mm| mm.vfs_log_waits(fs)).await;
        let (last, done) = task.mm(|mm, env| {
            if timer || mm.vfs_log_forced(fs) {
                let last = mm.vfs_force_log(env, fs);
                if timer {
                    // What is being forced is not known to be on disk yet.
                    mm.vfs_push_logged(fs);
                }
                (last, mm.vfs_take_logged(fs))
            } else if mm.vfs_log_waits(fs) {
                // The end of what was written before is in the first buffer that this checkpoint fills.
                let done = mm.vfs_take_logged(fs);
                (mm.vfs_push_cil(env, fs), done)
            } else {
                (None, Logged::default())
            }
        });
        if let Some(bio) = last {
            task.metadata_io(bio).await;
        }
        // Not what an fsync wrote meanwhile: it may not be on disk yet.
        task.mm(|mm, env| mm.vfs_free_logged(env, fs, &done));
    }
}

/// Commits the running transaction when it is due (`kjournald2()`).
pub(crate) async fn kjournald2(ctx: Ctx<World>, fs: FsId) {
    let task = Task::new(ctx);
    loop {
        let now = task.ctx.now();
        let (due, log) = task.ctx.with(|world, _| (world.mm.vfs_commit_due(fs), world.queues.log));
        match due {
            Some(at) if at <= now => task.commit(fs).await,
            Some(at) => {
                task.ctx.wait_timeout(log, SleepReason::FlusherIdle, at.since(now)).await;
            }
            None => task.ctx.wait(log, SleepReason::FlusherIdle).await,
        }
    }
}

/// Writes metadata that is only in the log: every 30 seconds, when the log needs room and when inodes are reclaimed (`xfsaild()`). It may use the last
/// reserves, as the kernel's does.
pub(crate) async fn fs_push(ctx: Ctx<World>, fs: FsId, device: u16) {
    let task = Task::new(ctx);
    task.set_flags(|flags| flags.memalloc = true);
    loop {
        let queue = task.ctx.with(|world, _| (!world.mm.vfs_push_waits(fs)).then_some(world.queues.log));
        if let Some(queue) = queue {
            task.ctx.wait(queue, SleepReason::FlusherIdle).await;
        }
        let target = task.mm(|mm, _| mm.vfs_take_push(fs));
        loop {
            match task.mm(|mm, env| mm.vfs_push_metadata(env, fs, target, PUSH_BLOCKS)) {
                Ok(0) => break,
                Ok(_) => task.ctx.preempt_point().await,
                // Without memory for a buffer the rest waits for the next time.
                Err(need) => {
                    if task.satisfy(need).await.is_none() {
                        break;
                    }
                }
            }
        }
        while task.mm(|mm, env| mm.vfs_submit_metadata(env, fs, PUSH_BLOCKS)) {
            task.wait_for_room(device).await;
            task.ctx.preempt_point().await;
        }
    }
}

impl Task {
    /// Writes the running transaction of a journal to the log.
    async fn commit(&self, fs: FsId) {
        while let Err(need) = self.mm(|mm, env| mm.vfs_bring_changed(env, fs)) {
            // What cannot be brought in goes to the log as it is.
            if self.satisfy(need).await.is_none() {
                break;
            }
        }
        let Some(id) = self.mm(|mm, env| mm.vfs_take_commit(env, fs)) else { return };
        self.write_ordered(fs).await;
        let last = loop {
            match self.mm(|mm, env| mm.vfs_log_commit(env, fs, id)) {
                Some(bio) => break bio,
                None => self.ctx.preempt_point().await,
            }
        };
        self.metadata_io(last).await;
        self.mm(|mm, env| mm.vfs_end_commit(env, fs, id));
    }

    /// Writes the data that goes before a transaction of ext3, and waits for it (`journal_submit_data_buffers()`).
    async fn write_ordered(&self, fs: FsId) {
        let (device, files) = self.mm(|mm, _| (mm.vfs_device(fs), mm.vfs_take_ordered(fs)));
        for &file in &files {
            let mut from = 0;
            loop {
                self.wait_for_room(device).await;
                match self.mm(|mm, env| mm.vfs_write_ordered(env, file, from, STEP_PAGES)) {
                    OrderedStep::More(next) => from = next,
                    OrderedStep::Wait(pfn, next) => {
                        from = next;
                        self.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await;
                    }
                    OrderedStep::Done => break,
                }
                self.ctx.preempt_point().await;
            }
        }
        for file in files {
            let mut from = 0;
            while let Some(pfn) = self.mm(|mm, _| mm.vfs_next_ordered(file, &mut from)) {
                self.wait_on_page_bit(pfn, Frame::WRITEBACK).await;
            }
        }
    }

    /// Waits until the log wants something, or until its timer, which moves on then; says whether it was that.
    async fn wait_for_log(&self, due: &mut Nanos, at_once: impl Fn(&Mm) -> bool) -> bool {
        let queue = self.ctx.with(|world, _| (!at_once(&world.mm)).then_some(world.queues.log));
        if let Some(queue) = queue {
            let timeout = due.since(self.ctx.now());
            self.ctx.wait_timeout(queue, SleepReason::FlusherIdle, timeout).await;
        }
        let now = self.ctx.now();
        let timer = now >= *due;
        if timer {
            *due = Nanos(now.0 + PUSH_INTERVAL.0);
        }
        timer
    }

    /// Waits until what is being written to a journal is there, or until there is room in it to reserve.
    pub(super) async fn wait_for_journal(&self, wait: JournalWait) {
        let (queue, reason) = self.ctx.with(|world, _| match wait {
            JournalWait::Block => (world.queues.journalled, SleepReason::Journal),
            JournalWait::Credits => (world.queues.reserved, SleepReason::JournalCredits),
        });
        self.ctx.wait(queue, reason).await;
    }

    /// Writes a file's dirty data and waits for it.
    pub(crate) async fn sync_file(&self, file: FileId) {
        let mut fsync = Fsync::default();
        loop {
            match self.mm(|mm, env| mm.fsync_step(env, file, &mut fsync)) {
                FsyncStep::More => self.ctx.preempt_point().await,
                FsyncStep::Wait(pfn) => self.wait_on_page_bit(pfn, Frame::LOCKED | Frame::WRITEBACK).await,
                FsyncStep::Journal(wait) => self.wait_for_journal(wait).await,
                FsyncStep::Log(bio) => self.metadata_io(bio).await,
                FsyncStep::Done => return,
            }
        }
    }

    /// Writes everything that is dirty and waits for it, then the logs, then what the journals have committed (`ksys_sync()`).
    pub(crate) async fn sync_all(&self) {
        let devices = self.ctx.with(|world, _| world.devices.list.len() as u16);
        self.mm(|mm, _| mm.wakeup_flusher_threads(WakeFlusher::Sync));
        self.write_devices((0..devices).collect()).await;
        self.force_logs().await;
        let journalled = self.commit_journals().await;
        self.write_devices(journalled).await;
    }

    /// Writes everything that is dirty on some devices and waits for it.
    async fn write_devices(&self, devices: Vec<u16>) {
        let tickets: Vec<_> = devices.iter().map(|device| self.mm(|mm, _| mm.request_sync(*device))).collect();
        for (device, tickets) in devices.into_iter().zip(tickets) {
            loop {
                let (queue, reason) = self.ctx.with(|world, _| {
                    let on_device = world.devices.writes_in_flight(device) == 0 && !world.mm.has_end_io();
                    let reason = match (world.mm.sync_done(&tickets), on_device) {
                        (false, _) => Some(SleepReason::SyncWork),
                        (true, false) => Some(SleepReason::Fsync),
                        (true, true) => None,
                    };
                    (world.queues.written, reason)
                });
                match reason {
                    Some(reason) => self.ctx.wait(queue, reason).await,
                    None => break,
                }
            }
        }
    }

    /// Has the journals of ext4 commit, and waits for that (`ext4_sync_fs()`); returns the devices whose blocks are dirty by that.
    async fn commit_journals(&self) -> Vec<u16> {
        let mounted = self.ctx.with(|world, _| world.mm.vfs_file_systems(FsKind::Ext4));
        let commits: Vec<_> = mounted.iter().map(|fs| self.mm(|mm, env| mm.vfs_request_commit(env, *fs))).collect();
        let mut devices = Vec::new();
        for (fs, commit) in mounted.into_iter().zip(commits) {
            let Some(commit) = commit else { continue };
            while !self.ctx.with(|world, _| world.mm.vfs_is_committed(fs, commit)) {
                let journalled = self.ctx.with(|world, _| world.queues.journalled);
                self.ctx.wait(journalled, SleepReason::SyncWork).await;
            }
            devices.push(self.ctx.with(|world, _| world.mm.vfs_device(fs)));
        }
        devices
    }

    /// Has the logs of XFS written, and waits for that (`xfs_fs_sync_fs()`).
    async fn force_logs(&self) {
        let mounted = self.ctx.with(|world, _| world.mm.vfs_file_systems(FsKind::Xfs));
        for fs in mounted {
            if let Some(bio) = self.mm(|mm, env| mm.vfs_force_log(env, fs)) {
                self.metadata_io(bio).await;
            }
        }
    }
}
