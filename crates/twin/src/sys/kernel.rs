//! What only the kernel can do: blocks of pages for a module, and sysctls.

use mm::compaction::{CompactControl, CompactRun, CompactStep};
use mm::{AllocRequest, Kind};
use sys::{PageBlock, Result, SysError};
use units::{Gfp, Order, ZoneId};

use super::SysTwin;

impl SysTwin {
    /// A block for a module; none if the allocation fails.
    pub(super) async fn module_alloc(&self, gfp: Gfp, order: Order) -> Result<Option<PageBlock>> {
        if order > Order::MAX {
            return Err(SysError::Invalid);
        }
        let node = self.task.ctx.node();
        let request = AllocRequest { gfp, order, node };
        let found = match self.task.mm(|mm, env| mm.alloc_pages(env, request)) {
            Some(pfn) => Some(pfn),
            None => self.task.alloc_pages_slowpath(request).await,
        };
        self.task.ctx.preempt_point().await;
        Ok(found.map(|pfn| {
            self.task.ctx.with(|world, _| {
                world.mm.frames[pfn].set_kind(Kind::Kernel, order);
                let blocks = &mut world.processes.blocks;
                blocks.push(Some(pfn));
                PageBlock(blocks.len() as u32 - 1)
            })
        }))
    }

    pub(super) async fn module_free(&self, block: PageBlock) -> Result<()> {
        let held = self.task.ctx.with(|world, _| world.processes.blocks.get_mut(block.0 as usize)?.take());
        let pfn = held.ok_or(SysError::Invalid)?;
        self.task.mm(|mm, env| {
            let order = mm.frames[pfn].order();
            mm.frames[pfn].set_kind(Kind::Held, order);
            mm.free_pages(env, pfn, order);
        });
        self.task.ctx.preempt_point().await;
        Ok(())
    }

    pub(super) async fn read_sysctl(&self, name: &str) -> Result<u64> {
        self.task.mm(|mm, _| mm.sysctl(name)).ok_or(SysError::NoSysctl)
    }

    pub(super) async fn write_sysctl(&self, name: &str, value: u64) -> Result<()> {
        match name {
            "vm.drop_caches" => self.task.mm(|mm, env| mm.drop_caches(env, value)),
            "vm.compact_memory" => self.compact_memory().await,
            _ => self.task.mm(|mm, _| mm.set_sysctl(name, value)).map_err(|_| SysError::NoSysctl)?,
        }
        self.task.ctx.preempt_point().await;
        Ok(())
    }

    /// Compacts every zone of the machine (`compact_nodes()`, mm/compaction.c).
    async fn compact_memory(&self) {
        let zones = self.task.mm(|mm, _| mm.zones.len() as u8);
        for zone in (0..zones).map(ZoneId) {
            let begin = self.task.mm(|mm, env| CompactRun::start(mm, env, zone, CompactControl::everything()));
            let Ok(mut run) = begin else { continue };
            loop {
                match self.task.mm(|mm, env| run.step(mm, env)) {
                    CompactStep::Done(_) => break,
                    step => self.task.after_compact_step(step).await,
                }
            }
            self.task.mm(|mm, env| run.finish(mm, env));
        }
    }
}
