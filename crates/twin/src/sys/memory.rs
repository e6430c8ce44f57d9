//! Memory: anonymous, and files that are mapped.

use mm::Frame;
use mm::anon::{Advice as MmAdvice, Touch, TouchStop};
use rules::StoreFault;
use smallvec::SmallVec;
use sys::{Access, Advice, Fd, Mapping, Result, SysError};
use units::{Bytes, Gfp, Nanos, PAGE_SIZE, PAGEBLOCK_PAGES, Pfn, SpaceId};

use super::SysTwin;
use super::process::Mapped;
use crate::run::QUANTUM;

/// Bytes of a huge page.
const HUGE_PAGE: u64 = PAGEBLOCK_PAGES as u64 * PAGE_SIZE;

impl SysTwin {
    /// Address space of this thread's process.
    pub(crate) fn space(&self) -> SpaceId {
        self.task.ctx.with(|world, _| world.processes.of(self.process).space)
    }

    fn mapped(&self, mapping: Mapping) -> Result<Mapped> {
        let find = |process: &super::process::Process| process.mappings.get(mapping.id as usize).copied().flatten();
        let found = self.task.ctx.with(|world, _| find(world.processes.of(self.process)));
        found.ok_or(SysError::Invalid)
    }

    /// Refuses what is longer than a mapping.
    pub(super) fn check_part(&self, mapping: Mapping, length: Bytes) -> Result<()> {
        self.mapped(mapping)?.part(Bytes(0), length).map(drop)
    }

    pub(super) async fn map_anonymous(&self, length: Bytes, align: Bytes) -> Result<Mapping> {
        let pages = length.pages_up().0;
        if pages == 0 || pages > u64::from(u32::MAX) / 2 || !align.0.is_multiple_of(PAGE_SIZE) {
            return Err(SysError::Invalid);
        }
        let space = self.space();
        let align = (align.0 / PAGE_SIZE).max(1) as u32;
        let vpn = self.task.mm(|mm, _| mm.mmap_anon(space, pages as u32, align));
        Ok(self.install(Mapped { vpn, pages: pages as u32, file: None }, length))
    }

    /// Maps the first pages of a file, which stays open until they are unmapped.
    pub(super) async fn map_file(&self, fd: Fd, length: Bytes) -> Result<Mapping> {
        let pages = length.pages_up().0;
        if pages == 0 || pages > u64::from(u32::MAX) / 2 {
            return Err(SysError::Invalid);
        }
        let file = self.fget(fd)?;
        let ra = self.readahead(fd);
        let opened = self.until_satisfied(|world, ctl| world.enter(ctl, |mm, env| mm.vfs_open(env, file))).await;
        self.fput(fd);
        let handle = opened?;
        let space = self.space();
        let vpn = self.task.mm(|mm, _| mm.mmap_file(space, file, pages as u32, ra));
        Ok(self.install(Mapped { vpn, pages: pages as u32, file: Some(handle) }, length))
    }

    fn install(&self, mapped: Mapped, length: Bytes) -> Mapping {
        self.task.ctx.with(|world, _| {
            let mappings = &mut world.processes.of_mut(self.process).mappings;
            mappings.push(Some(mapped));
            Mapping { id: mappings.len() as u32 - 1, length }
        })
    }

    pub(super) async fn unmap(&self, mapping: Mapping) -> Result<()> {
        let Mapped { vpn, pages, file } = self.mapped(mapping)?;
        self.task.ctx.with(|world, _| world.processes.of_mut(self.process).mappings[mapping.id as usize] = None);
        self.zap(vpn, vpn + pages).await;
        let space = self.space();
        self.task.mm(|mm, env| mm.munmap(env, space, vpn, pages));
        if let Some(handle) = file {
            self.close_handle(handle);
        }
        Ok(())
    }

    pub(super) async fn advise(&self, mapping: Mapping, advice: Advice) -> Result<()> {
        let Mapped { vpn, pages, .. } = self.mapped(mapping)?;
        let space = self.space();
        let advice = match advice {
            Advice::HugePage => MmAdvice::Huge,
            Advice::NoHugePage => MmAdvice::NoHuge,
            Advice::DontNeed => {
                self.zap(vpn, vpn + pages).await;
                return Ok(());
            }
            Advice::Random => {
                self.task.mm(|mm, _| mm.madvise_random(space, vpn));
                return Ok(());
            }
        };
        self.task.mm(|mm, env| mm.madvise(env, space, vpn, pages, advice));
        Ok(())
    }

    /// Accesses every byte of a range, a huge page's worth at a time: the faults it takes, and the loads or stores
    /// themselves.
    pub(super) async fn touch_range(
        &self,
        mapping: Mapping,
        offset: Bytes,
        length: Bytes,
        access: Access,
    ) -> Result<()> {
        let mut at = offset.0;
        let end = self.mapped(mapping)?.part(offset, length)?;
        while at < end {
            let next = (at / HUGE_PAGE + 1).saturating_mul(HUGE_PAGE).min(end);
            self.fault_in(mapping, Bytes(at), Bytes(next - at), access).await?;
            let pages = Bytes(next - at).pages_up().0;
            let time = self.task.mm(|mm, _| mm.costs.memset_page * pages);
            self.compute_for(Nanos(time)).await;
            at = next;
        }
        Ok(())
    }

    /// Takes the page faults of an access to a range.
    pub(super) async fn fault_in(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()> {
        let mapped = self.mapped(mapping)?;
        let end = mapped.part(offset, length)?;
        let first = (offset.0 / PAGE_SIZE) as u32;
        let pages = Bytes(end).pages_up().0 as u32 - first;
        let write = access == Access::Write;
        self.fault_pages(Touch::new(self.space(), mapped.vpn + first, pages, write, QUANTUM.0)).await
    }

    /// Takes the page faults of accesses to single pages.
    pub(super) async fn fault_in_many(&self, mapping: Mapping, offsets: &[u64], access: Access) -> Result<()> {
        let mapped = self.mapped(mapping)?;
        let (space, write, mut at) = (self.space(), access == Access::Write, 0);
        let vpns: SmallVec<[u32; 64]> = offsets.iter().map(|offset| mapped.vpn + (offset / PAGE_SIZE) as u32).collect();
        if vpns.iter().any(|vpn| *vpn >= mapped.vpn + mapped.pages) {
            return Err(SysError::Invalid);
        }
        self.task.look(|mm| mm.look_ahead_mapped(space, &vpns));
        while at < vpns.len() {
            at += self.task.mm(|mm, env| mm.access_mapped(env, space, &vpns[at..], write));
            if let Some(vpn) = vpns.get(at) {
                self.fault_pages(Touch::new(space, *vpn, 1, write, QUANTUM.0)).await?;
                at += 1;
            }
        }
        Ok(())
    }

    pub(super) async fn fault_pages(&self, mut touch: Touch) -> Result<()> {
        // On the way into the kernel (`irqentry_exit_to_user_mode()`, `do_user_addr_fault()`).
        self.task.ctx.preempt_point().await;
        let mut hand = None;
        let result = self.fault_until_done(&mut touch, &mut hand).await;
        if result.is_err() {
            self.task.mm(|mm, env| mm.touch_cancel(env, touch, hand));
        }
        result
    }

    async fn fault_until_done(&self, touch: &mut Touch, hand: &mut Option<Pfn>) -> Result<()> {
        let space = touch.space;
        while !self.task.fatal_signal_pending() {
            match self.task.mm_reading(|mm, env| mm.touch(env, touch, hand.take())).await {
                TouchStop::Done => return Ok(()),
                TouchStop::Quantum => self.task.ctx.preempt_point().await,
                // `mmap_sem` is let go (`lock_page_or_retry()`).
                TouchStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED).await,
                TouchStop::WaitWriteback(pfn) => {
                    self.with_mmap_sem(space, self.task.wait_on_page_bit(pfn, Frame::WRITEBACK)).await;
                }
                TouchStop::NoMapping => return Err(SysError::Invalid),
                TouchStop::IoError => return Err(SysError::Io),
                TouchStop::NeedPage(request) => {
                    *hand = self.with_mmap_sem(space, self.task.alloc_pages_slowpath(request)).await;
                    // A page for readahead need not be there.
                    if hand.is_none() && !request.gfp.contains(Gfp::NORETRY) {
                        return Err(SysError::NoMemory);
                    }
                }
                TouchStop::NeedHuge(request) => {
                    *hand = self.with_mmap_sem(space, self.task.alloc_pages_slowpath(request)).await;
                }
                TouchStop::Need(need) => self.with_mmap_sem(space, self.satisfy(need)).await?,
                TouchStop::Dirtied(file, pages) => {
                    let throttled = self.task.balance_dirty_pages(file, pages);
                    match self.task.look(|mm| mm.rules.store_fault) {
                        StoreFault::KeepsLock => self.with_mmap_sem(space, throttled).await,
                        StoreFault::Retries | StoreFault::Completes => throttled.await,
                    }
                    // Before the store is tried again (`exit_to_user_mode_loop()`).
                    self.task.ctx.preempt_point().await;
                }
            }
        }
        Err(SysError::Killed)
    }

    /// Sleeps in a page fault that keeps `mmap_sem`.
    async fn with_mmap_sem<T>(&self, space: SpaceId, sleep: impl Future<Output = T>) -> T {
        self.task.ctx.with(|world, _| world.mm.fault_sleeps(space));
        let result = sleep.await;
        self.task.ctx.with(|world, _| world.mm.fault_goes_on(space));
        result
    }

    pub(super) fn is_resident(&self, mapping: Mapping, offset: Bytes) -> bool {
        let Ok(mapped) = self.mapped(mapping) else { return false };
        let space = self.space();
        let vpn = mapped.vpn + (offset.0 / PAGE_SIZE) as u32;
        self.task.mm(|mm, _| {
            mm.charge(mm.costs.syscall);
            mm.mincore(space, vpn)
        })
    }
}
