//! Kernel memory of a task: what `fork()` and `execve()` allocate and its exit gives back.
//!
//! Rule: a task has a kernel stack, a `task_struct`, credentials and a pid; a process also its signal handlers, table of
//! files and `mm_struct`, the areas of its program's image with what the reverse mapping needs for them, and the page
//! tables of that image. All of it is unmovable.
//! Source: `dup_task_struct()`, `copy_process()`, `dup_mmap()` (kernel/fork.c), `load_elf_binary()` (fs/binfmt_elf.c),
//! THREAD_SIZE_ORDER 2 (arch/x86/include/asm/page_64_types.h, since 3.15); 3.19, 4.20 and 6.12.
//! Since/until: [`KernelStack`].
//! Abstracted: every program has the image that a small dynamically linked one has: 28 areas in `/proc/PID/maps` of
//! `sh` and `cc1`, half of them written to, mapped by 9 page tables (program, libraries, heap, stack, vdso, and the
//! levels above). The areas of the workload's own mappings are not counted. The top-level table is among the 9.
//! Omitted: the image's own pages, which are page cache that all programs share; copy-on-write pages between fork and
//! exec; sockets. Pipes are in `pipe`.

use rules::KernelStack;
use smallvec::SmallVec;
use units::{Gfp, Order, Pfn};

use crate::memcg::KernelPage;
use crate::slab::{CacheId, Obj};
use crate::vfs::Need;
use crate::{AllocRequest, Env, Kind, Mm};

/// 16 KiB.
const STACK_ORDER: Order = Order(2);
/// Areas of a program's image.
const IMAGE_AREAS: u32 = 28;
/// Those that were written to and have an `anon_vma`.
const IMAGE_WRITTEN: u32 = 14;
/// Frames of page tables for the image.
const IMAGE_TABLES: u32 = 9;

/// Slab objects of any task.
const TASK_OBJECTS: &[(CacheId, u32)] = &[(CacheId::TASK_STRUCT, 1), (CacheId::CRED, 1), (CacheId::PID, 1)];
/// Slab objects of a process beside those.
const PROCESS_OBJECTS: &[(CacheId, u32)] = &[
    (CacheId::SIGNAL, 1),
    (CacheId::SIGHAND, 1),
    (CacheId::FILES, 1),
    (CacheId::MM_STRUCT, 1),
    (CacheId::VM_AREA_STRUCT, IMAGE_AREAS),
    (CacheId::ANON_VMA, IMAGE_WRITTEN),
    (CacheId::ANON_VMA_CHAIN, IMAGE_WRITTEN),
];

/// What a task holds of the kernel's memory.
#[derive(Debug, Default)]
pub struct TaskMemory {
    objects: Vec<(CacheId, Obj)>,
    pages: SmallVec<[Pfn; 16]>,
    /// A page from the slow path.
    spare: Option<Pfn>,
}

impl TaskMemory {
    /// Takes the page that [`Mm::begin_task`] lacked.
    pub fn give(&mut self, pfn: Pfn) {
        debug_assert!(self.spare.is_none());
        self.spare = Some(pfn);
    }
}

impl Mm {
    /// Allocates what a new task needs, going on where an earlier call stopped: for a page, give it to `memory` and
    /// repeat.
    ///
    /// # Errors
    /// What is missing.
    pub fn begin_task(&mut self, env: &Env, memory: &mut TaskMemory, process: bool) -> Result<(), Need> {
        let (order, blocks) = self.stack_blocks();
        self.task_pages(env, memory, (KernelPage::Stack, order), blocks)?;
        self.kernel_objects(env, &mut memory.objects, 0, TASK_OBJECTS)?;
        if process {
            self.kernel_objects(env, &mut memory.objects, 3, PROCESS_OBJECTS)?;
            self.task_pages(env, memory, (KernelPage::Table, Order(0)), blocks + IMAGE_TABLES as usize)?;
        }
        Ok(())
    }

    /// Order and number of the blocks that a kernel stack is made of.
    fn stack_blocks(&self) -> (Order, usize) {
        match self.rules.kernel_stack {
            KernelStack::Contiguous => (STACK_ORDER, 1),
            KernelStack::Mapped => (Order(0), STACK_ORDER.pages() as usize),
        }
    }

    /// Allocates blocks until the task holds so many.
    fn task_pages(
        &mut self,
        env: &Env,
        memory: &mut TaskMemory,
        (of, order): (KernelPage, Order),
        until: usize,
    ) -> Result<(), Need> {
        while memory.pages.len() < until {
            let request = AllocRequest { gfp: Gfp::KERNEL.with(Gfp::ZERO), order, node: env.node };
            self.memcg_reserve(env, env.task.memcg, order, Gfp::KERNEL)?;
            let pfn = memory.spare.take().or_else(|| self.alloc_pages(env, request)).ok_or(Need::Page(request))?;
            self.frames[pfn].set_kind(Kind::Kernel, order);
            self.memcg_commit_kernel(env, pfn, of);
            memory.pages.push(pfn);
        }
        Ok(())
    }

    /// Allocates the objects of a list that are not among the first `objects` yet, where the list's first one is number `first`.
    pub(crate) fn kernel_objects(
        &mut self,
        env: &Env,
        objects: &mut Vec<(CacheId, Obj)>,
        first: usize,
        list: &[(CacheId, u32)],
    ) -> Result<(), Need> {
        let wanted = list.iter().flat_map(|&(cache, count)| (0..count).map(move |_| cache));
        for cache in wanted.skip(objects.len() - first) {
            self.memcg_reserve_object(env, cache, Gfp::KERNEL)?;
            let obj = self.slab_alloc(env, cache, Gfp::KERNEL).map_err(|request| Need::Slab(cache, request))?;
            objects.push((cache, obj));
        }
        Ok(())
    }

    /// Allocates a page that stays, the kernel's or a locked one by `gfp`; false if there is none.
    pub fn hold_page(&mut self, env: &Env, gfp: Gfp) -> bool {
        let request = AllocRequest { gfp, order: Order(0), node: env.node };
        let page = self.alloc_pages(env, request);
        if let Some(pfn) = page {
            self.frames[pfn].set_kind(Kind::Kernel, Order(0));
        }
        page.is_some()
    }

    /// Gives back what a task held.
    pub fn end_task(&mut self, env: &Env, memory: TaskMemory) {
        for (cache, obj) in memory.objects {
            self.slab_free(env, cache, obj);
        }
        let (_, stack) = self.stack_blocks();
        for (at, &pfn) in memory.pages.iter().enumerate() {
            self.memcg_forget_kernel(pfn, if at < stack { KernelPage::Stack } else { KernelPage::Table });
        }
        for pfn in memory.pages.into_iter().chain(memory.spare) {
            let order = self.frames[pfn].order();
            self.frames[pfn].set_kind(Kind::Held, order);
            self.free_pages(env, pfn, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use rules::Rules;

    use super::*;
    use crate::zone::testing::{env, one_zone};

    fn machine(stack: KernelStack) -> Mm {
        one_zone(16, Rules { kernel_stack: stack, ..Rules::newest() })
    }

    #[test]
    fn a_process_gives_back_all_that_it_took() {
        for stack in [KernelStack::Contiguous, KernelStack::Mapped] {
            let (mut mm, env) = (machine(stack), env(0));
            let mut memory = TaskMemory::default();
            assert_eq!(mm.begin_task(&env, &mut memory, true), Ok(()));
            // 3 + 4 + 28 + 2 x 14 objects; a stack of 4 pages and 9 page tables.
            assert_eq!(memory.objects.len(), 3 + 4 + 28 + 2 * 14);
            let pages: u32 = memory.pages.iter().map(|p| mm.frames[*p].nr_pages()).sum();
            assert_eq!(pages, 4 + 9, "{stack:?}");
            mm.end_task(&env, memory);
            assert!(mm.validate().is_empty());
        }
    }

    #[test]
    fn the_stack_is_one_block_or_four_pages() {
        for (stack, orders) in [(KernelStack::Contiguous, vec![2]), (KernelStack::Mapped, vec![0; 4])] {
            let (mut mm, env) = (machine(stack), env(0));
            let mut memory = TaskMemory::default();
            assert_eq!(mm.begin_task(&env, &mut memory, false), Ok(()));
            let found: Vec<u8> = memory.pages.iter().map(|p| mm.frames[*p].order().0).collect();
            assert_eq!(found, orders);
            mm.end_task(&env, memory);
        }
    }

    #[test]
    fn it_goes_on_where_memory_was_lacking() {
        let (mut mm, env) = (machine(KernelStack::Contiguous), env(0));
        let request = AllocRequest { gfp: Gfp::KERNEL, order: Order(2), node: env.node };
        let mut all = Vec::new();
        while let Some(pfn) = mm.alloc_pages(&env, request) {
            all.push(pfn);
        }
        let mut memory = TaskMemory::default();
        let lacking = mm.begin_task(&env, &mut memory, true);
        let Err(Need::Page(asked)) = lacking else { panic!("{lacking:?}") };
        assert_eq!(asked.order, STACK_ORDER);
        memory.give(all.pop().expect("some were free"));
        for pfn in all {
            mm.free_pages(&env, pfn, Order(2));
        }
        assert_eq!(mm.begin_task(&env, &mut memory, true), Ok(()));
        mm.end_task(&env, memory);
        assert!(mm.validate().is_empty());
    }
}
