//! Anonymous memory.

use mm::Frame;
use mm::anon::{Advice as MmAdvice, Touch, TouchStop};
use sys::{Access, Advice, Mapping, Result, SysError};
use units::{Bytes, Nanos, PAGE_SIZE, SpaceId};

use super::SysTwin;
use super::process::Mapped;
use crate::run::QUANTUM;

impl SysTwin {
    /// Address space of this thread's process.
    pub(crate) fn space(&self) -> SpaceId {
        self.task.ctx.with(|world, _| world.processes.list[self.process as usize].space)
    }

    fn mapped(&self, mapping: Mapping) -> Result<Mapped> {
        let find = |process: &super::process::Process| process.mappings.get(mapping.id as usize).copied().flatten();
        let found = self.task.ctx.with(|world, _| find(&world.processes.list[self.process as usize]));
        found.ok_or(SysError::Invalid)
    }

    pub(super) async fn map_anonymous(&self, length: Bytes, align: Bytes) -> Result<Mapping> {
        self.enter().await?;
        let pages = length.pages_up().0;
        if pages == 0 || pages > u64::from(u32::MAX) / 2 || !align.0.is_multiple_of(PAGE_SIZE) {
            return Err(SysError::Invalid);
        }
        let space = self.space();
        let align = (align.0 / PAGE_SIZE).max(1) as u32;
        let vpn = self.task.mm(|mm, _| mm.mmap_anon(space, pages as u32, align));
        Ok(self.task.ctx.with(|world, _| {
            let mappings = &mut world.processes.list[self.process as usize].mappings;
            mappings.push(Some(Mapped { vpn, pages: pages as u32 }));
            Mapping { id: mappings.len() as u32 - 1, length }
        }))
    }

    pub(super) async fn unmap(&self, mapping: Mapping) -> Result<()> {
        self.enter().await?;
        let mapped = self.mapped(mapping)?;
        let space = self.space();
        self.task.mm(|mm, env| mm.munmap(env, space, mapped.vpn, mapped.pages));
        self.task.ctx.with(|world, _| {
            world.processes.list[self.process as usize].mappings[mapping.id as usize] = None;
        });
        Ok(())
    }

    pub(super) async fn advise(&self, mapping: Mapping, advice: Advice) -> Result<()> {
        self.enter().await?;
        let mapped = self.mapped(mapping)?;
        let space = self.space();
        let advice = match advice {
            Advice::HugePage => MmAdvice::Huge,
            Advice::NoHugePage => MmAdvice::NoHuge,
            Advice::DontNeed => MmAdvice::DontNeed,
        };
        self.task.mm(|mm, env| mm.madvise(env, space, mapped.vpn, mapped.pages, advice));
        Ok(())
    }

    /// Accesses every byte of a range: the faults it takes, and the loads or stores themselves.
    pub(super) async fn touch_range(
        &self,
        mapping: Mapping,
        offset: Bytes,
        length: Bytes,
        access: Access,
    ) -> Result<()> {
        self.fault_in(mapping, offset, length, access).await?;
        let pages = length.pages_up().0;
        let time = self.task.mm(|mm, _| mm.costs.memset_page * pages);
        self.compute_for(Nanos(time)).await;
        Ok(())
    }

    /// Takes the page faults of an access to a range.
    pub(super) async fn fault_in(&self, mapping: Mapping, offset: Bytes, length: Bytes, access: Access) -> Result<()> {
        let mapped = self.mapped(mapping)?;
        let first = (offset.0 / PAGE_SIZE) as u32;
        let end = Bytes(offset.0 + length.0).pages_up().0 as u32;
        if end > mapped.pages || first >= end {
            return Err(SysError::Invalid);
        }
        let space = self.space();
        let mut touch = Touch::new(space, mapped.vpn + first, end - first, access == Access::Write, QUANTUM.0);
        let mut hand = None;
        loop {
            if self.task.oom_killed() {
                self.task.mm(|mm, env| mm.touch_cancel(env, touch));
                return Err(SysError::Killed);
            }
            match self.task.mm(|mm, env| mm.touch(env, &mut touch, hand.take())) {
                TouchStop::Done => return Ok(()),
                TouchStop::Quantum => self.task.ctx.preempt_point().await,
                TouchStop::NeedPage(request) => {
                    hand = self.task.alloc_pages_slowpath(request).await;
                    if hand.is_none() && !self.task.oom_killed() {
                        self.task.mm(|mm, env| mm.touch_cancel(env, touch));
                        return Err(SysError::NoMemory);
                    }
                }
                TouchStop::NeedHuge(request) => hand = self.task.alloc_pages_slowpath(request).await,
                TouchStop::Wait(pfn) => self.task.wait_on_page_bit(pfn, Frame::LOCKED).await,
                TouchStop::NoMapping => return Err(SysError::Invalid),
                TouchStop::IoError => return Err(SysError::Io),
            }
        }
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
