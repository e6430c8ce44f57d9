//! Waiting for I/O.

use mm::vfs::FsKind;
use mm::{Bio, Env, Frame, Mm, Reserve};
use sim::WaitQueueId;
use units::{Nanos, Pfn};

use super::Task;
use crate::reason::SleepReason;
use crate::world::World;

impl Task {
    /// Calls a mechanism that may read pages, and submits what it reads. The block layer may sleep (`might_sleep()` in `submit_bio_noacct()`),
    /// so that who is due to give way does so with these pages locked; and who reads what was part of the working set stalls for
    /// memory until all is submitted, on the CPU or waiting for it.
    /// Abstracted: all that the call reads is submitted after it, and stalls if any of it does.
    pub(crate) async fn mm_reading<R>(&self, call: impl FnOnce(&mut Mm, &Env) -> R) -> R {
        let (result, reads) = self.ctx.with(|world, ctl| world.enter_holding_reads(ctl, call));
        if reads.is_empty() {
            return result;
        }
        let thrashing = self.look(|mm| reads.iter().any(|bio| mm.reads_workingset(bio)));
        let stall = thrashing.then(|| self.memstall_enter());
        for bio in reads {
            self.ctx.preempt_point().await;
            self.mm(|mm, env| mm.submit(env, bio));
        }
        if let Some(stall) = stall {
            self.memstall_leave(stall);
        }
        result
    }

    /// Submits a bio of metadata and waits for its end.
    pub(crate) async fn metadata_io(&self, bio: Bio) {
        if self.mm(|mm, _| mm.begin_metadata(bio)) {
            return;
        }
        let task = self.ctx.task();
        let queue = self.ctx.with(|world, ctl| {
            let queue = *world.task_mut(task).io.get_or_insert_with(|| ctl.new_wait_queue());
            world.submit(ctl, bio, Some(queue));
            queue
        });
        let xfs = self.look(|mm| mm.vfs.kind_on(bio.device) == Some(FsKind::Xfs));
        self.ctx.wait(queue, if xfs { SleepReason::Metadata } else { SleepReason::Buffer }).await;
    }

    /// Submits a write of metadata once the queue of its device has room for it, and waits for its end (`xfs_bwrite()`).
    pub(super) async fn write_and_wait(&self, bio: Bio) {
        self.wait_for_room(bio.device).await;
        self.metadata_io(bio).await;
    }

    /// Waits until a device has a request for each of its lists that this task may write with (`get_request_wait()`), and until the memory
    /// for bios that this task should have waited for as it wrote is back; what comes next it may reclaim for.
    pub(crate) async fn wait_for_room(&self, device: u16) {
        let task = self.ctx.task();
        self.sleep_while_refused(|world, now| {
            let device = &world.devices.list[usize::from(device)];
            device.refusing(now, &world.task(task).batch).map(|list| device.room(list))
        })
        .await;
        self.ctx.with(|world, _| world.task_mut(task).refused = None);
        if let Some(reserve) = self.wait_for_bio().await
            && let Some(need) = self.mm(|mm, env| mm.refill_bios(env, reserve))
        {
            // Without that there is the reserve.
            Box::pin(self.satisfy(need)).await;
        }
    }

    /// Waits where this task should have as it wrote (`get_request_wait()`), if it still has to.
    /// Abstracted: after the pages that it wrote in one go, not amidst them.
    pub(crate) async fn wait_for_own_writes(&self) {
        let task = self.ctx.task();
        let refused = self.ctx.with(|world, _| world.task_mut(task).refused.take());
        if let Some((device, list)) = refused {
            self.sleep_while_refused(|world, now| {
                let device = &world.devices.list[usize::from(device)];
                device.refuses(list, now, &world.task(task).batch).then(|| device.room(list))
            })
            .await;
        }
        self.wait_for_bio().await;
    }

    /// Sleeps while there is no request for this task, where `refusing` says; who has slept begins a batch.
    async fn sleep_while_refused(&self, refusing: impl Fn(&World, Nanos) -> Option<WaitQueueId>) {
        let task = self.ctx.task();
        while let Some(queue) = self.ctx.with(|world, ctl| refusing(world, ctl.now())) {
            self.ctx.wait(queue, SleepReason::RequestQueue).await;
            self.ctx.with(|world, ctl| world.task_mut(task).batch.begin(ctl.now()));
        }
    }

    /// Waits until the reserve that this task should have waited for as it wrote, if there is one, is not overdrawn any more
    /// (`mempool_alloc()`); says which.
    async fn wait_for_bio(&self) -> Option<Reserve> {
        let task = self.ctx.task();
        let reserve = self.ctx.with(|world, _| world.task_mut(task).overdrawn.take())?;
        while self.ctx.with(|world, _| world.mm.is_overdrawn(reserve)) {
            let queue = self.ctx.with(|world, _| world.queues.bio_pool);
            self.ctx.wait(queue, SleepReason::BioPool).await;
        }
        Some(reserve)
    }

    /// Waits until none of `flags` (LOCKED, WRITEBACK) is set on a frame (`folio_wait_bit`). The caller looks again
    /// whether the frame is still what it was. Who waits for a page to be read that was part of the working set stalls for memory.
    pub(crate) async fn wait_on_page_bit(&self, pfn: Pfn, flags: u32) {
        let thrashing = self.ctx.with(|world, _| {
            let frame = &world.mm.frames[pfn];
            flags & Frame::LOCKED != 0 && !frame.has(Frame::UPTODATE) && frame.has(Frame::WORKINGSET)
        });
        let stall = thrashing.then(|| self.memstall_enter());
        loop {
            let queue = self.ctx.with(|world, _| {
                let frame = &mut world.mm.frames[pfn];
                frame.has_any(flags).then(|| {
                    frame.set(Frame::WAITERS);
                    world.queues.page(pfn)
                })
            });
            match queue {
                Some(queue) => self.ctx.wait(queue, SleepReason::PageBit).await,
                None => break,
            }
        }
        if let Some(stall) = stall {
            self.memstall_leave(stall);
        }
    }
}
