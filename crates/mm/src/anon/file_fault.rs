//! Accesses to pages of mapped files, a range at a time.
//!
//! Rule: a read fault maps what is ready around it, any other fault its own page; a store to a clean page is a fault
//! that makes it dirty, after which the task answers for dirty pages. A page that was cleaned until it has done so faults once more.
//! While the page is under writeback the fault may have to wait with the page locked ([`WrittenMeanwhile`]), which holds up who would write it.
//! Since/until: [`StoreFault`].
//! Abstracted: a fault that is taken again and finds its page dirty takes no time; who reads for such a fault is not preempted as it submits the read; a store to a page that is dirty already is no fault,
//! though another mapping of it, or another fault that holds it locked, may have made it so.
//! Source: `do_read_fault()`, `do_shared_fault()`, `wp_page_shared()`, `fault_dirty_shared_page()` (mm/memory.c), 6.12;
//! `__do_fault()`, `do_wp_page()` (mm/memory.c), `__block_page_mkwrite()` (fs/buffer.c), 3.1.

use rules::{FaultAround, StoreFault, WrittenMeanwhile};
use units::{FileId, Pfn};

use super::{REGION_PAGES, Slot, Tally, Touch, TouchStop, Vma};
use crate::pagecache::{FaultStop, Slot as CacheSlot};
use crate::vfs::Need;
use crate::{Env, Frame, Mm, TaskFlags};

/// What is touched: the area, its file, and the virtual page of the file's page 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileArea {
    pub(super) vma: Vma,
    pub(super) file: FileId,
    pub(super) base: u32,
}

impl Mm {
    /// Accesses pages of a mapped file in a region that has a page table.
    pub(super) fn touch_file(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        area: FileArea,
        leaf: u32,
        (run_end, deadline): (u32, u64),
        tally: &mut Tally,
    ) -> Option<TouchStop> {
        let env = &Env { task: TaskFlags { holds_reads: false, ..env.task }, ..*env };
        let mut hand = touch.take_spare();
        let mut stop = None;
        while stop.is_none() && touch.vpn < run_end {
            stop = self.touch_file_page(env, touch, area, leaf, &mut hand, tally);
            if stop.is_none() && self.cpu_ns() > deadline {
                stop = Some(TouchStop::Quantum);
            }
        }
        touch.put_spare(hand);
        stop
    }

    /// Accesses the page at `touch.vpn`, and goes on to the next if that succeeds.
    fn touch_file_page(
        &mut self,
        env: &Env,
        touch: &mut Touch,
        area: FileArea,
        leaf: u32,
        hand: &mut Option<Pfn>,
        tally: &mut Tally,
    ) -> Option<TouchStop> {
        let again = std::mem::take(&mut touch.taken_again);
        let mut faulted = false;
        let pfn = loop {
            match self.spaces.leaves.get(leaf, touch.vpn) {
                Slot::Page(pfn) => break pfn,
                Slot::None => {
                    if let Err(stop) = self.file_fault(env, touch, area, leaf, hand) {
                        return Some(stop);
                    }
                    faulted = true;
                }
                other => panic!("{other:?} at page {} of a mapped file", touch.vpn),
            }
        };
        self.frames[pfn].set(Frame::YOUNG);
        let mut dirtied = 0;
        let store = touch.write && !self.frames[pfn].has(Frame::DIRTY);
        if store {
            let indices = self.folio_indices(pfn);
            if self.nr_room_for(area.file, indices.clone()) < indices.len() as u32 {
                return Some(TouchStop::IoError);
            }
            if let Err(need) = self.attach_buffers(env, pfn) {
                return Some(TouchStop::Need(need));
            }
            dirtied = self.set_page_dirty(env, pfn);
        }
        if faulted || store {
            self.charge(self.costs.fault);
        }
        if faulted || store || again {
            tally.fault();
        }
        if !store {
            touch.vpn += 1;
            return None;
        }
        touch.taken_again = self.rules.store_fault == StoreFault::Retries && !again;
        if self.rules.written_meanwhile == WrittenMeanwhile::Waits && self.frames[pfn].has(Frame::WRITEBACK) {
            self.frames[pfn].set(Frame::LOCKED | Frame::WAITERS);
            touch.locked = Some((area.file, touch.vpn - area.base));
            return Some(TouchStop::WaitWriteback(pfn));
        }
        Some(TouchStop::Dirtied(area.file, dirtied))
    }

    /// Unlocks the page that a fault held, if it did, and unless it was truncated meanwhile; says of which file it was.
    pub(super) fn unlock_written(&mut self, touch: &mut Touch) -> Option<FileId> {
        let (file, index) = touch.locked.take()?;
        if let CacheSlot::Page(pfn) = self.pagecache_get(file, index)
            && self.frames[pfn].has(Frame::UPTODATE)
            && self.frames[pfn].take(Frame::LOCKED)
        {
            self.wake_page(pfn);
        }
        Some(file)
    }

    /// Maps the page at `touch.vpn`.
    fn file_fault(
        &mut self,
        env: &Env,
        touch: &Touch,
        area: FileArea,
        leaf: u32,
        hand: &mut Option<Pfn>,
    ) -> Result<(), TouchStop> {
        let (place, vpn) = ((touch.space, area.file, area.base), touch.vpn);
        let region = vpn & !(REGION_PAGES - 1);
        let within = area.vma.start.max(region)..area.vma.end.min(region.saturating_add(REGION_PAGES));
        // A fault that waited for memory in the midst of reading ahead goes on with that first.
        let around = self.rules.fault_around == FaultAround::MapsAround && !touch.write;
        if around && !self.reads_ahead(place) && self.fault_around(place, leaf, vpn, within) {
            return Ok(());
        }
        let pfn = self.fault_file_page(env, place, vpn - area.base, hand).map_err(|stop| match stop {
            FaultStop::Need(Need::Page(request)) => TouchStop::NeedPage(request),
            FaultStop::Need(need) => TouchStop::Need(need),
            FaultStop::Wait(pfn) => TouchStop::Wait(pfn),
            FaultStop::BeyondEnd => TouchStop::IoError,
        })?;
        self.map_file_page(touch.space, leaf, vpn, pfn);
        Ok(())
    }
}
