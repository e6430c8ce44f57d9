//! Page faults on anonymous memory, a range at a time.
//!
//! Rule: an access to an empty 2 MiB region of an eligible area tries a huge page; where that fails, and in every
//! region that has a page table, a write takes one zeroed page and a read maps the zero page. The frames of missing
//! page tables come first, from the top level down. New pages are mapped, young, and go to the LRU list of
//! `rules.anon_start`.
//! Source: `__handle_mm_fault()`, `do_anonymous_page()`, `do_wp_page()` (mm/memory.c), `do_huge_pmd_anonymous_page()`
//! (mm/huge_memory.c); 4.20 and 6.12.
//! Abstracted: accesses to what is mapped cost nothing here (the workload charges its own work); a fault that waits and
//! is repeated counts once in `pgfault`.
//! A group at its limit gets no huge page; the kernel reclaims for it once.
//! Omitted: the huge zero page; multi-size THP.

use rules::{AnonStart, SlotOfWritten};
use units::{FileId, Gfp, Order, PAGEBLOCK_ORDER, Pfn, SpaceId};

use super::file_fault::FileArea;
use super::pgtable::GFP_PGTABLE;
use super::swapin::Window;
use super::{
    Leaves, REGION_PAGES, Region, Slot, Tally, ThpAdvice, Vma, VmaKind, huge_attempts, thp_enabled_for, thp_gfp_mask,
};
use crate::memcg::KernelPage;
use crate::stat::{NodeStat, VmEvent};
use crate::vfs::Need;
use crate::{AllocRequest, Env, Frame, Kind, Mm, TaskFlags};

/// Flags of a base page for a fault.
pub(super) const GFP_PAGE: Gfp = Gfp::HIGHUSER_MOVABLE.with(Gfp::ZERO);
/// Flags of a base page to read from swap into.
pub(super) const GFP_SWAPIN: Gfp = Gfp::HIGHUSER_MOVABLE;

/// An access to the pages `vpn .. end` of a space, and how far it has come.
#[derive(Clone, Debug)]
pub struct Touch {
    /// The space.
    pub space: SpaceId,
    /// The page to go on with.
    pub vpn: u32,
    /// One past the last page.
    pub end: u32,
    /// Writes, not reads.
    pub write: bool,
    /// CPU time after which `touch` returns, in ns since it was entered.
    pub quantum_ns: u64,
    /// Frame brought by the caller for the request in `asked`.
    spare: Pfn,
    asked: Gfp,
    /// The page of a file that the fault at `vpn` holds locked until its writeback has ended.
    pub(super) locked: Option<(FileId, u32)>,
    /// The fault at `vpn` made a page of a file dirty and is taken again ([`StoreFault`](rules::StoreFault)).
    pub(super) taken_again: bool,
    /// Huge page that waits for its page table.
    huge: Pfn,
    /// Number of the attempt at a huge page for the region at `vpn`.
    attempt: u8,
    /// That attempt went to the caller's slow path.
    attempt_asked: bool,
    /// Readahead from swap that is not all allocated.
    pub(super) window: Option<Window>,
    /// The major fault at `vpn` has been counted.
    pub(super) major: bool,
}

impl Touch {
    /// An access to `pages` pages from `vpn`.
    pub fn new(space: SpaceId, vpn: u32, pages: u32, write: bool, quantum_ns: u64) -> Touch {
        Touch {
            space,
            vpn,
            end: vpn + pages,
            write,
            quantum_ns,
            spare: Pfn::NONE,
            asked: Gfp::NONE,
            locked: None,
            taken_again: false,
            huge: Pfn::NONE,
            attempt: 0,
            attempt_asked: false,
            window: None,
            major: false,
        }
    }

    /// A write to one page by a caller who brings the frame for it.
    pub(super) fn asking(space: SpaceId, vpn: u32, gfp: Gfp) -> Touch {
        Touch { asked: gfp, ..Touch::new(space, vpn, 1, true, u64::MAX >> 1) }
    }

    /// The frame that the caller brought, for whatever needs one.
    pub(super) fn take_spare(&mut self) -> Option<Pfn> {
        let spare = std::mem::replace(&mut self.spare, Pfn::NONE);
        spare.is_some().then_some(spare)
    }

    /// What is left of it.
    pub(super) fn put_spare(&mut self, hand: Option<Pfn>) {
        self.spare = hand.unwrap_or(Pfn::NONE);
    }
}

/// Why `touch` returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TouchStop {
    /// All pages were accessed.
    Done,
    /// The quantum is used up.
    Quantum,
    /// Order-0 memory is missing: take the slow path and come back with the frame in `hand`.
    NeedPage(AllocRequest),
    /// A huge page is missing: take the slow path and come back with it, or without one to fall back.
    NeedHuge(AllocRequest),
    /// Wait until this frame's read ends (its `WAITERS` flag is set), then come back.
    Wait(Pfn),
    /// Wait until this frame's writeback ends (its `WAITERS` flag is set), then come back.
    WaitWriteback(Pfn),
    /// Nothing is mapped at `vpn` (SIGSEGV).
    NoMapping,
    /// The page at `vpn` could not be read from swap, or lies behind the end of its file, or there is no space for it
    /// (SIGBUS).
    IoError,
    /// A file's page lacks something: provide it and come back.
    Need(Need),
    /// So many clean pages of this file were made dirty (counts for `TaskDirty`): come back.
    Dirtied(FileId, u32),
}

/// What became of an attempt at a huge page.
enum Huge {
    Mapped,
    Fallback,
    Stop(TouchStop),
}

impl Mm {
    /// Accesses a range page by page until something stops it. `hand` is the frame asked for by the last stop.
    pub fn touch(&mut self, env: &Env, touch: &mut Touch, hand: Option<Pfn>) -> TouchStop {
        debug_assert!(self.spaces[touch.space].live);
        let env = &Env { task: TaskFlags { in_lru_fault: true, ..env.task }, ..*env };
        match hand {
            Some(pfn) if self.frames[pfn].order() == PAGEBLOCK_ORDER => touch.huge = pfn,
            Some(pfn) => touch.spare = pfn,
            None => {}
        }
        if let Some(file) = self.unlock_written(touch) {
            return TouchStop::Dirtied(file, 1);
        }
        let deadline = self.cpu_ns() + touch.quantum_ns;
        let mut tally = Tally::default();
        let stop = self.touch_regions(env, touch, deadline, &mut tally);
        tally.settle(self, touch.space);
        self.give_back_spare(env, touch);
        stop
    }

    /// Looks at pages that are about to be accessed, and at their page tables, so that their cache misses overlap.
    pub fn look_ahead_mapped(&self, space: SpaceId, vpns: &[u32]) {
        self.frames.look_ahead(vpns.iter().filter_map(|vpn| self.slot_of(space, *vpn).page()));
    }

    /// Accesses pages of anonymous memory one after the other as long as they are mapped and no access faults; returns how
    /// many.
    pub fn access_mapped(&mut self, env: &Env, space: SpaceId, vpns: &[u32], write: bool) -> usize {
        let mut tally = Tally::default();
        let mut done = 0;
        for vpn in vpns {
            let Region::Table(leaf) = self.spaces[space].tables.region(*vpn) else { break };
            let Slot::Page(pfn) = self.spaces.leaves.get(leaf, *vpn) else { break };
            if self.frames[pfn].kind() != Kind::Anon {
                break;
            }
            self.spaces.leaves.set_young(leaf);
            self.access_page(env, pfn, write, &mut tally);
            done += 1;
        }
        tally.settle(self, space);
        done
    }

    /// Gives back what an abandoned access still holds, and the frame in `hand` that it did not come to take: the task
    /// was killed while it waited, or the access failed.
    pub fn touch_cancel(&mut self, env: &Env, mut touch: Touch, hand: Option<Pfn>) {
        if let Some(pfn) = hand {
            self.free_pages(env, pfn, self.frames[pfn].order());
        }
        self.unlock_written(&mut touch);
        self.forget_huge(env, &mut touch);
        self.give_back_spare(env, &mut touch);
    }

    fn give_back_spare(&mut self, env: &Env, touch: &mut Touch) {
        let spare = std::mem::replace(&mut touch.spare, Pfn::NONE);
        if spare.is_some() {
            self.free_pages(env, spare, self.frames[spare].order());
        }
    }

    /// The region is mapped: ends what was begun for a huge page there.
    fn forget_huge(&mut self, env: &Env, touch: &mut Touch) {
        (touch.attempt, touch.attempt_asked) = (0, false);
        let huge = std::mem::replace(&mut touch.huge, Pfn::NONE);
        if huge.is_some() {
            self.free_pages(env, huge, PAGEBLOCK_ORDER);
        }
    }

    fn touch_regions(&mut self, env: &Env, touch: &mut Touch, deadline: u64, tally: &mut Tally) -> TouchStop {
        while touch.vpn < touch.end {
            if self.cpu_ns() > deadline {
                return TouchStop::Quantum;
            }
            let Some(vma) = self.spaces[touch.space].find(touch.vpn) else {
                return TouchStop::NoMapping;
            };
            let region_end = (touch.vpn | (REGION_PAGES - 1)).saturating_add(1);
            let run_end = touch.end.min(vma.end).min(region_end);
            match self.spaces[touch.space].tables.region(touch.vpn) {
                Region::Huge { pfn, .. } => {
                    self.forget_huge(env, touch);
                    self.frames[pfn].set(access_flags(touch.write));
                    touch.vpn = run_end;
                }
                Region::Table(leaf) => {
                    self.forget_huge(env, touch);
                    self.spaces.leaves.set_young(leaf);
                    let stop = match vma.kind {
                        VmaKind::Anon => self.touch_table(env, touch, leaf, run_end, deadline, tally),
                        VmaKind::File { file, base } => {
                            let area = FileArea { vma, file, base };
                            self.touch_file(env, touch, area, leaf, (run_end, deadline), tally)
                        }
                    };
                    if let Some(stop) = stop {
                        return stop;
                    }
                }
                Region::None => {
                    if let Some(stop) = self.fill_region(env, touch, &vma, run_end, tally) {
                        return stop;
                    }
                }
            }
        }
        TouchStop::Done
    }

    /// Accesses pages of a region that has a page table.
    fn touch_table(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        leaf: u32,
        run_end: u32,
        deadline: u64,
        tally: &mut Tally,
    ) -> Option<TouchStop> {
        while touch.vpn < run_end {
            let vpn = touch.vpn;
            match self.spaces.leaves.get(leaf, vpn) {
                Slot::Page(pfn) => self.access_page(env, pfn, touch.write, tally),
                Slot::None if !touch.write => {
                    self.spaces.leaves.set(leaf, vpn, Slot::Zero);
                    self.charge(self.costs.fault);
                    tally.faults += 1;
                }
                Slot::Zero if !touch.write => {}
                Slot::None | Slot::Zero => {
                    if let Err(need) = self.memcg_reserve(env, env.task.memcg, Order(0), Gfp::KERNEL) {
                        return Some(TouchStop::Need(need));
                    }
                    let pfn = match self.take_page(env, touch, GFP_PAGE) {
                        Ok(pfn) => pfn,
                        Err(request) => return Some(TouchStop::NeedPage(request)),
                    };
                    self.spaces.leaves.set(leaf, vpn, Slot::Page(pfn));
                    self.frames[pfn].place = Leaves::place(leaf, vpn);
                    self.map_new(env, touch, pfn, Order(0), tally);
                    if self.cpu_ns() > deadline {
                        touch.vpn += 1;
                        return Some(TouchStop::Quantum);
                    }
                }
                Slot::Swap(entry) => {
                    if let Some(stop) = self.swap_in(env, touch, leaf, entry, tally) {
                        return Some(stop);
                    }
                    if self.cpu_ns() > deadline {
                        touch.vpn += 1;
                        return Some(TouchStop::Quantum);
                    }
                }
            }
            touch.vpn += 1;
        }
        None
    }

    /// An access to a mapped base page. A page that a read brought back from swap is mapped read-only, so that the first
    /// write faults; if the page still has its slot, [`SlotOfWritten`] says what becomes of that (`do_wp_page()`, `reuse_swap_page()`).
    #[inline]
    fn access_page(&mut self, env: &Env, pfn: Pfn, write: bool, tally: &mut Tally) {
        let frame = &mut self.frames[pfn];
        frame.set(Frame::YOUNG);
        if !write {
            return;
        }
        let protected = !frame.has(Frame::WRITTEN);
        frame.set(Frame::DIRTY | Frame::WRITTEN);
        if protected {
            self.charge(self.costs.fault);
            tally.faults += 1;
            if self.rules.slot_of_written == SlotOfWritten::GivenUp {
                self.try_to_free_swap(env, pfn);
            }
        }
    }

    /// Puts a huge page or a page table into an empty region; `None` means go on.
    fn fill_region(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        vma: &Vma,
        run_end: u32,
        tally: &mut Tally,
    ) -> Option<TouchStop> {
        while let Some(level) = self.missing_level(touch.space, touch.vpn) {
            match self.take_table(env, touch) {
                Ok(pfn) => self.install_upper(touch.space, touch.vpn, level, pfn),
                Err(stop) => return Some(stop),
            }
        }
        let eligible = vma.kind == VmaKind::Anon
            && thp_enabled_for(self.tunables.thp_enabled, vma.thp)
            && vma.holds_region(touch.vpn);
        if eligible {
            self.khugepaged_enter(touch.space);
        }
        if eligible && touch.write {
            match self.fault_huge(env, touch, vma.thp, tally) {
                Huge::Mapped => {
                    touch.vpn = run_end;
                    return None;
                }
                Huge::Stop(stop) => return Some(stop),
                Huge::Fallback => {}
            }
        }
        match self.take_table(env, touch) {
            Ok(pfn) => {
                self.install_leaf(touch.space, touch.vpn, pfn);
                None
            }
            Err(stop) => Some(stop),
        }
    }

    /// A page for a page table, charged to the task's group.
    fn take_table(&mut self, env: &Env, touch: &mut Touch) -> Result<Pfn, TouchStop> {
        self.memcg_reserve(env, env.task.memcg, Order(0), Gfp::KERNEL).map_err(TouchStop::Need)?;
        let pfn = self.take_page(env, touch, GFP_PGTABLE).map_err(TouchStop::NeedPage)?;
        self.memcg_commit_kernel(env, pfn, KernelPage::Table);
        Ok(pfn)
    }

    /// Tries to map a huge page at the region of `touch.vpn`.
    fn fault_huge(&mut self, env: &Env, touch: &mut Touch, advice: ThpAdvice, tally: &mut Tally) -> Huge {
        let mask = thp_gfp_mask(self.rules.thp_effort, self.tunables.thp_defrag, advice == ThpAdvice::Huge);
        let attempts = huge_attempts(self.rules.thp_node, mask);
        if touch.attempt > attempts.len() as u8 {
            return Huge::Fallback; // counted already; the page table was missing
        }
        while !touch.huge.is_some() {
            // A group without room for a huge page gets base pages.
            if self.memcg_reserve(env, env.task.memcg, PAGEBLOCK_ORDER, mask).is_err() {
                touch.attempt = attempts.len() as u8 + 1;
                self.stat.count(VmEvent::ThpFaultFallback, 1);
                return Huge::Fallback;
            }
            if std::mem::take(&mut touch.attempt_asked) {
                touch.attempt += 1; // the caller's slow path found none
            }
            let Some(&gfp) = attempts.get(touch.attempt as usize) else {
                touch.attempt = attempts.len() as u8 + 1;
                self.stat.count(VmEvent::ThpFaultFallback, 1);
                return Huge::Fallback;
            };
            let request = AllocRequest { gfp, order: PAGEBLOCK_ORDER, node: env.node };
            if let Some(pfn) = self.alloc_pages(env, request) {
                touch.huge = pfn;
            } else if gfp.intersects(Gfp::RECLAIM) {
                touch.attempt_asked = true;
                return Huge::Stop(TouchStop::NeedHuge(request));
            } else if let Some(pfn) = self.alloc_without_reclaim(env, request) {
                touch.huge = pfn;
            } else {
                touch.attempt += 1;
            }
        }
        let deposit = match self.take_table(env, touch) {
            Ok(pfn) => pfn,
            Err(stop) => return Huge::Stop(stop),
        };
        let pfn = std::mem::replace(&mut touch.huge, Pfn::NONE);
        (touch.attempt, touch.attempt_asked) = (0, false);
        self.table_frame_added(touch.space, super::pgtable::Level::Pte, deposit);
        self.spaces[touch.space].tables.set_region(touch.vpn, Region::Huge { pfn, deposit });
        self.set_huge_home(pfn, (touch.space, touch.vpn & !(REGION_PAGES - 1)));
        self.map_new(env, touch, pfn, PAGEBLOCK_ORDER, tally);
        self.stat.count(VmEvent::ThpFaultAlloc, 1);
        self.stat.node_add(self.node_of(pfn), NodeStat::AnonThps, 1);
        Huge::Mapped
    }

    /// What the slow path does for a request that may neither reclaim nor wake kswapd: one more walk, down to the
    /// min watermark.
    fn alloc_without_reclaim(&mut self, env: &Env, request: AllocRequest) -> Option<Pfn> {
        let flags = self.gfp_to_alloc_flags(env, request);
        self.get_page_from_freelist(env, request, flags)
    }

    /// An order-0 frame: the caller's if it was asked for with these flags, else from the fast path.
    #[inline]
    pub(super) fn take_page(&mut self, env: &Env, touch: &mut Touch, gfp: Gfp) -> Result<Pfn, AllocRequest> {
        if touch.spare.is_some() && touch.asked == gfp {
            return Ok(std::mem::replace(&mut touch.spare, Pfn::NONE));
        }
        let request = AllocRequest { gfp, order: Order(0), node: env.node };
        self.alloc_pages(env, request).ok_or_else(|| {
            touch.asked = gfp;
            request
        })
    }

    /// Makes a frame from the allocator, which has its place, a mapped, zeroed page of the space and puts it on its LRU list.
    #[inline]
    fn map_new(&mut self, env: &Env, touch: &Touch, pfn: Pfn, order: Order, tally: &mut Tally) {
        let start = match self.rules.anon_start {
            AnonStart::Active => Frame::ACTIVE,
            AnonStart::Inactive => 0,
        };
        let frame = &mut self.frames[pfn];
        debug_assert_eq!(frame.kind(), Kind::Held, "{pfn:?} is not fresh from the allocator");
        frame.set_kind(Kind::Anon, order);
        frame.set(Frame::SWAPBACKED | Frame::MAPPED | Frame::UPTODATE | access_flags(touch.write) | start);
        self.memcg_commit(env, env.task.memcg, pfn);
        let zeroing = if order == Order(0) { self.costs.zero_page } else { self.costs.zero_huge };
        self.charge(self.costs.fault + zeroing);
        tally.faults += 1;
        tally.map(self, pfn, i64::from(order.pages()));
        self.lru_add(env, pfn);
    }
}

/// What an access leaves in the page table entry.
#[inline]
pub(super) fn access_flags(write: bool) -> u32 {
    if write { Frame::YOUNG | Frame::DIRTY | Frame::WRITTEN } else { Frame::YOUNG }
}
