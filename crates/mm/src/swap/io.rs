//! Writing pages to swap and reading them back.
//!
//! Rule: a dirty page of the swap cache is written to its slot; it is under writeback until the write ends, and goes to
//! the tail of its list then if reclaim waits for it. A page that is read is locked until the read ends.
//! What is kept in memory instead of it is neither (see kept.rs).
//! Source: `swap_writepage()`, `end_swap_bio_write()`, `swap_readpage()`, `end_swap_bio_read()` (mm/page_io.c), `end_page_writeback()`,
//! `test_set_page_writeback()` (mm/page-writeback.c); 4.20.
//! Abstracted: one bio a page, merged by the device's queue; a page whose owner has gone is freed when its I/O ends.
//! Omitted: swap over a file system, polling.

use units::Pfn;

use super::SwapEntry;
use crate::stat::{NodeStat, VmEvent, ZoneStat};
use crate::{Bio, BioMemory, BioTarget, Effect, Env, Frame, Kind, Mm};

impl Mm {
    /// Starts writing a dirty page of the swap cache; false if it cannot.
    pub fn pageout_anon(&mut self, env: &Env, pfn: Pfn) -> bool {
        let frame = &mut self.frames[pfn];
        assert!(frame.kind() == Kind::Anon && frame.has(Frame::SWAPCACHE | Frame::DIRTY));
        if frame.has_any(Frame::WRITEBACK | Frame::LOCKED | Frame::MAPPED) {
            return false;
        }
        frame.clear(Frame::DIRTY);
        self.charge(self.costs.swap_out);
        let entry = self.swap_entry(pfn);
        if !self.keep_swapped(env, entry) {
            self.start_swap_write(env, pfn, entry);
        }
        true
    }

    /// Gives a page of the swap cache to the device of its slot (`__swap_writepage()`).
    pub(super) fn start_swap_write(&mut self, env: &Env, pfn: Pfn, entry: SwapEntry) {
        if self.swap.is_zram(entry) {
            let ok = self.zram_write(env, entry);
            return self.swap_written_at_once(pfn, ok);
        }
        self.stat.count(VmEvent::Pswpout, 1);
        let device = self.swap.device_of(entry);
        if self.is_synchronous(device) {
            self.charge_sync_bio(device, true, 1);
            return self.swap_written_at_once(pfn, true);
        }
        self.frames[pfn].set(Frame::WRITEBACK);
        self.count_writeback(pfn, 1);
        self.submit_swap(env, pfn, entry, true, false);
    }

    /// The write of a page has ended before its submission returned.
    fn swap_written_at_once(&mut self, pfn: Pfn, ok: bool) {
        let frame = &mut self.frames[pfn];
        if !ok {
            frame.set(Frame::DIRTY);
        }
        let rotate = frame.take(Frame::RECLAIM) && ok && frame.has(Frame::LRU);
        self.stat.node_add(self.node_of(pfn), NodeStat::Written, 1);
        if rotate {
            self.rotate_reclaimable(pfn);
        }
    }

    /// Reads the page of a slot into the swap cache, where the page is locked until it is read (`swap_read_folio()`).
    pub(crate) fn read_swap_page(&mut self, env: &Env, pfn: Pfn, entry: SwapEntry, wanted: bool) {
        self.charge(self.costs.swap_in);
        if self.read_kept(env, entry, Some(pfn)) {
            self.frames[pfn].clear(Frame::LOCKED);
            self.frames[pfn].set(Frame::UPTODATE);
            return;
        }
        self.zswap_missed();
        self.stat.count(VmEvent::Pswpin, 1);
        self.submit_swap(env, pfn, entry, false, wanted);
    }

    /// Reads the page of a slot past the swap cache from a device whose bios end at once (`swap_read_folio_bdev_sync()`).
    pub(crate) fn read_swap_at_once(&mut self, env: &Env, entry: SwapEntry) {
        self.charge(self.costs.swap_in);
        if !self.read_kept(env, entry, None) {
            self.zswap_missed();
            self.stat.count(VmEvent::Pswpin, 1);
            self.charge_sync_bio(self.swap.device_of(entry), false, 1);
        }
    }

    /// Whether the swap code knows that the device of a slot ends bios before their submission returns (`SWP_SYNCHRONOUS_IO`).
    pub(crate) fn swaps_at_once(&self, entry: SwapEntry) -> bool {
        self.swap.is_zram(entry) || self.is_synchronous(self.swap.device_of(entry))
    }

    fn submit_swap(&mut self, env: &Env, pfn: Pfn, entry: SwapEntry, write: bool, sync: bool) {
        let (device, offset) = self.swap.locate(entry);
        let device = &self.swap.devices[device];
        let target = BioTarget::Swap { pfn };
        let bio = Bio {
            device: device.device,
            sector: device.sector(offset),
            pages: 1,
            write,
            sync,
            target,
            memory: BioMemory::NONE,
        };
        self.submit(env, bio);
    }

    fn count_writeback(&mut self, pfn: Pfn, pages: i64) {
        let zone = self.zone_of(pfn);
        self.stat.node_add(self.zones[zone.index()].node, NodeStat::Writeback, pages);
        self.memcg.count_writeback(pfn, pages);
        self.stat.zone_add(zone, ZoneStat::WritePending, pages);
    }

    /// A page has been written to swap, or could not be.
    pub fn end_swap_write(&mut self, env: &Env, pfn: Pfn, ok: bool) {
        let frame = &mut self.frames[pfn];
        assert!(frame.kind() == Kind::Anon && frame.has(Frame::WRITEBACK), "{pfn:?} is not being written");
        frame.clear(Frame::WRITEBACK);
        if !ok {
            frame.set(Frame::DIRTY);
            frame.clear(Frame::RECLAIM);
        }
        let rotate = frame.take(Frame::RECLAIM) && frame.has(Frame::LRU);
        self.count_writeback(pfn, -1);
        self.stat.node_add(self.node_of(pfn), NodeStat::Written, 1);
        if rotate {
            self.rotate_reclaimable(pfn);
        }
        self.io_ended(env, pfn);
    }

    /// A page has been read from swap, or could not be.
    pub fn end_swap_read(&mut self, env: &Env, pfn: Pfn, ok: bool) {
        let frame = &mut self.frames[pfn];
        assert!(frame.kind() == Kind::Anon && frame.has(Frame::LOCKED), "{pfn:?} is not being read");
        frame.clear(Frame::LOCKED);
        if ok {
            frame.set(Frame::UPTODATE);
        }
        self.io_ended(env, pfn);
    }

    /// Wakes who waits for a page, and frees it if its owner has gone.
    fn io_ended(&mut self, env: &Env, pfn: Pfn) {
        if self.frames[pfn].take(Frame::WAITERS) {
            self.effects.push(Effect::WakePage(pfn));
        }
        if self.is_orphan(pfn) {
            self.free_unmapped(env, pfn);
        }
    }
}
